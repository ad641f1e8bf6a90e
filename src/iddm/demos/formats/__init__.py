"""Every kind of file or folder that demonstrations come in. A new one is a file here and a line in `FORMATS`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from iddm.demos.formats.csv_file import is_text, read_csv
from iddm.demos.formats.hdf5 import read_hdf5
from iddm.demos.formats.imitation import is_imitation_folder, read_imitation_folder
from iddm.demos.formats.lerobot import is_lerobot_folder, read_lerobot
from iddm.demos.formats.minari import is_minari_folder, read_minari
from iddm.demos.formats.npy import read_npy
from iddm.demos.formats.npz import read_npz
from iddm.demos.formats.table import read_parquet_table
from iddm.demos.types import Demos


class Format(NamedTuple):
    """How to tell a kind of file by its first bytes, or a folder by what is in it, and how to read it."""

    name: str
    recognise: Callable[[Path, bytes | None], bool]
    """Gets the path and a file's first bytes, or None for a folder."""
    read: Callable[..., Demos]
    """Gets the path; a table's reader also `episode_column`."""
    in_reader_process: bool = False
    """A library in C or C++ reads it, so `demos/reader_process.py` does it in another process."""
    table: bool = False
    """Columns say which episode a row is of."""


def _begins(*magic: bytes) -> Callable[[Path, bytes | None], bool]:
    return lambda path, head: head is not None and head.startswith(magic)


def _folder(recognise: Callable[[Path], bool]) -> Callable[[Path, bytes | None], bool]:
    return lambda path, head: head is None and recognise(path)


FORMATS = (
    Format("npz (ours, imitation, Stable-Baselines 2, IL-Datasets, CILO)", _begins(b"PK\x03\x04", b"PK\x05\x06"), read_npz),
    Format("npy", _begins(b"\x93NUMPY"), read_npy),
    Format("HDF5 (D4RL, robomimic)", _begins(b"\x89HDF\r\n\x1a\n"), read_hdf5, in_reader_process=True),
    Format("Parquet", _begins(b"PAR1"), read_parquet_table, in_reader_process=True, table=True),
    Format("CSV", lambda path, head: head is not None and is_text(head), read_csv, table=True),
    Format("a Minari folder", _folder(is_minari_folder), read_minari, in_reader_process=True),
    Format("a LeRobot folder", _folder(is_lerobot_folder), read_lerobot, in_reader_process=True),
    Format(
        "an imitation folder",
        _folder(lambda path: is_imitation_folder(frozenset(os.listdir(path)))),
        read_imitation_folder,
        in_reader_process=True,
    ),
)
"""Tried in order."""

ACCEPTED = "accepted: " + "; ".join(format.name for format in FORMATS)
