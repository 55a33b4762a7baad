"""What tests share: the command line in this process, changed releases, and workbooks."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

from reveil.cli.app import main


def cli(*arguments: str) -> tuple[int, str, str]:
    """The command line in this process: exit code, stdout, stderr."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["reveil", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.argv = before
    return code, out.getvalue(), err.getvalue()


def put_right(public: Path) -> None:
    """Write the hashes of the files as they are now into the data package, as somebody clever would."""
    package = json.loads((public / "datapackage.json").read_text())
    for resource in package["resources"]:
        resource["hash"] = f"sha256:{hashlib.sha256((public / resource['path']).read_bytes()).hexdigest()}"
    (public / "datapackage.json").write_text(json.dumps(package))


def workbook(path: Path, sheets: dict[str, list[list[Any]]]) -> Path:
    """A minimal Excel file; nothing in the test environment writes one."""
    space = "http://schemas.openxmlformats.org"
    main, rel = f"{space}/spreadsheetml/2006/main", f"{space}/officeDocument/2006/relationships"
    names = "".join(f'<sheet name="{n}" sheetId="{i}" r:id="r{i}"/>' for i, n in enumerate(sheets, 1))
    links = "".join(
        f'<Relationship Id="r{i}" Type="{rel}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in range(1, len(sheets) + 1)
    )
    package = f"{space}/package/2006"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("[Content_Types].xml", f'<Types xmlns="{package}/content-types"/>')
        root = f'<Relationship Id="r1" Type="{rel}/officeDocument" Target="xl/workbook.xml"/>'
        file.writestr("_rels/.rels", f'<Relationships xmlns="{package}/relationships">{root}</Relationships>')
        book = f'<workbook xmlns="{main}" xmlns:r="{rel}"><sheets>{names}</sheets></workbook>'
        file.writestr("xl/workbook.xml", book)
        links = f'<Relationships xmlns="{package}/relationships">{links}</Relationships>'
        file.writestr("xl/_rels/workbook.xml.rels", links)
        for i, rows in enumerate(sheets.values(), 1):
            cells = "".join(
                f'<row r="{r}">{"".join(cell(r, c, value) for c, value in enumerate(row))}</row>'
                for r, row in enumerate(rows, 1)
            )
            sheet = f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>'
            file.writestr(f"xl/worksheets/sheet{i}.xml", sheet)
    return path


def cell(row: int, place: int, value: Any) -> str:
    name = f"{chr(65 + place)}{row}"
    if value is None:
        return ""
    if isinstance(value, str):
        return f'<c r="{name}" t="inlineStr"><is><t xml:space="preserve">{value}</t></is></c>'
    return f'<c r="{name}"><v>{value}</v></c>'
