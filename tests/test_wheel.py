"""What is installed: the distribution's name wherever it is written, and the wheel in a fresh environment."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from iddm import __version__
from iddm.utils.extras import DISTRIBUTION

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
README = (ROOT / "README.md").read_text()


def test_every_instruction_to_install_names_our_distribution_and_an_extra_that_exists() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    told = [match for page in pages for match in re.findall(r"pip install '([\w-]+)\[(\w+)\]'", page.read_text())]
    assert len(told) >= 2
    assert [(name, extra) for name, extra in told if name != DISTRIBUTION or extra not in PROJECT["optional-dependencies"]] == []


def test_the_citation_is_of_this_version() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.slow
def test_the_wheel_runs_the_first_commands_of_the_readme_in_a_fresh_environment(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*command: str | Path) -> str:
        done = subprocess.run(list(map(str, command)), cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{shlex.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    run(sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "--quiet", "--wheel-dir", tmp_path)
    (wheel,) = tmp_path.glob(f"{DISTRIBUTION.replace('-', '_')}-{__version__}-*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    bin = tmp_path / "venv" / "bin"
    run(bin / "python", "-m", "pip", "install", "--quiet", wheel)
    assert run(bin / "iddm", "--version").strip() == __version__
    block = next(block for block in re.findall(r"```\n(.*?)```", README, re.DOTALL) if block.startswith("iddm "))
    commands = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert [command[1] for command in commands] == ["demos", "inspect", "train", "eval"]
    few = {"train": ["--steps", "2048", "--hidden", "16", "16"], "eval": ["--episodes", "2"]}
    said = ""
    for program, name, *rest in commands:
        said = run(bin / program, name, *rest, *few.get(name, []))
    assert "HalfCheetah-v5: " in said
    assert "Its demonstrations: " in said
