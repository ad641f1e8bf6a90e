"""Demonstrations from a file and to one. A format is recognised by its bytes, never by its name."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from iddm.demos.npz import read_npz, recognise_npz, write_npz
from iddm.demos.types import Demos
from iddm.errors import UserError


class Format(NamedTuple):
    """How to tell a kind of file by its first bytes, and how to read it."""

    name: str
    recognise: Callable[[bytes], bool]
    read: Callable[[Path], Demos]


FORMATS = (Format("npz with an array 'observations' (NumPy, no pickles)", recognise_npz, read_npz),)
"""Tried in order. A new format is a file in `demos/formats/` and a line here."""

ACCEPTED = "accepted: " + "; ".join(format.name for format in FORMATS)


def load_demos(path: str | os.PathLike[str]) -> Demos:
    """Read demonstrations. Whatever is wrong, `UserError` says it in one sentence that names the file."""
    path = Path(path)
    if os.path.isdir(path):  # unlike Path.is_dir, never raises
        raise UserError(f"{path}: is a directory, not a file of demonstrations ({ACCEPTED})")
    if not os.path.lexists(path):
        raise UserError(f"{path}: there is no such file; give the path of your demonstrations ({ACCEPTED})")
    if not os.path.isfile(path):
        raise UserError(f"{path}: is not a regular file ({ACCEPTED})")
    try:
        with open(path, "rb") as file:
            head = file.read(64)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    for format in FORMATS:
        if format.recognise(head):
            try:
                return format.read(path)
            except UserError as error:
                raise UserError(f"{path}: {error}") from None
    raise UserError(f"{path}: {_not_ours(head)} ({ACCEPTED})")


def save_demos(demos: Demos, path: str | os.PathLike[str]) -> None:
    """Write demonstrations as npz: whole or not at all, and the same demonstrations give the same bytes."""
    path = Path(path)
    if path.suffix != ".npz":
        raise UserError(f"{path}: demonstrations are written as npz; give a name that ends in .npz")
    if os.path.isdir(path):
        raise UserError(f"{path}: is a directory; give the name of a file")
    try:
        write_npz(demos, path)
    except OSError as error:  # such as a file where a directory is meant
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from None


def _not_ours(head: bytes) -> str:
    if not head:
        return "the file is empty"
    if head[0] == 0x80:
        return "looks like a Python pickle, which could run code and is never opened; store plain arrays"
    return "is not a kind of file known here"
