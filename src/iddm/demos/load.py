"""Demonstrations from a file or folder and to one. A format is recognised by what is in it, never by its name."""

import os
from collections.abc import Callable
from pathlib import Path

from iddm.demos.formats import ACCEPTED, FORMATS
from iddm.demos.formats.minari import write_minari
from iddm.demos.formats.npz import write_npz
from iddm.demos.path_checks import check_plain
from iddm.demos.reader_process import HELPER
from iddm.demos.types import Demos
from iddm.demos.units import scale_columns
from iddm.errors import UserError

TOO_MUCH_MEMORY = "reading it takes more memory than a file of its size should; it may be damaged: write it again, or in parts"


def load_demos(path: str | os.PathLike[str], episode_column: str | None = None) -> Demos:
    """Read demonstrations. Whatever is wrong, `UserError` says so in one sentence that names the file.

    `episode_column` names the columns of a table (CSV, Parquet) that tell episodes apart, where their names do not say so.
    """
    return _load(Path(path), HELPER.read, episode_column)


def load_here(path: str | os.PathLike[str], episode_column: str | None = None) -> Demos:
    """`load_demos` in this very process, whatever reads the file."""
    return _load(Path(path), None, episode_column)


def _load(path: Path, read_apart: Callable[[Path, str | None], Demos] | None, episode_column: str | None) -> Demos:
    if not os.path.lexists(path):
        raise UserError(f"{path}: there is no such file; give the path of your demonstrations ({ACCEPTED})")
    is_folder = os.path.isdir(path)  # unlike Path.is_dir, never raises
    if not is_folder and not os.path.isfile(path):
        raise UserError(f"{path}: is not a regular file ({ACCEPTED})")
    try:
        head = None if is_folder else _head(path)
        format = next((format for format in FORMATS if format.recognise(path, head)), None)
        if format is not None:
            check_plain(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    if format is None:
        raise UserError(f"{path}: {_not_ours(head)} ({ACCEPTED})")
    if episode_column is not None and not format.table:
        raise UserError(f"{path}: --episode-column is for tables (CSV, Parquet); this file says itself where episodes end")
    if format.in_reader_process and read_apart is not None:
        return read_apart(path, episode_column)
    try:
        return format.read(path, episode_column) if format.table else format.read(path)
    except UserError as error:
        raise UserError(f"{path}: {_printable(str(error))}") from None
    except MemoryError:
        raise UserError(f"{path}: {TOO_MUCH_MEMORY}") from None
    except Exception as error:  # zip, HDF5, Arrow and JSON raise dozens of types on damaged bytes
        raise UserError(f"{path}: the file is damaged or cut short ({_reason(error)})") from error


def save_demos(demos: Demos, path: str | os.PathLike[str]) -> None:
    """Write demonstrations as npz: whole or not at all, and the same demonstrations give the same bytes."""
    path = Path(path)
    if path.suffix != ".npz":
        raise UserError(f"{path}: demonstrations are written as npz; give a name that ends in .npz")
    if os.path.isdir(path):
        raise UserError(f"{path}: is a directory; give the name of a file")
    try:
        write_npz(demos, path)
    except OSError as error:  # such as a file where a directory should be
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from None


def convert_demos(
    source: str | os.PathLike[str], out: str | os.PathLike[str], episode_column: str | None = None, scale: str | None = None
) -> Demos:
    """Read any format and write our npz (a name that ends in .npz) or a Minari dataset (a folder, a name without an ending).

    `scale` gives columns other units: "hip,knee=deg", "0=mm,2:8=deg" (demos/units.py).
    """
    out = Path(out)
    demos = scale_columns(load_demos(source, episode_column), scale, str(source))
    if out.suffix == ".npz":
        save_demos(demos, out)
    elif out.suffix:
        raise UserError(f"{out}: give a name that ends in .npz, or the name of a folder for a Minari dataset")
    else:
        try:
            write_minari(demos, out)
        except OSError as error:
            raise UserError(f"{out}: cannot be written ({error.strerror or error})") from None
    return demos


def _head(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(64)


def _reason(error: BaseException) -> str:
    """The first line of what a library said."""
    line = next(iter(str(error).splitlines()), "") or type(error).__name__
    return _printable(line)[:100]


def _printable(text: str) -> str:
    """Text that may quote a file (the names of columns), without control characters or line breaks."""
    return "".join(c if c.isprintable() else "�" for c in text)


def _not_ours(head: bytes | None) -> str:
    if head is None:
        return "is a directory, but not in a known format"
    if not head:
        return "the file is empty"
    if head[0] == 0x80:
        return "looks like a Python pickle, which could run code and is never opened; store plain arrays"
    return "is not in a known format"
