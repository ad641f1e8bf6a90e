"""What README.md and docs/ tell people to type: commands and Python, in the order of the page."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]

PLACEHOLDERS = {
    "ENV": "HalfCheetah-v5",
    "TASK": "HalfCheetah",
    "FILE": "demos.npz",
    "DIR": "runs/a",
    "DIR…": "runs/a",
    "RUN": "runs/a",
    "IN": "demos.npz",
    "OUT": "converted.npz",
    "M": "gaifo",
    "N": "4096",
    "S": "0",
    "…": "0:8",
    "npz|onnx|sb3": "npz",
    "module:function": "reach:make",
    "FILE.toml": "weights.toml",
}
"""What stands for the words that a reader replaces."""
WRITTEN = {"DIR": "runs/new", "FILE": "new.npz"}
"""The same after --out: something new."""
FENCED = r"^```(\w*)\n(.*?)^```$"


def blocks(page: str, language: str = "") -> list[str]:
    """The page's fenced blocks of a language."""
    found = re.findall(FENCED, (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    return [text for its, text in found if its == language]


def typed(page: str) -> list[list[str]]:
    """The commands in the page's blocks, as words."""
    lines = "\n".join(blocks(page)).replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := command(line))]


def mentioned(page: str) -> list[list[str]]:
    """The commands within the page's sentences, where they have more than a name."""
    text = re.sub(FENCED, "", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    found = [command(code) for code in re.findall(r"`((?:iddm|make|python) [^`]+)`", text)]
    return [words for words in found if words[0] != "iddm" or len(words) > 2]


def command(line: str) -> list[str]:
    """A command's words, with placeholders filled in and every [option] taken."""
    words = [word.strip("[]") for word in shlex.split(line, comments=True)]
    filled = [PLACEHOLDERS.get(word, word) for word in words]
    for i, word in enumerate(words[:-1]):
        if word == "--out":
            filled[i + 1] = WRITTEN.get(words[i + 1], words[i + 1])
    return filled
