"""Tables in Markdown files, between markers: `<!-- table2 -->` … `<!-- /table2 -->`."""

import re
from collections.abc import Mapping
from pathlib import Path

from iddm.errors import UserError
from iddm.files import write_whole
from iddm.report.table import to_markdown
from iddm.studies.report.tables import TABLES, tables
from iddm.studies.results import Results

PLACES = {
    "docs/results.md": tuple(name for name in TABLES if name != "compact"),
    "README.md": ("compact",),
}
"""Which tables each file has."""

NO_RUNS = "No runs yet."


def with_tables(text: str, made: Mapping[str, str], file: str) -> str:
    """The text with what stands between each table's markers replaced."""
    for name, table in made.items():
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if len(place.findall(text)) != 1:
            raise UserError(f"{file}: needs the markers <!-- {name} --> and <!-- /{name} --> once, in this order.")
        text = place.sub(lambda found, table=table: f"{found[1]}\n{table}\n\n{found[2]}", text)
    return text


def written_docs(results: Results, root: Path) -> dict[Path, str]:
    """Every file that has tables, as it is with the results' tables."""
    sheets = tables(results)
    texts = {}
    for file, names in PLACES.items():
        made = {name: to_markdown(sheets[name]) if name in sheets else NO_RUNS for name in names}
        try:
            before = (root / file).read_text()
        except OSError as error:
            raise UserError(f"{root / file}: cannot be read; --docs is for the root of the repository.") from error
        texts[root / file] = with_tables(before, made, file)
    return texts


def write_docs(results: Results, root: Path) -> list[Path]:
    """Write the tables into their files; returns the files."""
    texts = written_docs(results, root)
    for path, text in texts.items():
        write_whole(path, text)
    return list(texts)
