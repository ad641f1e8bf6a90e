"""npz archives: arrays only, never a pickle, so a file from a stranger cannot run code. The keys tell the layout."""

import io
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from iddm.demos.formats.cilo import demos_from_pairs
from iddm.demos.formats.common import check_unpacked
from iddm.demos.formats.imitation import demos_from_concatenated
from iddm.demos.formats.ours import KEYS, arrays_from_demos, demos_from_arrays
from iddm.demos.formats.stable_baselines import demos_from_starts
from iddm.demos.types import Demos
from iddm.errors import UserError
from iddm.utils.files import write_whole


class Layout(NamedTuple):
    """Which keys tell a layout, which are read, and how arrays become demonstrations."""

    tells: frozenset[str]
    keys: tuple[str, ...]
    read: Callable[[dict[str, np.ndarray]], Demos]


LAYOUTS = (
    Layout(frozenset({"observations"}), KEYS, demos_from_arrays),
    Layout(frozenset({"obs", "indices"}), ("obs", "acts", "rews", "terminal", "indices"), demos_from_concatenated),
    Layout(
        frozenset({"obs", "episode_starts"}),
        ("obs", "actions", "rewards", "episode_returns", "episode_starts"),
        demos_from_starts,
    ),
    Layout(frozenset({"states", "next_states"}), ("states", "next_states", "actions", "starts"), demos_from_pairs),
)


def read_npz(path: Path) -> Demos:
    """Read any of the layouts; other keys are not read, because they may hold anything."""
    with open(path, "rb") as raw, zipfile.ZipFile(raw) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        layout = next((layout for layout in LAYOUTS if layout.tells <= set(members)), LAYOUTS[0])
        wanted = {key: members[key] for key in layout.keys if key in members}
        check_unpacked(sum(info.file_size for info in wanted.values()), path)
        arrays = {key: _read_member(archive, info, key) for key, info in wanted.items()}
    return layout.read(arrays)


def write_npz(demos: Demos, path: Path) -> None:
    """Write whole or not at all; the same demonstrations give the same bytes (NumPy dates members 1980)."""
    arrays: dict[str, Any] = {**arrays_from_demos(demos)}
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_whole(path, content.getvalue())


def read_array(file: Any, num_bytes: int) -> np.ndarray:
    """One npy array from a file that holds `num_bytes`: whatever its header says, no more than that is allocated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        version = np.lib.format.read_magic(file)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran_order, dtype = read_header(file)
    if dtype.hasobject:
        raise UserError("the file holds Python objects (a pickle, which could run code); store plain arrays of numbers")
    if any(n < 0 for n in shape) or len(shape) > 32:
        raise ValueError(f"its shape is {shape}")
    size = dtype.itemsize
    for n in shape:
        size *= n
    if size > num_bytes:
        raise ValueError(f"its header declares {size} bytes, and there are fewer than {num_bytes}")
    content = file.read(size)
    if len(content) != size:
        raise ValueError(f"{len(content)} of {size} bytes are there")
    if size == 0:
        return np.zeros(shape, dtype)
    return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran_order else "C")


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, key: str) -> np.ndarray:
    try:
        with archive.open(info) as file:
            return read_array(file, info.file_size)
    except UserError as error:
        raise UserError(str(error).replace("objects", f"objects at '{key}'", 1)) from None
    except Exception as error:  # zipfile, zlib and NumPy's header parser raise a dozen types
        reason = (str(error) or type(error).__name__).splitlines()[0][:100]
        raise UserError(f"the file is damaged or cut short at '{key}' ({reason})") from None
