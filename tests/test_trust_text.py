"""What strangers wrote stays text: on a page, in a terminal, in an error."""

import ast
import html
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import iddm
from iddm.cli import main
from iddm.config import default_config
from iddm.demos import Demos, save_demos
from iddm.report.markup import Markup, escaped, fill
from iddm.report.run_page import Row, page
from iddm.theory.report import print_theory
from iddm.training.demonstrations import DemosRecord
from iddm.training.display import TrainingDisplay
from iddm.training.run_dir import Run

ATTACK = "</title></pre><script>alert('1')</script><img src=x onerror=alert(2)>"


@pytest.mark.parametrize("field", ["env", "demos", "source", "commit", "who", "finding"])
def test_nothing_from_a_run_reaches_its_page_as_markup(field: str, tmp_path: Path) -> None:
    text = dict.fromkeys(["env", "demos", "source", "commit", "who", "finding"], "1") | {field: ATTACK}
    config = replace(default_config("CartPole", "iddm"), env=text["env"], demos=text["demos"])
    with Run.create(tmp_path / "run", config, DemosRecord(text["source"], "0", 1, 9, (3.0,), (0,), (0.0,), (1.0,))) as run:
        run.metrics_file.append({"iteration": 1, "steps": 10.0, "seconds": 1.0, "episodes": 1.0, "episode_return": 2.0})
    (run.path / "about.json").write_text(json.dumps({"version": "1", "commit": text["commit"], "began": "2026-01-01T00:00:00"}))
    made = page(run, [Row(text["who"], 1.0, 0.0, 3, None)], [text["finding"]])
    assert "<script>alert" not in made
    assert "<img src=x" not in made
    assert html.escape("<script>alert") in made


@given(st.text(), st.text())
def test_a_value_is_escaped_unless_it_is_markup(value: str, other: str) -> None:
    filled = fill("<p>{{value}}|{{other}}</p>", value=value, other=[other, Markup("<b>")])
    assert filled == f"<p>{html.escape(value)}|{html.escape(other)}<b></p>"
    assert escaped(escaped(value)) == html.escape(value)


def test_markup_joined_with_text_is_text_again() -> None:
    joined = Markup("<b>") + ATTACK
    assert not isinstance(joined, Markup)
    assert "<script>" not in fill("{{x}}", x=joined)


@pytest.mark.parametrize("name", ["out[v2].npz", "out[/v2].npz", "out[bold red]x[/].npz", "out:smile:.npz"])
def test_names_of_files_are_printed_as_they_are(name: str, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).parent.mkdir(exist_ok=True)
    save_demos(Demos((np.zeros((3, 2)),)), "c.npz")
    assert main(["convert", "c.npz", name]) == 0
    assert capsys.readouterr().out.startswith(f"{name}: 1 episodes")


def test_no_console_of_ours_reads_markup() -> None:
    for file in Path(iddm.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "Console":
                given_flags = {word.arg: getattr(word.value, "value", None) for word in node.keywords}
                assert given_flags.get("markup") is False, f"{file}:{node.lineno}: give Console markup=False"
                assert given_flags.get("emoji") is False, f"{file}:{node.lineno}: give Console emoji=False"


def test_the_display_prints_an_environment_as_it_is_named() -> None:
    console = Console(file=io.StringIO(), markup=False, emoji=False, force_terminal=True, width=100)
    with TrainingDisplay("iddm on my[/env]:make", 100, console=console) as display:
        display({"steps": 50.0, "seconds": 1.0, "episode_return": 1.0})
    assert "iddm on my[/env]:make" in console.file.getvalue()


def test_styles_are_no_markup() -> None:
    console = Console(file=io.StringIO(), markup=False, width=140)
    print_theory(console=console)
    assert "[dim]" not in console.file.getvalue()
    assert "[/]" not in console.file.getvalue()
