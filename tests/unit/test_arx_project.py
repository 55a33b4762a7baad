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


def test_a_file_that_is_no_project_and_files_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "x.deid").write_text("age,zip\n")
    with pytest.raises(InputError, match="R911"):
        import_project(tmp_path / "x.deid", tmp_path / "reveil.toml", None)
    (tmp_path / "clinic.csv").write_text("mine")
    with pytest.raises(InputError, match="R913"):
        import_project(project(tmp_path / "clinic.deid"), tmp_path / "reveil.toml", None)
    assert (tmp_path / "clinic.csv").read_text() == "mine"
