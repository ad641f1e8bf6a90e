"""A table as rows of text, written for a terminal, as Markdown or as HTML."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import rich.table
from rich.text import Text

from iddm.errors import UserError
from iddm.report.markup import Markup, escaped, fill

NOTHING = "–"
"""A cell without a value."""


@dataclass(frozen=True)
class Table:
    """A table. A cell may have a second line, which stands below the first and is smaller."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    num_text_columns: int = 1
    """This many of the first columns are text, not numbers."""
    caption: str = ""
    """What the numbers are, in one sentence or two."""


def for_terminal(title: str, table: Table) -> rich.table.Table:
    shown = rich.table.Table(title=title or None, title_justify="left", caption=table.caption or None, caption_justify="left")
    for i, column in enumerate(table.columns):
        shown.add_column(column, justify="left" if i < table.num_text_columns else "right")
    for cells in table.rows:
        shown.add_row(*map(Text, cells))
    return shown


def to_markdown(table: Table) -> str:
    def row(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", "<br>") for cell in cells) + " |"

    ruler = "|" + "---|" * len(table.columns)
    text = "\n".join([row(table.columns), ruler, *map(row, table.rows)])
    return f"{text}\n\n{table.caption}" if table.caption else text


def with_tables(text: str, made: Mapping[str, str], file: str) -> str:
    """The Markdown text with what stands between each table's markers, `<!-- name -->` and `<!-- /name -->`, replaced."""
    for name, table in made.items():
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if len(place.findall(text)) != 1:
            raise UserError(f"{file}: needs the markers <!-- {name} --> and <!-- /{name} --> once, in this order.")
        text = place.sub(lambda found, table=table: f"{found[1]}\n{table}\n\n{found[2]}", text)
    return text


def with_indices(text: str) -> Markup:
    """Text for HTML, with λ_p as λ and its index."""
    return Markup(re.sub(r"λ_(\w)", r"λ<sub>\1</sub>", escaped(text)))


def to_html(table: Table, highlight: str = "") -> Markup:
    """The table in a box that scrolls by itself; the row whose first cell is `highlight` stands out."""

    def cell(text: str) -> str:
        first, _, second = text.partition("\n")
        return with_indices(first) + (f"<small>{with_indices(second)}</small>" if second else "")

    def align(column: int) -> str:
        return ' class="word"' if column < table.num_text_columns else ""

    def line(row: tuple[str, ...]) -> str:
        kind = ' class="ours"' if row[0] == highlight else ""
        cells = "".join(f"<td{align(i)}>{cell(text)}</td>" for i, text in enumerate(row[1:], 1))
        return f'<tr{kind}><th scope="row">{cell(row[0])}</th>{cells}</tr>'

    broken = (re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "<wbr>", cell(text)) for text in table.columns)  # between a long name's words
    head = "".join(f'<th scope="col"{align(i)}>{text}</th>' for i, text in enumerate(broken))
    body = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(map(line, table.rows))}</tbody></table>"
    caption = fill('<p class="note">{{text}}</p>', text=table.caption) if table.caption else ""
    return Markup(f'<div class="scroll" tabindex="0" role="region" aria-label="table">{body}</div>{caption}')
