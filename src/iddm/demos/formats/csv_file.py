"""CSV: comma, semicolon or tab; with a line of names, or of numbers alone. A bad cell is named by its line and column."""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from iddm.demos.formats.table import demos_from_columns, id_columns, is_state
from iddm.demos.types import Demos
from iddm.errors import UserError

MAX_LINE = 1 << 20


def is_text(head: bytes) -> bool:
    """Bytes that could begin a table of text."""
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = head[: error.start].decode("utf-8-sig", errors="replace") if error.start > len(head) - 4 else ""
    return bool(text.strip()) and all(c.isprintable() or c in "\r\n\t" for c in text) and text.lstrip()[0] not in "{[<"


class _Table:
    """The text of a table, and how to go through it."""

    def __init__(self, path: Path) -> None:
        with open(path, encoding="utf-8-sig", newline="") as file:
            first = file.readline(MAX_LINE)
            self.delimiter = max(",;\t", key=first.count)
            names = [name.strip() for name in next(csv.reader([first], delimiter=self.delimiter))]
            headed = not all(map(_is_number, names))
            self._body = io.StringIO(("" if headed else first) + file.read())
        self._first_line = int(headed)
        self.names = names if headed else [f"column{i}" for i in range(len(names))]
        if len(set(self.names)) != len(names):
            raise UserError("two columns of the table have the same name")
        if not self._body.getvalue().strip():
            raise UserError("the table has no rows")

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Each line's number in the file and its cells; empty lines are left out."""
        self._body.seek(0)
        reader = csv.reader(self._body, delimiter=self.delimiter)
        for row in filter(None, reader):
            line = reader.line_num + self._first_line
            if len(row) < len(self.names):
                raise UserError(f"line {line} has {len(row)} cell(s), and the table has {len(self.names)} columns")
            yield line, row

    def numbers(self, columns: Sequence[int]) -> np.ndarray:
        """[rows, columns]"""
        self._body.seek(0)
        options: dict[str, Any] = {"delimiter": self.delimiter, "comments": None, "quotechar": '"', "ndmin": 2}
        return np.loadtxt(self._body, dtype=np.float64, usecols=columns, **options)


def read_csv(path: Path, episode_column: str | None = None) -> Demos:
    """Numbers are the state; words that are not of the episode are left out, with a note."""
    table = _Table(path)
    ids = [table.names.index(name) for name in id_columns(table.names, episode_column)]
    codes, words = _words(table, ids)
    numeric = [i for i in range(len(table.names)) if i not in ids and i not in words]
    used = [j for j, i in enumerate(numeric) if is_state(table.names[i])]
    if not used:
        raise UserError(f"no column of the table is a state (there are {', '.join(table.names[:12])})")
    try:
        values = table.numbers(numeric)
    except ValueError as error:
        _name_bad_cell(table, numeric, str(error).splitlines()[0][:200])
    if not np.isfinite(values[:, used]).all():
        _name_bad_cell(table, numeric, "a number is not finite")
    columns = {table.names[i]: column for i, column in codes.items()}
    columns |= {table.names[i]: values[:, j] for j, i in enumerate(numeric)}
    left_out = f"Left out, because they are words: {', '.join(table.names[i] for i in sorted(words))}."
    return demos_from_columns(columns, [table.names[i] for i in ids], "CSV", {"note_words": left_out} if words else {})


def _words(table: _Table, ids: Sequence[int]) -> tuple[dict[int, np.ndarray], set[int]]:
    """The columns `ids` with a number for each word, and which other columns hold words alone.

    An array of text would be as wide as its longest word.
    """
    number_of: dict[int, dict[str, int]] = {i: {} for i in ids}
    found: dict[int, list[int]] = {i: [] for i in ids}
    words: set[int] | None = None
    for _, row in table.rows():
        words = set(range(len(row))) - set(ids) if words is None else words
        words = {i for i in words if i < len(row) and not _is_number(row[i])}
        if not words and not ids:
            break
        for i in ids:
            found[i].append(number_of[i].setdefault(row[i].strip(), len(number_of[i])))
    return {i: np.array(column) for i, column in found.items()}, words or set()


def _name_bad_cell(table: _Table, numeric: Sequence[int], why: str) -> NoReturn:
    """Say which cell could not be used."""
    for line, row in table.rows():
        for i in numeric:
            cell = row[i].strip()
            if not _is_number(cell) or (is_state(table.names[i]) and not math.isfinite(float(cell))):
                what = f"'{cell[:50]}' is not a finite number" if cell else "the cell is empty"
                raise UserError(f"line {line}, column '{table.names[i]}': {what}; fill it, or leave its row out")
    raise UserError(f"the table cannot be read: {why}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
