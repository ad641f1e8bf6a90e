"""The tree: small files, and a map in CONTRIBUTING.md that agrees with what is there."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "iddm"
MAX_LINES = 300

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
MAP = re.findall(r"^\| `([\w./]+)` \|", CONTRIBUTING, re.MULTILINE)
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_no_source_file_has_more_than_300_lines() -> None:
    files = [file for file in PACKAGE.rglob("*") if file.suffix in (".py", ".js", ".css", ".html")]
    lengths = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in files}
    assert len(lengths) > 100
    assert {file: length for file, length in lengths.items() if length > MAX_LINES} == {}


def test_the_map_names_every_folder_and_top_level_module_and_nothing_else() -> None:
    folders = {f"{file.parent.relative_to(PACKAGE)}/" for file in PACKAGE.rglob("*") if file.is_file()} - {"./"}
    folders = {folder for folder in folders if "__pycache__" not in folder}
    modules = {file.name for file in PACKAGE.glob("*.py")}
    assert sorted(MAP) == sorted(folders | modules)


def test_the_map_is_in_the_order_of_the_import_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    level = {room: i for i, layer in enumerate(reversed(contract["layers"])) for room in layer.split(" : ")}
    rooms = [name.removesuffix("/").removesuffix(".py") for name in MAP if name.count("/") <= name.endswith("/")]
    order = [level[room] for room in rooms if room != "__init__"]
    assert order == sorted(order)
    assert set(level) == set(rooms) - {"__init__"}


def test_what_to_add_where_names_files_that_exist() -> None:
    table = CONTRIBUTING.partition("## Adding something")[2].partition("\n\nA method")[0]
    named = [name for name in re.findall(r"`([\w./]+)`", table) if "/" in name or name.endswith(".py")]
    assert len(named) > 10
    assert [name for name in named if not (PACKAGE / name).exists()] == []


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_links_of_the_docs_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    assert [target for target in targets if "://" not in target and not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_functions_are_where_the_docs_say(page: Path) -> None:
    """`name` in [file.py](path): the file has that name."""
    for names, target in re.findall(r"((?:`[\w.]+`(?:, | and )?)+) in\s+\[[\w/.]+\]\(([^)]+\.py)\)", page.read_text()):
        text = (page.parent / target).read_text()
        for name in re.findall(r"`([\w.]+)`", names):
            last = name.rpartition(".")[2]
            assert re.search(rf"(def|class) {last}\b|^\s*{last}\b.*[:=]", text, re.MULTILINE), f"{target} has no {name}"
