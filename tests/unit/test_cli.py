"""The command line: what each command says, its exit codes, and one JSON document for programs."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import reveil
from reveil.cli.app import COMMANDS
from support import cli, put_right

POLICY = """
[series]
name = "visits"
[columns]
id = "identifier"
age = "quasi"
sex = "quasi"
ill = "sensitive"
[guarantee]
k = 2
"""


def people(first: int = 0, rows: int = 12) -> pl.DataFrame:
    numbers = range(first, first + rows)
    return pl.DataFrame(
        {
            "id": [f"p{i}" for i in numbers],
            "age": [20 + i * 7 % 50 for i in numbers],
            "sex": ["mf"[i % 2] for i in numbers],
            "ill": [("flu", "cold", "gout")[i % 3] for i in numbers],
        }
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    (folder / "reveil.toml").write_text(POLICY)
    people().write_csv(folder / "one.csv")
    people(3).write_csv(folder / "two.csv")
    code, _, err = cli("publish", str(folder / "one.csv"), "--policy", str(folder / "reveil.toml"), "--quiet")
    assert code == 0, err
    return folder


@pytest.fixture
def work(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with reveil.toml, two tables and a series of one release in .reveil."""
    folder = Path(shutil.copytree(made, tmp_path / "work"))
    monkeypatch.chdir(folder)
    return folder


def test_real_processes(work: Path) -> None:
    """The installed command: exit codes 0, 1 and 2, results on stdout, refusals on stderr."""
    reveil = [str(Path(sys.executable).with_name("reveil"))]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*reveil, *words], capture_output=True, text=True, cwd=work, timeout=120)

    published = run("publish", "two.csv", "--json")
    assert published.returncode == 0, published.stderr
    assert json.loads(published.stdout)["number"] == 2
    refused = run("publish", "three.csv")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "R101" in refused.stderr
    table = work / ".reveil" / "releases" / "0001" / "public" / "table.csv"
    table.write_text(table.read_text() + "9,*,*,flu\n")
    broken = run("verify", "--json")
    assert broken.returncode == 1
    assert [json.loads(broken.stdout)[release]["holds"] for release in ("1", "2")] == [False, True]


def test_help_lists_commands_in_the_order_of_the_work() -> None:
    _, out, _ = cli("--help")
    places = [out.index(f"\n  {command} ") for command in COMMANDS]
    assert places == sorted(places)


def test_every_command_of_the_help_can_be_called() -> None:
    for command in COMMANDS:
        code, out, _ = cli(command, "--help")
        assert (code, out[:6]) == (0, "Usage:"), command


def test_the_version_is_said_everywhere_alike() -> None:
    assert cli("--version")[:2] == (0, f"reveil {reveil.__version__}\n")
    assert importlib.metadata.version("reveil") == reveil.__version__


def test_help_is_quick() -> None:
    heavy = ("polars", "numba", "sqlalchemy", "pyarrow")
    heavy = f"import sys, reveil.cli.app; sys.exit(any(m in sys.modules for m in {heavy}))"
    assert subprocess.run([sys.executable, "-c", heavy]).returncode == 0


@pytest.mark.parametrize("words", [["publsh"], ["publish"], ["publish", "one.csv", "--sed", "1"], ["show", "first"]])
def test_wrong_use_is_exit_2(work: Path, words: list[str]) -> None:
    assert cli(*words)[0] == 2


def test_plan_says_what_and_writes_nothing(work: Path) -> None:
    shutil.rmtree(work / ".reveil")
    code, out, _ = cli("plan", "one.csv")
    assert code == 0
    assert "Release 1 under k-anonymity would be" in out
    assert "12 rows in" in out
    assert "Nothing was written" in out
    assert not (work / ".reveil").exists()
    code, out, _ = cli("plan", "one.csv", "--json")
    assert json.loads(out)["input_rows"] == 12
    assert not (work / ".reveil").exists()


def test_publish_says_what_to_hand_over(work: Path) -> None:
    code, out, err = cli("publish", "two.csv")
    assert (code, err) == (0, "")
    assert "Release 2 of 'visits': 12 rows in" in out
    assert f"Hand over only   {work / '.reveil' / 'releases' / '0002' / 'public'}" in out
    assert "Keep to yourself" in out
    assert "promise about one table" in out
    assert cli("publish", "one.csv", "--quiet", "--accept", "same-table") == (0, "", "")


def test_history_and_show(work: Path) -> None:
    code, out, _ = cli("history")
    assert code == 0
    assert "Series 'visits'" in out
    assert "1 release" in out
    assert "promise about one table" in out
    listed = json.loads(cli("history", "--json")[1])
    assert listed["releases"][0]["input rows"] == 12
    assert listed["faults"] == []
    code, out, _ = cli("show", "1")
    assert code == 0
    assert "checked: rows: 12 rows published" in out
    assert "assumed:" in out
    assert json.loads(cli("show", "1", "--json")[1])["certificate"]["holds"] is True
    assert cli("show") == cli("show", "1")
    code, _, err = cli("show", "7")
    assert code == 2
    assert "R510" in err


@pytest.mark.parametrize("words", [["history"], ["show", "1"], ["verify"], ["verify", "1"], ["audit"]])
def test_looking_back_begins_no_series(work: Path, words: list[str]) -> None:
    """A mistyped home is refused, not made."""
    code, out, err = cli(*words, "--home", "elsewhere")
    assert (code, out) == (2, "")
    assert "R501" in err
    assert "no series in this folder" in err
    assert not (work / "elsewhere").exists()


def test_verify_confirms(work: Path) -> None:
    code, out, _ = cli("verify")
    assert code == 0
    assert "Release 1: The promise holds. Promised: " in out
    assert cli("verify", "1")[0] == 0
    release = work / ".reveil" / "releases" / "0001"
    assert cli("verify", str(release))[0] == 0
    assert cli("verify", str(release / "public"))[0] == 0
    code, _, err = cli("verify", "2")
    assert code == 2
    assert "R510" in err


def test_verify_finds_a_broken_promise(work: Path) -> None:
    """A table of somebody else that does not keep it: exit 1, and one JSON document."""
    pl.DataFrame({"age": ["20", "*", "*"], "sex": ["m", "*", "*"], "ill": ["a", "b", "c"]}).write_csv("theirs.csv")
    code, out, err = cli("verify", "theirs.csv")
    assert code == 1
    assert "FAILS  k-anonymity" in out
    assert "R602" in err
    code, out, err = cli("verify", "theirs.csv", "--json")
    assert (code, err) == (1, "")
    assert json.loads(out)["holds"] is False


def test_verify_finds_a_changed_folder(work: Path) -> None:
    public = Path(shutil.copytree(work / ".reveil" / "releases" / "0001" / "public", work / "copy"))
    (public / "table.csv").write_bytes((public / "table.csv").read_bytes().replace(b"flu", b"flo", 1))
    code, out, err = cli("verify", "copy")
    assert code == 1
    assert "changed ['table.csv']" in out + err


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        '{"resources": 3}',
        '{"resources": [{"name": "table"}]}',
        '{"resources": [{"name": "table", "path": "x.csv"}]}',
    ],
)
def test_verify_refuses_what_is_no_release(work: Path, content: str) -> None:
    public = Path(shutil.copytree(work / ".reveil" / "releases" / "0001" / "public", work / "copy"))
    (public / "datapackage.json").write_text(content)
    code, _, err = cli("verify", "copy")
    assert code == 2
    assert "R603" in err


@pytest.mark.parametrize(("words", "key"), [(["history"], "faults"), (["verify"], "1")])
def test_json_is_one_document_even_when_something_is_wrong(work: Path, words: list[str], key: str) -> None:
    (work / ".reveil" / "releases" / "0001" / "public" / "table.csv").unlink()
    code, out, err = cli(*words, "--json")
    assert (code, err) == (1, "")
    assert json.loads(out)[key]
    code, out, _ = cli("show", "1", "--json")
    assert code == 1
    assert json.loads(out)["faults"][0]["code"] == "R523"


def test_anonymize(work: Path) -> None:
    code, out, _ = cli("anonymize", "one.csv", "--out", "release", "--seed", "1")
    assert code == 0
    assert "Hand over only   release/public" in out
    assert json.loads((work / "release" / "public" / "datapackage.json").read_text())["name"] == "visits"
    code, _, err = cli("anonymize", "one.csv", "--out", "release")
    assert code == 2
    assert "R513" in err


def test_what_several_accept_name_is_all_accepted(tmp_path: Path) -> None:
    policy = '[columns]\nname = "identifier"\nage = "quasi"\nill = "sensitive"\n[guarantee]\nk = 2\n'
    (tmp_path / "reveil.toml").write_text(policy)
    (tmp_path / "t.csv").write_text("name,age,ill\n" + "".join(f"p{i},{20 + i},x\n" for i in range(6)))
    asked = (str(tmp_path / "t.csv"), "-p", str(tmp_path / "reveil.toml"))
    assert cli("publish", *asked)[0] == 0
    code, _, err = cli("plan", *asked, "--accept", "row-index")
    assert code == 2 and "R134" in err
    code, _, err = cli("plan", *asked, "--accept", "same-table", "--accept", "row-index")
    assert code == 0, err
    code, _, err = cli("plan", *asked, "--accept", "nonsense", "--accept", "same-table")
    assert code == 2 and "R136" in err and "nonsense" in err


def test_init_of_a_header_alone_writes_nothing(work: Path) -> None:
    (work / "empty.csv").write_text("id,age,town\n")
    code, out, err = cli("init", str(work / "empty.csv"), "-p", str(work / "empty.toml"))
    assert (code, out) == (2, "") and "R212" in err and not (work / "empty.toml").exists()


def test_init_then_plan(work: Path) -> None:
    code, _, err = cli("init", "one.csv")
    assert code == 2
    assert "R219" in err
    code, out, _ = cli("init", "one.csv", "--policy", "new.toml")
    assert code == 0
    assert "Wrote new.toml" in out
    told = json.loads(cli("init", "one.csv", "--policy", "newer.toml", "--json")[1])
    assert (told["policy"], [column["column"] for column in told["columns"]]) == ("newer.toml", people().columns)
    code, _, err = cli("init", "one.csv", "--policy", "nowhere/new.toml")
    assert code == 2
    assert "R223" in err
    assert "nowhere/new.toml" in err


def test_simulate_tells_its_files(tmp_path: Path) -> None:
    code, out, _ = cli("simulate", str(tmp_path / "a"), "--rows", "20", "--releases", "2", "--json")
    assert (code, [Path(file).exists() for file in json.loads(out)["files"]]) == (0, [True, True, True])
    assert cli("simulate", str(tmp_path / "b"), "--rows", "20", "--quiet")[:2] == (0, "")


def test_measure(work: Path) -> None:
    release = str(work / ".reveil" / "releases" / "0001")
    code, out, _ = cli("measure", release, "one.csv", "--queries", "50", "--json")
    assert code == 0
    assert json.loads(out)
    told = cli("measure", release, "one.csv", "--queries", "50")[1]
    for part in ("column", "NCP", "entropy", "all cells", "discernibility", "rows suppressed", "COUNT queries over 1%"):
        assert part in told
    code, _, err = cli("measure", str(work / ".reveil"), "one.csv")
    assert code == 2
    assert "R603" in err


def test_presence_is_for_released_tables(work: Path) -> None:
    code, _, err = cli("audit", "--presence", "unknown")
    assert (code, "R732  presence" in err) == (2, True)


def test_measure_of_a_table_in_a_public_folder_counts_its_counterfeits(work: Path) -> None:
    """The table of a release is read with what lies beside it; any other table by itself."""
    public = work / ".reveil" / "releases" / "0001" / "public"
    table = public / "table.csv"
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines, lines[1], ""]))  # one invented row in the group of the first
    (public / "counterfeits.csv").write_text(f"group,count\n{lines[1].partition(',')[0]},1\n")
    asked = ("one.csv", "--queries", "0", "--json")
    assert "R607" in cli("measure", str(table), *asked)[1]
    put_right(public)
    code, out, err = cli("measure", str(table), *asked)
    assert code == 0, err
    assert json.loads(out)["counterfeits"] == 1
    assert out == cli("measure", str(public), *asked)[1] == cli("measure", str(public.parent), *asked)[1]
    for content in ('{"resources": []}', "[]", "no JSON"):
        (public / "datapackage.json").write_text(content)
        code, out, _ = cli("measure", str(table), *asked)
        assert (code, "R703" in out) == (2, True), content


def test_explain_alone_lists_what_can_be_asked() -> None:
    code, out, _ = cli("explain")
    assert code == 0
    assert "guarantees: k-anonymity" in out and "linkability" in out
    assert json.loads(cli("explain", "--json")[1])["linkability"] == "attack"
    assert cli("explain", "closed", "cohort") == cli("explain", "closed-cohort")


def test_a_console_one_folder_off_is_told(tmp_path: Path) -> None:
    clinic = tmp_path / "My clinic"
    clinic.mkdir()
    (clinic / "reveil.toml").touch()
    code, _, said = cli("serve", str(clinic), "--no-browser")
    assert (code, "is itself a series" in said, "small letters" in said) == (2, True, True)
    clinic = clinic.rename(tmp_path / "clinic")
    assert f"reveil serve {tmp_path}" in cli("serve", str(clinic), "--no-browser")[2]


def test_every_code_of_these_tests_is_explained() -> None:
    for code in (
        "R101",
        "R210",
        "R217",
        "R218",
        "R221",
        "R222",
        "R223",
        "R301",
        "R310",
        "R311",
        "R502",
        "R506",
        "R603",
    ):
        status, out, _ = cli("explain", code)
        assert status == 0, code
        assert out
