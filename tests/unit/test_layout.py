"""The rules of the folder tree, checked: who may import whom, no cycles, nothing grows out of hand."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "reveil"
MODULES = {
    ".".join(("reveil", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in SOURCE.rglob("*.py")
}
FORBIDDEN = {  # module or package -> what it may not import, directly or through others
    "reveil.verify": ("reveil.write", "reveil.publish", "reveil.published.reader"),
    "reveil.verify.verify": ("reveil.plan", "reveil.ledger"),
    "reveil.published": ("reveil.verify", "reveil.write", "reveil.plan", "reveil.publish", "reveil.ledger"),
    "reveil.verify.judges": (
        *("reveil.plan", "reveil.write", "reveil.publish", "reveil.ledger"),
        "reveil.background.breach_formulas",  # the planner chooses n by them; the judge has formulas of its own
    ),
    "reveil.plan": ("reveil.verify", "reveil.ledger", "reveil.write", "reveil.publish"),
    "reveil.ledger": ("reveil.plan", "reveil.verify", "reveil.publish", "reveil.policy"),
    "reveil.guarantees": ("reveil.policy", "reveil.plan", "reveil.verify", "reveil.audit", "reveil.publish"),
    "reveil.perturb.checks": (
        *("reveil.perturb.apply", "reveil.perturb.noise", "reveil.perturb.swapping", "reveil.perturb.pram"),
        *("reveil.perturb.microaggregation", "reveil.perturb.condensation", "reveil.write", "reveil.plan"),
    ),
    "reveil.audit": ("reveil.plan", "reveil.verify", "reveil.table.encode", "reveil.write", "reveil.publish"),
}


def imports(path: Path, at_load: bool) -> set[str]:
    """Modules of the package that a file imports: at load time only, or also when its functions run."""
    nodes = _running(ast.parse(path.read_text(encoding="utf-8")), at_load)
    found = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("reveil"):
            found.add(node.module)
            found |= {f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names if name.name.startswith("reveil")}
    return found & set(MODULES)


def _running(tree: ast.AST, at_load: bool = True) -> list[ast.AST]:
    """What is run when a file is loaded, or ever; never what only type checkers read."""
    nodes: list[ast.AST] = []
    for node in ast.iter_child_nodes(tree):
        typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        later = at_load and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if not typing_only and not later:
            nodes += [node, *_running(node, at_load)]
    return nodes


AT_LOAD = {name: imports(path, at_load=True) - {"reveil"} for name, path in MODULES.items()}
EVER = {name: imports(path, at_load=False) - {"reveil"} for name, path in MODULES.items()}  # also inside functions


def reachable(name: str, graph: dict[str, set[str]] = AT_LOAD) -> set[str]:
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        for other in graph[waiting.pop()] - seen:
            seen.add(other)
            waiting.append(other)
    return seen


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


@pytest.mark.parametrize("owner", FORBIDDEN)
def test_second_opinions_share_no_code_with_what_they_judge(owner: str) -> None:
    for name in MODULES:
        if within(name, owner):
            bad = {other for other in reachable(name, EVER) for banned in FORBIDDEN[owner] if within(other, banned)}
            assert not bad, f"{name} reaches {sorted(bad)}"


@pytest.mark.parametrize("owner", ["reveil.plan", "reveil.verify.judges"])
def test_planner_and_judge_work_out_bounds_by_themselves(owner: str) -> None:
    """Descriptors state the bound that is promised, for people and the audit. Who keeps or checks it may not look."""
    stated = {"promised", "at_best"}
    for name, path in MODULES.items():
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if within(name, owner) else ()
        read = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        assert not read & stated, f"{name} reads {sorted(read & stated)}"


def test_nothing_is_decided_by_the_name_of_a_guarantee() -> None:
    """Whoever needs to know something about a guarantee asks its descriptor."""
    names = {path.stem.replace("_", "-").removesuffix("-guarantee") for path in (SOURCE / "guarantees").glob("*.py")}
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and not within(name, "reveil.guarantees"):
                sides = [node.left, *node.comparators]
                texts = {c.value for side in sides for c in ast.walk(side) if isinstance(c, ast.Constant)}
                models = [side for side in sides if ast.unparse(side).split(".")[-1] in ("model", "name")]
                methods = [side for side in models if ast.unparse(side).endswith("method.name")]
                assert methods or not (models and texts & names), f"{name}: {ast.unparse(node)}"


def test_no_module_imports_itself_through_others() -> None:
    cycles = [name for name in MODULES if name in reachable(name)]
    assert not cycles


def test_the_oracle_imports_nothing_from_the_package() -> None:
    for path in (SOURCE.parents[1] / "tests" / "oracle").rglob("*.py"):
        assert not imports(path, at_load=False), path


def test_help_needs_no_heavy_library() -> None:
    heavy = {"polars", "numpy", "numba", "scipy", "sqlalchemy", "pydantic", "rich"}
    light = {"reveil.cli.app", *reachable("reveil.cli.app")}
    assert all(name.startswith(("reveil.cli", "reveil.base")) for name in light)
    for name in light:
        tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
        loaded = [node for node in _running(tree) if isinstance(node, ast.Import)]
        assert not {alias.name for node in loaded for alias in node.names} & heavy


def test_one_module_knows_spark() -> None:
    named = {
        name for name, path in MODULES.items() if re.search(r"(import|from) (pyspark|py4j)", path.read_text("utf-8"))
    }
    assert named == {"reveil.engine.spark"}


def test_nothing_but_the_command_line_knows_the_console() -> None:
    """It needs packages that others need not have."""
    users = {
        name
        for name in MODULES
        if not within(name, "reveil.serve")
        for other in EVER[name]
        if within(other, "reveil.serve")
    }
    assert users == {"reveil.cli.serving"}
    assert not any(within(other, "reveil.serve") for other in AT_LOAD["reveil.cli.serving"])


def test_the_top_of_the_tree_stays_small() -> None:
    entries = [path.name for path in SOURCE.iterdir() if not path.name.startswith("__") and path.name != "py.typed"]
    assert len(entries) <= 24, sorted(entries)
    assert {name for name in entries if name.endswith(".py")} <= {"publish.py"}


def test_modules_stay_readable() -> None:
    long = {name: lines for name, path in MODULES.items() if (lines := path.read_text("utf-8").count("\n")) > 400}
    assert not long


def test_functions_stay_readable() -> None:
    long = [
        f"{path.relative_to(SOURCE)}:{node.name} has {node.end_lineno - node.lineno + 1} lines"
        for path in MODULES.values()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno + 1 > 80
    ]
    assert not long


def test_kernels_are_typed_and_take_few_things() -> None:
    """Arrays that belong together are a named tuple; more than eight parameters are mixed up sooner or later."""
    untyped, crowded, seen = [], [], 0
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or not any(
                "kernel" in ast.unparse(d) for d in node.decorator_list
            ):
                continue
            seen += 1
            parameters = [*node.args.args, *node.args.kwonlyargs]
            if node.returns is None or any(parameter.annotation is None for parameter in parameters):
                untyped.append(f"{path.name}: {node.name}")
            if len(parameters) > 8:
                crowded.append(f"{path.name}: {node.name}")
    assert seen > 200
    assert not untyped and not crowded


def test_a_class_name_means_one_thing() -> None:
    places: dict[str, list[str]] = {}
    for name, path in MODULES.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name)
    assert not {name: where for name, where in places.items() if len(where) > 1}
