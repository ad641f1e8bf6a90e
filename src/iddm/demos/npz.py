"""Demonstrations as plain npz: arrays only, never a pickle, so a file from a stranger cannot run code."""

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from iddm.demos.layout import KEYS, arrays_from_demos, demos_from_arrays
from iddm.demos.types import Demos
from iddm.errors import UserError
from iddm.files import write_whole


def recognise_npz(head: bytes) -> bool:
    """npz is a zip file."""
    return head[:4] in (b"PK\x03\x04", b"PK\x05\x06")


def read_npz(path: Path) -> Demos:
    """Read any of the layouts that `layout.py` describes."""
    return demos_from_arrays(_read_arrays(path))


def write_npz(demos: Demos, path: Path) -> None:
    """Write whole or not at all; the same demonstrations give the same bytes (NumPy dates members 1980)."""
    arrays: dict[str, Any] = {**arrays_from_demos(demos)}
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_whole(path, content.getvalue())


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Only the arrays that we know: the others may be anything."""
    arrays, key = {}, None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Opened here: np.load leaves a damaged file open.
            with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
                for key in KEYS:
                    if key in file:
                        arrays[key] = file[key]
                        if not isinstance(arrays[key], np.ndarray):
                            raise ValueError("not an array")
    # zipfile, zlib and NumPy's header parser raise a dozen types on bytes that nobody vouches for.
    except Exception as error:
        where = "" if key is None else f" at '{key}'"
        if "Object arrays" in str(error):
            raise UserError(
                f"the file holds Python objects{where} (a pickle, which could run code); store plain arrays of numbers"
            ) from None
        reason = (str(error) or type(error).__name__).splitlines()[0][:100]
        raise UserError(f"the file is damaged or cut short{where} ({reason})") from None
    return arrays
