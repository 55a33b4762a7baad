"""One job in a process of its own: `python -m reveil.serve.worker JOB-FOLDER EPOCH`.

Untrusted tables are read here and nowhere else, under limits of memory and time. Progress, result and faults are files
of a folder of this run; whoever waits reads them. To cancel a job is to end this process: the ledger leaves the state
before or after, whatever the moment. Before it commits anything it asks whether the job is still its own.
"""

from __future__ import annotations

import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reveil.base.errors import Fault, InputError, ReveilError
from reveil.base.progress import Progress
from reveil.ledger.fencing import fence
from reveil.serve.leases import ONCE, leases_of
from reveil.serve.place import Place, now, read, write_atomically

READING_BYTES = 8 << 30  # of memory that reading an upload may take
READING_SECONDS = 900  # of computing
EVERY = 0.2  # seconds between two notes of progress in the same stage


def main(job_folder: Path, epoch: int) -> int:
    """Run the job; 0 where it succeeded."""
    place, token = Place(job_folder.parents[2]), job_folder.name
    job, folder = read(job_folder / "job.json"), job_folder / f"run-{epoch}"
    assert job is not None
    leases = leases_of(place)
    fence(lambda: leases.insist(token, epoch))
    code = _done(job, folder, place)
    if not code or job["job"]["job"] in ONCE:
        for upload in job.get("spent", ()):
            place.forget_upload(upload)
    return code if leases.finish(token, epoch, "failed" if code else "succeeded") else 1


def _done(job: dict[str, Any], folder: Path, place: Place) -> int:
    try:
        _refuse_elsewhere(job, place)
        result = run(job["job"], folder, _telling(folder))
    except ReveilError as error:
        notes = list(getattr(error, "__notes__", []))
        return _failed(folder, job, error.title, [fault.to_dict() for fault in error.faults], notes)
    except MemoryError:
        message = "reading it takes more memory than is allowed here"
        fault = Fault("R841", "job", message, "use a smaller file, or the command line on a larger machine")
        return _failed(folder, job, "Too large", [fault.to_dict()], [])
    except Exception:
        traceback.print_exc()  # into the job's own file, which no page shows: it may quote cells
        fault = Fault(
            "R842", "job", "ended unexpectedly", f"see {folder.parent.name}/stderr, and report it as a bug of Reveil"
        )
        return _failed(folder, job, "This should not have happened", [fault.to_dict()], [])
    write_atomically(folder / "result.json", result)
    return 0


def _refuse_elsewhere(job: dict[str, Any], place: Place) -> None:
    """Descriptions name tables and policies by their places: workers on other machines see them at the same ones."""
    if job.get("folder", str(place.folder)) != str(place.folder):
        message = f"was asked for where this folder is {job['folder']}"
        remedy = "let every machine that works on the queue see the folder at the same place"
        raise InputError(Fault("R862", f"folder '{place.folder}'", message, remedy))


def _failed(folder: Path, job: dict[str, Any], title: str, faults: list[dict[str, Any]], notes: list[str]) -> int:
    asked = job.get("job", {})
    named = {str(asked.get("table", "")): str(job.get("shown", "the table"))}
    named |= dict(zip(map(str, asked.get("tables", ())), job.get("names", ()), strict=False))
    for path, name in named.items():  # people know a table by the name that they gave it
        if path:
            faults = [{k: v.replace(path, name) if isinstance(v, str) else v for k, v in one.items()} for one in faults]
    write_atomically(folder / "fault.json", {"error": title, "faults": faults, "notes": notes})
    return 1


def _telling(folder: Path) -> Progress:
    last: list[Any] = ["", 0.0]

    def tell(stage: str, done: float) -> None:
        if stage == last[0] and time.monotonic() - last[1] < EVERY:
            return
        last[:] = [stage, time.monotonic()]
        status = {"stage": stage, "done": done or None, "at": now()}
        write_atomically(folder / "status.json", status)

    return tell


def run(description: dict[str, Any], folder: Path, progress: Progress) -> dict[str, Any]:
    """A job of the console, or one of those that Python and the command line know."""
    own = _own(str(description.get("job")))
    if own is not None:
        return own({name: value for name, value in description.items() if name != "job"}, progress)
    from reveil.cli.shared import load_kernels
    from reveil.jobs.specs import load_spec

    load_kernels()
    done: Any = load_spec(description).run(progress)
    if description["job"] == "audit":
        from reveil.audit.result.audit_report import write_html

        write_html(done, folder / "report.html")
    return dict(done.to_dict())


def _own(name: str) -> Callable[[dict[str, Any], Progress], dict[str, Any]] | None:
    if name == "look":
        from reveil.serve.looking import look

        return look
    if name == "levels":
        from reveil.serve.looking import levels

        return levels
    if name == "values":
        from reveil.serve.looking import values

        return values
    if name == "unique":
        from reveil.serve.looking import unique

        return unique
    if name == "settings":
        from reveil.serve.settings import compare_settings

        return compare_settings
    return None


def limit() -> None:
    """What reading may take at most; the process is ended beyond."""
    resource.setrlimit(resource.RLIMIT_DATA, (READING_BYTES, READING_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (READING_SECONDS, READING_SECONDS))
    os.nice(5)


if __name__ == "__main__":
    limit()
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
