"""HDF5 files: what is inside tells whose they are. Links to other files are never followed."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from iddm.demos.formats.common import check_unpacked
from iddm.demos.formats.d4rl import demos_from_flat
from iddm.demos.formats.robomimic import read_robomimic
from iddm.demos.types import Demos
from iddm.errors import UserError
from iddm.utils.extras import need

MAX_MEMBERS = 200_000


class Hdf5:
    """An open HDF5 file that only gives arrays of numbers that lie in it, together no larger than allowed."""

    def __init__(self, path: Path) -> None:
        self._h5py = need("h5py", "hdf5", "HDF5 files")
        self._path = path
        self._bytes = 0
        self._file = self._h5py.File(path, "r")

    def __enter__(self) -> "Hdf5":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def names(self, where: str = "/") -> list[str]:
        """What a group holds."""
        group = self._member(where)
        if not isinstance(group, self._h5py.Group):
            return []
        if len(group) > MAX_MEMBERS:
            raise UserError(f"'{where}' holds {len(group)} members; at most {MAX_MEMBERS} are read")
        return list(group)

    def shape(self, where: str) -> tuple[int, ...] | None:
        """The shape of an array of numbers, or None where there is no such array."""
        member = self._member(where)
        return member.shape if isinstance(member, self._h5py.Dataset) and member.dtype.kind in "fiub" else None

    def array(self, where: str) -> np.ndarray:
        """A whole array of numbers."""
        member = self._member(where)
        if not isinstance(member, self._h5py.Dataset) or member.dtype.kind not in "fiub":
            raise UserError(f"'{where}' is not an array of numbers")
        if member.is_virtual or member.external:
            raise UserError(f"'{where}' keeps its numbers in another file, which is not opened; copy them into this one")
        self._bytes += math.prod(member.shape) * member.dtype.itemsize
        check_unpacked(max(self._bytes, math.prod(member.chunks or ()) * member.dtype.itemsize), self._path)
        return np.asarray(member[()])

    def text(self, where: str, attribute: str) -> str | None:
        """A text attribute."""
        value = self._member(where).attrs.get(attribute)
        return value.decode(errors="replace") if isinstance(value, bytes) else value if isinstance(value, str) else None

    def _member(self, where: str) -> Any:
        """A member, reached by hard links alone."""
        member: Any = self._file["/"]
        for name in where.strip("/").split("/") if where.strip("/") else []:
            link = member.get(name, getlink=True) if isinstance(member, self._h5py.Group) else None
            if link is None:
                raise UserError(f"there is no '{where}' in the file")
            if not isinstance(link, self._h5py.HardLink):
                raise UserError(f"'{where}' is a link to elsewhere, which is not followed; copy the numbers into the file")
            member = member[name]
        return member


def read_hdf5(path: Path) -> Demos:
    """D4RL's or robomimic's."""
    with Hdf5(path) as file:
        names = file.names()
        if "data" in names and any(name.startswith("demo") for name in file.names("data")):
            return read_robomimic(file)
        if "observations" in names:
            if file.shape("observations") is None:
                raise UserError("'observations' is not an array of numbers; D4RL's is [rows, columns]")
            keys = ("observations", "next_observations", "actions", "rewards", "terminals", "timeouts")
            return demos_from_flat({key: file.array(key) for key in keys if key in names})
        if any(name.startswith("episode_") for name in names):
            raise UserError("this is a part of a Minari dataset; give the dataset's folder, the one that holds 'data'")
    raise UserError(
        f"the HDF5 file holds {', '.join(sorted(names)[:6]) or 'nothing'}, which is neither D4RL's layout "
        "('observations', 'terminals') nor robomimic's ('data/demo_0')"
    )
