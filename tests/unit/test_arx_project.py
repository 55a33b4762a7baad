"""Projects of ARX (`.deid`) become policies: the layout that ARX saves, what has no equivalent, and hostile files."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import reveil
from reveil.base.errors import InputError
from reveil.start import arx_project
from reveil.start.arx_policy import import_project
from support import cli

TABLE = "name;age;zip;disease\n" + "".join(
    f"p{n};{20 + n % 4};4{n % 2}1;{('flu', 'cold', 'asthma')[n % 3]}\n" for n in range(24)
)
HIERARCHIES = {
    "age": "20;20-21;*\n21;20-21;*\n22;22-23;*\n23;22-23;*\n",
    "zip": "401;40*;*\n411;41*;*\n",
    "disease": "flu;lung;*\ncold;lung;*\nasthma;lung;*\n",
}


def attribute(
    name: str, kind: str, datatype: str = "String", *, levels: tuple[str, str] | None = None, more: str = ""
) -> str:
    ref = f"<ref>hierarchies/{name}.csv</ref>" if levels else ""
    ref += f"<min>{levels[0]}</min><max>{levels[1]}</max>" if levels else ""
    return (
        f"<assigment><name>{name}</name><type>{kind}_ATTRIBUTE</type><datatype>{datatype}</datatype>{ref}{more}"
        "</assigment>"
    )


def config(*criteria: str, more: str = "", metric: str = "Loss", outliers: str = "0.05") -> str:
    listed = "".join(f"<criterion>{text}</criterion>" for text in criteria)
    return (
        "<config><suppressTuplesInNonAnonymousOutput>true</suppressTuplesInNonAnonymousOutput>"
        "<suppressionString>*</suppressionString><suppressedAttributeTypes></suppressedAttributeTypes>"
        "<practicalMonotonicity>false</practicalMonotonicity>"
        f"<relativeMaxOutliers>{outliers}</relativeMaxOutliers><metric>{metric}</metric>{more}"
        f"<criteria>{listed}</criteria></config>"
    )


ATTRIBUTES = (
    attribute("name", "IDENTIFYING"),
    attribute("age", "QUASI_IDENTIFYING", "Integer", levels=("All", "All")),
    attribute("zip", "QUASI_IDENTIFYING", levels=("0", "All")),
    attribute("disease", "SENSITIVE", levels=("All", "All")),
)


def project(path: Path, changes: Mapping[str, str | bytes | None] | None = None) -> Path:
    """A project as ARX saves one: XML and CSV parts, and serialised ones beside them (which are not to be opened)."""
    parts: dict[str, str | bytes | None] = {
        "metadata.xml": "<metadata><version>3.9.1</version><vocabulary>2.0</vocabulary></metadata>",
        "project.dat": b"\xac\xed\x00\x05sr\x00",
        "project.xml": '<project><name>clinic</name><separator>;</separator><quote>"</quote></project>',
        "data/input.csv": TABLE,
        "data/input_subset.csv": TABLE,
        "input/config.dat": b"\xac\xed\x00\x05sr\x00",
        "input/config.xml": config("3-anonymity", "distinct-2-diversity for attribute 'disease'"),
        "input/definition.xml": f"<definition>{''.join(ATTRIBUTES)}</definition>",
        **{f"input/hierarchies/{name}.csv": content for name, content in HIERARCHIES.items()},
        **(changes or {}),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            if content is not None:
                packed.writestr(name, content)
    return path


NUMBERS = ("abc", "x", "NaN", "Infinity", "1e400", "-0.1", "1e3000000", "1.2.3", "0x1", "1_0", "٣")


def renamed(part: str) -> str:
    return f"<definition>{''.join(ATTRIBUTES)}</definition>".replace("age.csv", part)


def levels(highest: str) -> str:
    age = attribute("age", "QUASI_IDENTIFYING", levels=("0", highest))
    return f"<definition>{age}{''.join(ATTRIBUTES[2:])}</definition>"


def weighed(weight: str) -> str:
    said = f"<attribute>age</attribute><weight>{weight}</weight>"
    return f"<attributeWeights><attributeWeight>{said}</attributeWeight></attributeWeights>"


def imported(tmp_path: Path, changes: Mapping[str, str | bytes | None] | None = None) -> tuple[Any, Any]:
    found, _ = import_project(project(tmp_path / "clinic.deid", changes), tmp_path / "reveil.toml", None)
    return found, reveil.load_policy(tmp_path / "reveil.toml")


def test_a_project_becomes_a_policy_that_publishes(tmp_path: Path) -> None:
    source = project(tmp_path / "clinic.deid")
    code, out, err = cli("init", str(source), "--policy", str(tmp_path / "reveil.toml"))
    assert code == 0, err
    assert "All that it says has an equivalent." in out
    policy = reveil.load_policy(tmp_path / "reveil.toml")
    assert policy.named("drop") == ("name",) and policy.named("quasi") == ("age", "zip")
    assert policy.guarantee.stated == {"k": 3, "l": 2}
    assert (policy.method.name, policy.method.loss, float(policy.method.suppress)) == ("full-domain", "geometric", 0.05)
    release = reveil.anonymize(tmp_path / "clinic.csv", policy)
    assert release.certificate.holds
    assert {*release.table["age"]} <= {"20", "21", "22", "23", "20-21", "22-23", "*"}


def test_only_what_java_did_not_serialise_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    whole = zipfile.ZipFile.open

    def noted(self: zipfile.ZipFile, name: Any, *rest: Any, **more: Any) -> Any:
        opened.append(name)
        return whole(self, name, *rest, **more)

    source = project(tmp_path / "clinic.deid")
    monkeypatch.setattr(zipfile.ZipFile, "open", noted)
    import_project(source, tmp_path / "reveil.toml", "other")
    assert not [name for name in opened if name.endswith(".dat")]
    assert reveil.load_policy(tmp_path / "reveil.toml").series.name == "other"


@pytest.mark.parametrize(
    ("criterion", "stated"),
    [
        ("entropy-2.5-diversity for attribute 'disease'", {"k": 3, "l": "5/2", "diversity": "entropy"}),
        ("shannon-entropy-2-diversity for attribute 'disease'", {"k": 3, "l": 2, "diversity": "entropy"}),
        ("recursive-(3.0,2)-diversity for attribute 'disease'", {"k": 3, "l": 2, "c": 3, "diversity": "recursive"}),
        ("0.2-closeness with equal ground-distance for attribute 'disease'", {"t": "1/5", "distance": "equal"}),
        ("0.2-closeness with hierarchical distance for attribute 'disease'", {"t": "1/5", "distance": "hierarchical"}),
        ("basic-1.5-likeness for attribute 'disease'", {"beta": "3/2", "likeness": "basic"}),
    ],
)
def test_criteria_are_read(tmp_path: Path, criterion: str, stated: dict[str, Any]) -> None:
    with_k = "k" in stated
    found, policy = imported(tmp_path, {"input/config.xml": config(*["3-anonymity"] * with_k, criterion)})
    assert not found.unknown
    wanted = reveil.load_policy(
        {
            "columns": {"age": "quasi", "disease": "sensitive"},
            "guarantee": {**stated}
            | ({} if with_k else {"model": policy.guarantee.model})
            | ({"reference": "original"} if "t" in stated else {}),
        }
    )
    assert policy.guarantee.conditions == wanted.guarantee.conditions
    assert (policy.columns["disease"].hierarchy is not None) == (stated.get("distance") == "hierarchical")


def test_what_has_no_equivalent_is_listed(tmp_path: Path) -> None:
    definition = [
        attribute("name", "IDENTIFYING"),
        attribute("age", "QUASI_IDENTIFYING", "Integer", levels=("1", "2")),
        attribute("zip", "QUASI_IDENTIFYING", more="<microAggregationFunction>Mode</microAggregationFunction>"),
        attribute("disease", "SENSITIVE"),
    ]
    weights = "".join(
        f"<attributeWeight><attribute>{name}</attribute><weight>{weight}</weight></attributeWeight>"
        for name, weight in {"age": 1.0, "zip": 0.25}.items()
    )
    said = config(
        "2-anonymity",
        "3-anonymity",
        "1.0-disclosure privacy for attribute 'disease'",
        "(0.1,0.2)-presence",
        metric="Non-uniform entropy",
        more=f"<attributeWeights>{weights}</attributeWeights>",
    )
    changes = {
        "input/definition.xml": f"<definition>{''.join(definition)}</definition>",
        "input/config.xml": said,
        "input/hierarchies/zip.csv": None,
    }
    found, policy = imported(tmp_path, changes)
    assert policy.guarantee.stated == {"k": 3}  # the stricter one
    assert (policy.columns["age"].weight, policy.columns["zip"].weight) == (2, 0.5)
    listed = "\n".join(found.unknown)
    assert (policy.columns["age"].lowest, policy.columns["age"].highest) == (1, 2)
    for part in ("microAggregationFunction", "disclosure privacy", "presence", "Non-uniform entropy"):
        assert part in listed
    written = (tmp_path / "reveil.toml").read_text()
    assert all(f"# - {line}" in written for line in found.unknown)
    code, out, _ = cli("init", str(tmp_path / "clinic.deid"), "--policy", str(tmp_path / "b" / "p.toml"), "--json")
    assert code == 2 or json.loads(out)["no_equivalent"] == found.unknown


@pytest.mark.parametrize("written", ["\t", "&#9;", "\n    |\n  "])
def test_any_separator_is_read(tmp_path: Path, written: str) -> None:
    separator = "|" if "|" in written else "\t"
    changes = {
        "project.xml": f"<project><name>clinic</name><separator>{written}</separator></project>",
        "data/input.csv": TABLE.replace(";", separator),
        **{f"input/hierarchies/{name}.csv": text.replace(";", separator) for name, text in HIERARCHIES.items()},
    }
    _, policy = imported(tmp_path, changes)
    assert policy.input.delimiter == separator
    release = reveil.anonymize(tmp_path / "clinic.csv", policy)
    assert release.table.columns == ["age", "zip", "disease"]
    assert {*release.table["age"]} <= {"20", "21", "22", "23", "20-21", "22-23", "*"}


def test_names_do_not_break_out_of_comments(tmp_path: Path) -> None:
    names = attribute("a\n[guarantee]\nk = 1\n#", "IDENTIFYING")
    definition = f"<definition>{names}{''.join(ATTRIBUTES[1:])}</definition>"
    _, policy = imported(tmp_path, {"input/definition.xml": definition})
    assert policy.guarantee.stated == {"k": 3, "l": 2}


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"input/../../evil.csv": "x"}, "R912", "outside"),
        ({"/etc/evil": "x"}, "R912", "outside"),
        ({"input\\..\\evil.csv": "x"}, "R912", "outside"),
        ({"input/config.xml": '<!DOCTYPE c [<!ENTITY a "b">]><config>&a;</config>'}, "R911", "entities are not read"),
        ({"input/config.xml": '<!DOCTYPE c SYSTEM "file:///etc/passwd"><config/>'}, "R911", "entities are not read"),
        ({"input/definition.xml": "<a>" * 100 + "</a>" * 100}, "R911", "inside each other"),
        ({"input/definition.xml": "<definition><assigment>"}, "R911", "definition.xml"),
        ({"input/definition.xml": None}, "R911", "holds no input/definition.xml"),
        ({"input/config.xml": '<?xml version="1.0" encoding="klingon"?><config/>'}, "R911", "config.xml"),
        ({"input/config.xml": f"<config>{'<a/>' * 100_000}</config>"}, "R911", "elements and attributes"),
        ({"input/config.xml": f"<config>{' ' * 2_000_000}</config>"}, "R912", "2,000,000 bytes"),
        ({"project.xml": "<project><separator>||</separator></project>"}, "R911", "separator '||'"),
        ({"project.xml": "<project><separator> \n </separator></project>"}, "R911", "separator ''"),
        ({"project.xml": '<project><separator>"</separator></project>'}, "R911", "is not one character"),
        ({"input/hierarchies/age.csv": f"{'2' * 131_073};*\n"}, "R911", "field larger"),
        ({"input/definition.xml": renamed("age.txt"), "input/hierarchies/age.txt": "20;*\n"}, "R911", "ends in .csv"),
        ({"input/definition.xml": renamed("age.dat"), "input/hierarchies/age.dat": "20;*\n"}, "R911", "ends in .csv"),
        ({"input/definition.xml": renamed("age"), "input/hierarchies/age": "20;*\n"}, "R911", "ends in .csv"),
        *(({"input/config.xml": config("3-anonymity", outliers=no)}, "R911", "relativeMaxOutliers") for no in NUMBERS),
        *(({"input/config.xml": config("3-anonymity", more=weighed(no))}, "R911", "weight") for no in NUMBERS),
        *(({"input/config.xml": config(f"{no}-anonymity")}, "R911", "criterion") for no in ("1.2.3", "1e3000000", ".")),
        ({"input/config.xml": config("1e400-closeness with equal distance for attribute 'disease'")}, "R911", "1e400"),
        ({"input/definition.xml": levels("9" * 5_000)}, "R911", "highest level"),
        ({"data/input.csv": None}, "R911", "holds no table"),
        ({"data/input.csv": None, "data/input.dat": b"\xac\xed\x00\x05"}, "R911", "holds no table"),
    ],
)
def test_hostile_and_damaged_projects_are_refused(
    tmp_path: Path, changes: dict[str, str | bytes | None], code: str, words: str
) -> None:
    source = project(tmp_path / "clinic.deid", changes)
    with pytest.raises(InputError, match=code) as refused:
        import_project(source, tmp_path / "reveil.toml", None)
    assert words in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["clinic.deid"]


def test_what_unpacks_to_too_much_is_refused_while_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arx_project, "LARGEST", {".xml": 100_000, ".csv": 100_000})
    source = project(tmp_path / "clinic.deid", {"input/hierarchies/age.csv": "0" * 200_000})
    with pytest.raises(InputError, match="R912"):
        import_project(source, tmp_path / "reveil.toml", None)
    content = bytearray(project(tmp_path / "liar.deid", {"input/config.xml": " " * 200_000}).read_bytes())
    with pytest.raises(InputError, match="R912"):
        import_project(tmp_path / "liar.deid", tmp_path / "reveil.toml", None)
    assert len(content) < 10_000  # a small file


def damaged(path: Path, part: str) -> Path:
    """A project one part of which no longer unpacks."""
    with zipfile.ZipFile(project(path)) as packed:
        info = packed.getinfo(part)
    content = bytearray(path.read_bytes())
    start = info.header_offset + 30 + len(info.filename)
    content[start : start + info.compress_size] = b"\xff" * info.compress_size
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("part", ["input/config.xml", "input/hierarchies/zip.csv", "data/input.csv"])
def test_parts_that_no_longer_unpack_leave_nothing_behind(tmp_path: Path, part: str) -> None:
    source = damaged(tmp_path / "clinic.deid", part)
    with pytest.raises(InputError, match="R911"):
        import_project(source, tmp_path / "reveil.toml", None)
    assert [path.name for path in tmp_path.iterdir()] == ["clinic.deid"]


def test_parts_that_are_packed_otherwise_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(project(tmp_path / "a.deid")) as plain:
        parts = {name: plain.read(name) for name in plain.namelist()}
    with zipfile.ZipFile(tmp_path / "clinic.deid", "w", zipfile.ZIP_LZMA) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    with pytest.raises(InputError, match="R911"):
        import_project(tmp_path / "clinic.deid", tmp_path / "reveil.toml", None)


@pytest.mark.parametrize("kind", [OSError, MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("there", [False, True])
def test_half_a_project_is_not_left_whatever_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException], there: bool
) -> None:
    def broken(*_: Any) -> Any:
        yield b"name;age\n"
        raise kind

    source = project(tmp_path / "clinic.deid")
    if there:
        (tmp_path / "hierarchies").mkdir()
        (tmp_path / "hierarchies" / "mine.csv").write_text("1;*\n")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(arx_project.Archive, "pieces", whole_but(arx_project.Archive.pieces, "data/input.csv", broken))
    with pytest.raises(kind):
        import_project(source, tmp_path / "reveil.toml", None)
    assert sorted(tmp_path.rglob("*")) == before


def whole_but(usual: Any, part: str, other: Any) -> Any:
    return lambda self, name, *rest: other() if name == part else usual(self, name, *rest)


def test_one_hierarchy_that_many_columns_name_counts_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arx_project, "LARGEST", {".xml": 100_000, ".csv": 1_000})
    assert imported(tmp_path)[0].hierarchies
    columns = "".join(
        attribute(f"age{n}", "QUASI_IDENTIFYING", levels=("All", "All")).replace(f"age{n}.csv", "age.csv")
        for n in range(30)
    )
    source = project(tmp_path / "many.deid", {"input/definition.xml": f"<definition>{columns}</definition>"})
    with pytest.raises(InputError, match="R912"):
        import_project(source, tmp_path / "many.toml", None)


def test_a_file_that_is_no_project_and_files_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "x.deid").write_text("age,zip\n")
    with pytest.raises(InputError, match="R911"):
        import_project(tmp_path / "x.deid", tmp_path / "reveil.toml", None)
    (tmp_path / "clinic.csv").write_text("mine")
    with pytest.raises(InputError, match="R913"):
        import_project(project(tmp_path / "clinic.deid"), tmp_path / "reveil.toml", None)
    assert (tmp_path / "clinic.csv").read_text() == "mine"
