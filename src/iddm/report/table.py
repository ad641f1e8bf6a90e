"""A table as rows of text, for Markdown and for HTML."""

import html
import re
from dataclasses import dataclass
from math import isnan

from iddm.studies.paper import Figure
from iddm.studies.statistics import Estimate

NAMES = {
    "random": "random actions",
    "none": "constant reward",
    "bc": "BC",
    "bco": "BCO",
    "deepmimic": "DeepMimic",
    "gaifo-s": "GAIfO-s",
    "gaifo": "GAIfO",
    "iddm": "IDDM",
    "gail": "GAIL",
}
"""Methods as they are written; others by their own name."""

NOTHING = "–"


@dataclass(frozen=True)
class Sheet:
    """A table. A cell may have a second line, which stands below the first and is smaller."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    num_words: int = 1
    """So many of the first columns are words, not figures."""
    note: str = ""
    """What the figures are, in one sentence or two."""


def name_of(method: str) -> str:
    """A method's name, with the controls marked."""
    name = NAMES.get(method, method)
    return f"{name} (control)" if method in ("random", "none") else name


def figure(value: float) -> str:
    return NOTHING if isnan(value) else f"{value:,.1f}"


def papers(known: Figure | None) -> str:
    return "" if known is None else f"paper {figure(known[0])} ± {figure(known[1])}"


def share(estimate: Estimate | None) -> str:
    """A share with its interval, in percent."""
    if estimate is None:
        return NOTHING
    interval = "" if isnan(estimate.low) else f" [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"
    return f"{100 * estimate.value:.0f} %{interval}"


def lines(*texts: str) -> str:
    """A cell of the lines that are not empty."""
    return "\n".join(filter(None, texts))


def to_markdown(sheet: Sheet) -> str:
    def row(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", "<br>") for cell in cells) + " |"

    ruler = "|" + "---|" * len(sheet.columns)
    table = "\n".join([row(sheet.columns), ruler, *map(row, sheet.rows)])
    return f"{table}\n\n{sheet.note}" if sheet.note else table


def marked_up(text: str) -> str:
    """Text for HTML: escaped, and λ_p with its index below."""
    return re.sub(r"λ_(\w)", r"λ<sub>\1</sub>", html.escape(text))


def to_html(sheet: Sheet, mark: str = NAMES["iddm"]) -> str:
    """The table in a box that scrolls by itself; the row whose first cell is `mark` stands out."""

    def cell(text: str) -> str:
        first, _, second = text.partition("\n")
        return marked_up(first) + (f"<small>{marked_up(second)}</small>" if second else "")

    def side(column: int) -> str:
        return ' class="word"' if column < sheet.num_words else ""

    def line(row: tuple[str, ...]) -> str:
        kind = ' class="ours"' if row[0] == mark else ""
        cells = "".join(f"<td{side(i)}>{cell(text)}</td>" for i, text in enumerate(row[1:], 1))
        return f'<tr{kind}><th scope="row">{cell(row[0])}</th>{cells}</tr>'

    broken = (re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "<wbr>", cell(text)) for text in sheet.columns)  # between a long name's words
    head = "".join(f'<th scope="col"{side(i)}>{text}</th>' for i, text in enumerate(broken))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(map(line, sheet.rows))}</tbody></table>"
    note = f'<p class="note">{html.escape(sheet.note)}</p>' if sheet.note else ""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="table">{table}</div>{note}'
