"""The tree of a column: what each edit does, whatever the order; and the page, with and without scripts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from console_support import Console, picture, sound
from hypothesis import given, settings
from hypothesis import strategies as st

from reveil.base.errors import InputError
from reveil.hierarchies.files import read_paths
from reveil.serve import trees
from reveil.serve.trees import Tree

FLAT: Tree = dict.fromkeys(("DE", "FR", "JP", "IN"), ())


def paths(*labels: str) -> list[tuple[str, ...]]:
    return [tuple(label.split("/")) for label in labels]


def test_groups_in_groups(tmp_path: Path) -> None:
    tree = trees.put_under("c", FLAT, paths("DE", "FR"), "Europe")
    tree = trees.put_under("c", tree, paths("JP"), "East; far")
    tree = trees.put_under("c", tree, paths("East; far", "IN"), "Asia")
    assert tree == {"DE": ("Europe",), "FR": ("Europe",), "JP": ("Asia", "East; far"), "IN": ("Asia",)}
    tree = trees.put_under("c", trees.add_values("c", tree, ["KR"]), paths("KR"), "East; far")  # which is inside Asia
    assert tree["KR"] == ("Asia", "East; far")
    trees.save("c", tmp_path / "h.csv", tree)
    assert read_paths("c", tmp_path / "h.csv")["KR"] == ("Asia", "East; far", "KR")
    assert trees.load("c", tmp_path / "h.csv") == tree
    shown = trees.nodes(tree, {"DE": 3, "FR": 1, "JP": 2})
    assert [(node.label, node.rows, node.values) for node in shown] == [("Europe", 4, 2), ("Asia", 2, 3)]
    assert [node.label for node in shown[1].children] == ["East; far", "IN"]
    out = trees.take_out("c", tree, paths("Asia", "Europe/DE"))
    assert out == {"DE": (), "FR": ("Europe",), "JP": ("East; far",), "IN": (), "KR": ("East; far",)}
    assert trees.rename("c", tree, paths("Asia/East; far"), "Far East")["JP"] == ("Asia", "Far East")
    assert "KR" not in trees.remove("c", tree, paths("Asia/East; far/KR"), {})


def test_what_is_refused() -> None:
    tree = trees.put_under("c", FLAT, paths("DE"), "Europe")
    inner = trees.put_under("c", tree, paths("Europe"), "World")
    for bad in (
        lambda: trees.put_under("c", tree, [], "x"),
        lambda: trees.put_under("c", tree, paths("US"), "x"),
        lambda: trees.put_under("c", tree, paths("FR"), "DE"),
        lambda: trees.put_under("c", tree, paths("FR"), "*"),
        lambda: trees.put_under("c", tree, paths("FR"), ""),
        lambda: trees.put_under("c", inner, paths("World"), "Europe"),
        lambda: trees.rename("c", tree, paths("FR"), "x"),
        lambda: trees.rename("c", inner, paths("World"), "Europe"),
        lambda: trees.remove("c", tree, paths("FR"), {"FR": 1}),
        lambda: trees.add_values("c", tree, ["Europe"]),
    ):
        with pytest.raises(InputError, match="R303"):
            bad()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_is_done_every_value_stays_and_the_file_reads_the_same(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.csv"
    tree = dict.fromkeys(data.draw(st.lists(st.sampled_from(["a", "b;", 'c"', "d\ne", " f", "1"]), unique=True)), ())
    for _ in range(data.draw(st.integers(0, 6))):
        there = sorted({(*groups, value) for value, groups in tree.items()} | set(trees.groups_of(tree).values()))
        ticked = data.draw(st.lists(st.sampled_from(there or [("none",)]), max_size=3))
        act = data.draw(st.sampled_from([trees.put_under, trees.take_out, trees.rename]))
        try:
            more = () if act is trees.take_out else (data.draw(st.sampled_from(["G", "H,", "I|", "a"])),)
            changed = act("c", tree, ticked, *more)  # type: ignore[operator]
            trees.save("c", file, changed)
        except InputError:
            continue
        assert set(changed) == set(tree)
        assert trees.load("c", file) == changed
        names = [path[-1] for path in trees.groups_of(changed).values()]
        assert len(set(trees.groups_of(changed).values())) == len(names)
        tree = changed


LINES = ["patient id,age,country,diagnosis"]
LINES += [f"P{i},{20 + i % 50},{['DE', 'FR', 'JP', 'IN', '<b>x</b>'][i % 5]},{'abcdef'[i % 6]}ill" for i in range(60)]


@pytest.mark.parametrize("scripts", [True, False])
def test_a_tree_is_made_and_an_imported_one_edited(
    browser: Any, console: Console, tmp_path: Path, scripts: bool
) -> None:
    context = browser.new_context(java_script_enabled=scripts)
    context.set_default_timeout(90_000)
    page = context.new_page()
    page.goto(console.link())
    (tmp_path / "countries.csv").write_text("\n".join(LINES))
    page.goto(f"{console.address}/new")
    page.set_input_files("#file", tmp_path / "countries.csv")
    page.click("text=Look at it")
    page.wait_for_url("**/columns")
    page.select_option("#role-2", "quasi")
    page.click("button:has-text('Go on')")
    page.wait_for_url("**/coarser")
    page.click("button:has-text('Make a tree of country')")
    page.wait_for_url("**/tree/2")
    tick(page, "DE", "FR")
    page.fill("#group", "Europe")
    page.click("button:has-text('Put the ticked under it')")
    page.wait_for_selector("strong:has-text('Europe')")
    assert "2 values, 24 rows" in page.inner_text("main")
    if scripts:
        sound(page)
    tick(page, "Europe", "JP", "<b>x</b>")
    page.fill("#group", "Somewhere")
    page.press("#group", "Enter")  # the first button is the one that is meant
    page.wait_for_selector(".tree .tree .tree")
    if scripts:
        picture(page, "tree")
    levels = page.inner_text("section:has-text('What each level shows')")
    assert "Somewhere (48)" in levels
    assert page.locator("main b:text-is('x')").count() == 0
    page.click("text=Back to all columns")
    page.wait_for_url("**/coarser")
    (tmp_path / "own.csv").write_text("DE;West;*\nFR;West;*\nJP;East;*\n")
    page.set_input_files("#file-2", tmp_path / "own.csv")  # takes the place of the one that was made
    page.click("button:has-text('Show the levels')")
    page.wait_for_selector(".fault:has-text('IN')")
    page.click("button:has-text('Edit a tree of country')")
    page.wait_for_url("**/tree/2")
    assert "Not in the tree yet: <b>x</b>, IN" in re.sub(r"\s+", " ", page.inner_text(".fault.ask"))
    tick(page, "IN", "<b>x</b>")
    page.fill("#group", "East")
    page.click("button:has-text('Put the ticked under it')")
    page.wait_for_selector("text=Somewhere", state="detached")
    assert page.locator(".fault.ask").count() == 0
    context.close()


def tick(page: Any, *labels: str) -> None:
    for label in labels:
        box = page.locator("label.line", has=page.locator(f"text=/^{re.escape(label)} /")).first
        box.locator("input").check()
