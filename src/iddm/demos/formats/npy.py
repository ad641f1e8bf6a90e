"""A single npy array: [rows, columns] is one episode, [episodes, rows, columns] several of one length."""

from pathlib import Path

from iddm.demos.formats.npz import read_array
from iddm.demos.formats.ours import demos_from_arrays
from iddm.demos.types import Demos


def read_npy(path: Path) -> Demos:
    """The rows are taken as T+1 states: a bare array has no actions to count."""
    with open(path, "rb") as file:
        return demos_from_arrays({"observations": read_array(file, path.stat().st_size)})
