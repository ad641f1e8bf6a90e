"""Files are written whole, then renamed: a reader never sees half of one, and a crash loses nothing."""

import csv
import io
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from math import nan
from pathlib import Path
from typing import Any, TypeVar

from iddm.errors import UserError

Record = TypeVar("Record")


def write_whole(path: Path, content: bytes | str) -> None:
    """Replace `path` by `content` in one step."""
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise UserError(f"{path}: could not be written ({error.strerror or error}).") from error


def is_leftover(path: Path) -> bool:
    """Whether this is half a file, which `write_whole` had no time to rename before its process was killed."""
    return re.fullmatch(r"\..+\.\d+\.tmp", path.name) is not None


def append_text(path: Path, text: str) -> None:
    """Add to the end of a file. A crash may leave part of it: readers pass over a half-written last line."""
    try:
        with open(path, "a", newline="") as file:
            file.write(text)
    except OSError as error:
        raise UserError(f"{path}: could not be written ({error.strerror or error}).") from error


def to_csv(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None, *, header: bool = True, digits: int | None = None
) -> str:
    """Rows as CSV text; a missing value or NaN is an empty cell.

    `columns` are those of the first row unless given. With `digits`, floats have that many significant digits, and whole
    numbers no decimal point. Without a header, the text can be appended to a file.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if columns is None else columns, lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows({name: _cell(value, digits) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: Any, digits: int | None) -> Any:
    if not isinstance(value, float):
        return value
    if value != value:
        return ""
    if digits is None:
        return value
    return str(int(value)) if value.is_integer() else f"{value:.{digits}g}"


def from_csv(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV file with a header; what is not whole, such as a half-written last row, is left out."""
    with open(file, newline="") as opened:
        lines = [line for line in opened if line.endswith(("\n", "\r"))]
    return [row for row in csv.DictReader(lines) if None not in row and None not in row.values()]


def numbers(row: Mapping[str, str]) -> dict[str, float]:
    """A row of numbers; an empty cell is NaN."""
    return {name: float(value) if value else nan for name, value in row.items()}


def records(kind: type[Record], rows: Sequence[Mapping[str, str]]) -> list[Record]:
    """Rows as values of a dataclass with fields of plain types; an empty cell of a float is NaN."""
    types = {field.name: field.type for field in fields(kind)}  # pyright: ignore[reportArgumentType]

    def parsed(name: str, text: str) -> Any:
        return nan if types[name] is float and not text else types[name](text)  # pyright: ignore[reportCallIssue]

    return [kind(**{name: parsed(name, text) for name, text in row.items()}) for row in rows]
