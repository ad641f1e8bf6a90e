"""Every command in README.md and docs/ is one that the program takes; those in blocks are run (slow), and Python blocks too.

They run in the order of their page, in a directory of the page's own, as they are written but for the rules in `shortened`.
"""

import importlib.util
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

import iddm.cli
from iddm.cli import main
from iddm.cli.flags import parse_flags
from iddm.envs.spec import import_module
from iddm.errors import UserError
from iddm.report.pictures import drawing_backend
from tests.documents import NAMES, ROOT, blocks, mentioned, typed

WITH_COMMANDS = [name for name in NAMES if typed(name) or mentioned(name)]


class Parsed(Exception):
    """The flags are right; nothing further is done."""


def parse_only(*args, **kwargs) -> NoReturn:
    parse_flags(*args, **kwargs)
    raise Parsed


@pytest.mark.parametrize("name", WITH_COMMANDS)
def test_every_command_is_one_that_the_program_takes(name: str, clean: None, monkeypatch, capsys) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("iddm.envs.spec.import_module", cache(import_module))  # one command per process is what it is made for
    for module in pkgutil.iter_modules(iddm.cli.__path__, "iddm.cli."):
        if module.name != "iddm.cli.flags" and hasattr(sys.modules[module.name], "parse_flags"):
            monkeypatch.setattr(f"{module.name}.parse_flags", parse_only)
    for program, *words in typed(name) + mentioned(name):
        said = f"{program} {' '.join(words)}"
        if program == "make":
            assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), said
        elif program == "python":
            assert (ROOT / words[0]).is_file(), said
        elif "--help" not in words:
            assert program == "iddm", said
            code = 0
            with pytest.raises(Parsed):
                code = main(words)
            assert code == 0, f"{said}: {capsys.readouterr().err}"


FEWER = {
    "train": ["--steps", "2048"],
    "expert": ["--steps", "2048"],
    "toy": ["--seeds", "1", "--steps", "1024", "--choices", "2"],
    "eval": ["--episodes", "2"],
    "demos": ["--episodes", "2"],
    "compare": ["--episodes", "2"],
    "report": ["--episodes", "2"],
    "film": ["--seconds", "0.5"],
}
"""What a command is run with, in place of what it says of that."""


def shortened(words: list[str]) -> list[str]:
    """A command that takes moments. Of a study of the catalogue, the runs are listed; one from a file has one seed."""
    _, name, *rest = words
    if name == "study" and rest and "--list" not in rest:
        return [*words, *(["--seeds", "1"] if rest[0].endswith(".toml") else ["--list"])]
    fewer = [] if "--resume" in rest else FEWER.get(name, [])
    flags = set(fewer[::2])
    return [word for i, word in enumerate(words) if not {word, words[i - 1]} & flags] + fewer


def can_run(words: list[str]) -> bool:
    """Whether it needs nothing that is not installed; what sets up an environment is for other tests."""
    lacks_sb3 = {"sb3", "--sb3"} & set(words) and importlib.util.find_spec("stable_baselines3") is None
    return words[0] != "make" and not lacks_sb3 and (words[1] != "film" or can_draw())


def can_draw() -> bool:
    try:
        return bool(drawing_backend())
    except UserError:
        return False


FOUND_SOMETHING = {"doctor": (0, 1), "inspect": (0, 2)}
"""Exit codes of commands that say what is wrong."""


def run(words: list[str], folder: Path) -> None:
    program = {"iddm": [sys.executable, "-m", "iddm"], "python": [sys.executable]}[words[0]]
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([*program, *words[1:]], cwd=folder, env=env, capture_output=True, text=True)
    said = f"{' '.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    assert done.returncode in FOUND_SOMETHING.get(words[1], (0,)), said


@pytest.fixture(scope="module")
def workplace(tmp_path_factory) -> Path:
    """A clone's pages, examples and results, with what the pages suppose that the reader has: a run, demonstrations, a study."""
    folder = tmp_path_factory.mktemp("workplace")
    for name in ("docs", "examples", "results"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "README.md", folder)
    (toml,) = (text.replace('"HalfCheetah", ', "") for text in blocks("docs/compare.md", "toml"))  # one task
    study = folder / "examples" / "own_study.toml"
    for file, text in ((study, study.read_text()), (folder / "weights.toml", toml)):
        file.write_text(re.sub(r"\b[\d_]+_000\b", "2_048", text))
    for words in (
        "demos HalfCheetah --episodes 2 --out demos.npz",
        "demos HalfCheetah --episodes 5 --with-actions --out with_actions.npz",
        *(
            f"train HalfCheetah --learner ppo --steps 2048 --seed {seed} --out runs/{name}"
            for seed, name in enumerate(("a", "b", "c", "mine"))
        ),
    ):
        run(["iddm", *words.split()], folder)
    shutil.copy(folder / "runs" / "a" / "policy.safetensors", folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if typed(name)])
def test_the_commands_of_a_page_run_one_after_another(name: str, workplace: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(workplace, tmp_path / "here")
    for words in map(shortened, filter(can_run, typed(name))):
        if words[1] in ("train", "expert") and "--out" in words:
            shutil.rmtree(folder / words[words.index("--out") + 1], ignore_errors=True)
        run(words, folder)


def excerpts(name: str) -> list[str]:
    """The page's Python that stands in an example."""
    examples = [path.read_text() for path in (ROOT / "examples").glob("*.py")]
    return [block for block in blocks(name, "python") if any(block.strip() in text for text in examples)]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if len(blocks(name, "python")) > len(excerpts(name))])
def test_the_python_of_a_page_runs(name: str, workplace: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(workplace, tmp_path / "here")
    shutil.rmtree(folder / "runs" / "mine")
    run(["iddm", "export", "runs/a", "--to", "npz", "--out", "policy.npz"], folder)
    text = "".join(block for block in blocks(name, "python") if block not in excerpts(name))
    text = re.sub(r"(steps=)[\d_]+|(?=on_iteration=)", lambda found: "steps=2_048" + ("" if found[1] else ", "), text)
    env = "CartPole" if "CartPole" in text else "HalfCheetah"
    start = f"import iddm, numpy as np\nobs = iddm.bundled_demos({env!r}).observations[0][0]\n"
    (folder / "page.py").write_text(start + text)
    run(["python", "page.py"], folder)
