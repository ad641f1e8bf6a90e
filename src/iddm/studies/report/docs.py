"""The studies' tables in Markdown files."""

from dataclasses import replace
from pathlib import Path

from iddm.errors import UserError
from iddm.report.table import NOTHING, Table, to_markdown, with_tables
from iddm.studies.catalogue import STUDIES
from iddm.studies.results import Results
from iddm.studies.study import ShowTable
from iddm.utils.files import write_whole

NO_RUNS = "No runs yet."
QUICK = "Made with --quick: a test of the machinery, not a result."
STUDIES_PAGE = "docs/studies.md"


def places() -> dict[str, dict[str, ShowTable]]:
    """Every table of the docs that is made from results, by file and name."""
    found: dict[str, dict[str, ShowTable]] = {}
    for table in (table for study in STUDIES.values() for table in study.tables):
        found.setdefault(str(table.file), {})[table.name] = table
    return found


def made(table: ShowTable, known: object) -> Table:
    """The table of these results; its caption says if they were made with --quick."""
    found = table.make(known)
    return replace(found, caption=f"{QUICK} {found.caption}") if getattr(known, "quick", False) else found


def tables(results: Results, directory: Path | None = None) -> dict[str, Table]:
    """The tables that have results to show."""
    found = {}
    for study in STUDIES.values():
        if known := study.to_show(results, directory):
            found |= {table.name: made(table, known) for table in study.tables}
    return {name: table for name, table in found.items() if table.rows}


def list_of_studies() -> Table:
    rows = tuple((f"`{study.name}`", study.title, study.in_paper or NOTHING, str(study.seeds)) for study in STUDIES.values())
    return Table(("study", "question", "in the paper", "seeds"), rows)


def written_docs(results: Results, root: Path, directory: Path | None = None) -> dict[Path, str]:
    """Every file that has tables, with the tables of these results."""
    found = tables(results, directory)
    by_file = {
        file: {name: to_markdown(found[name]) if name in found else NO_RUNS for name in names} for file, names in places().items()
    }
    by_file.setdefault(STUDIES_PAGE, {})["studies"] = to_markdown(list_of_studies())
    texts = {}
    for file, parts in by_file.items():
        try:
            before = (root / file).read_text()
        except OSError as error:
            raise UserError(f"{root / file}: cannot be read; --docs is for the root of the repository.") from error
        texts[root / file] = with_tables(before, parts, file)
    return texts


def write_docs(results: Results, root: Path, directory: Path | None = None) -> list[Path]:
    """Write the tables into their files; returns the files."""
    texts = written_docs(results, root, directory)
    for path, text in texts.items():
        write_whole(path, text)
    return list(texts)
