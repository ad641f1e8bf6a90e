"""What the readers share: how much a file may unpack to, and episodes with T or T+1 rows as `Demos`."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from iddm.demos.formats.ours import NOTE_T_ROWS
from iddm.demos.limits import LARGEST_RATIO, SMALLEST_LIMIT, declare
from iddm.demos.types import Demos
from iddm.errors import UserError

MAX_NAMED = 10_000
"""Columns up to which they get names."""
MAX_JSON = 16 << 20
"""Bytes of a folder's metadata; parsed, they take many times as much."""


def memory_limit(path: Path) -> int:
    """Bytes that a file or folder may unpack to."""
    return max(SMALLEST_LIMIT, LARGEST_RATIO * size_of(path))


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def check_unpacked(num_bytes: int, path: Path) -> None:
    """Refuse a file that says it unpacks to more than `memory_limit`, before any of it is read."""
    limit = memory_limit(path)
    if num_bytes > limit:
        raise UserError(
            f"the file has {size_of(path):,} bytes and declares {num_bytes:,} bytes of numbers, more than the {limit:,} "
            "that are read from one of its size; store the states without such compression, or in several files"
        )
    declare(path, num_bytes)


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a small file."""
    if path.stat().st_size > MAX_JSON:
        raise UserError(f"{path.name} has {path.stat().st_size:,} bytes; at most {MAX_JSON:,} of metadata are read")
    data = json.loads(path.read_text())
    if not isinstance(data, dict):
        raise UserError(f"{path.name} is not a JSON object")
    return data


def from_episodes(
    observations: Sequence[np.ndarray],
    actions: Sequence[np.ndarray] | None,
    source: str,
    complete: bool,
    rewards: Sequence[np.ndarray] | None = None,
    terminated: Any = None,
    metadata: dict[str, Any] | None = None,
) -> Demos:
    """Episodes of other people's formats: `complete` ones have T+1 rows, the others T (the last successor is missing).

    An observation of several dimensions is flattened. An episode without a transition is left out, with a note.
    """
    metadata = {**(metadata or {}), "format": source}
    rows = [_rows(episode) for episode in observations]
    kept = [e for e, episode in enumerate(rows) if len(episode) > 1]
    if not kept:
        raise UserError("no episode has two rows (a state and its successor)")
    if len(kept) < len(rows):
        metadata["note_short"] = f"Left out: {len(rows) - len(kept)} of {len(rows)} episodes, which have fewer than two rows."
    if not complete:
        metadata["note_rows"] = NOTE_T_ROWS
        actions = None if actions is None else [episode[: max(len(episode) - 1, 0)] for episode in actions]
    returns = None if rewards is None else np.array([np.asarray(r, np.float64).sum() for r in rewards])
    return Demos(
        observations=tuple(rows[e] for e in kept),
        actions=None if actions is None else tuple(actions[e] for e in kept),
        episode_returns=None if returns is None else returns[kept],
        terminated=None if terminated is None or not complete else np.asarray(terminated, bool)[kept],
        metadata=metadata,
    )


def _rows(episode: Any) -> np.ndarray:
    if isinstance(episode, np.ndarray) and episode.ndim == 2 and episode.size:
        return episode  # no further view of it: there may be a million
    return np.asarray(episode).reshape(len(episode), -1) if len(episode) else np.zeros((0, 1))


def split(array: np.ndarray, ends: np.ndarray) -> list[np.ndarray]:
    """The parts that end before each of `ends`; the last end is the array's length."""
    return [array[start:end] for start, end in pairwise([0, *np.asarray(ends).tolist()])]


def ends_after(last: np.ndarray) -> np.ndarray:
    """Where episodes end, from a flag on each episode's last row; rows after the last flag are an episode too."""
    ends = np.flatnonzero(np.asarray(last).reshape(-1)) + 1
    return ends if len(ends) and ends[-1] == last.shape[0] else np.append(ends, last.shape[0])


def ends_before(first: np.ndarray) -> np.ndarray:
    """Where episodes end, from a flag on each episode's first row."""
    starts = np.flatnonzero(np.asarray(first).reshape(-1))
    return np.append(starts[starts > 0], first.shape[0])


def same_length(arrays: dict[str, np.ndarray], keys: Sequence[str]) -> int:
    """The number of rows that these arrays share."""
    lengths = {key: (arrays[key].shape[0] if arrays[key].ndim else 0) for key in keys if key in arrays}
    if len(set(lengths.values())) != 1:
        raise UserError(
            f"arrays that belong together have different lengths: {', '.join(f'{k} {n}' for k, n in lengths.items())}"
        )
    return next(iter(lengths.values()))


def column_names(parts: dict[str, np.ndarray]) -> list[str]:
    """ "pos[0]", "pos[1]", "height" for parts [rows, 2] and [rows]; none where there are too many."""
    names: list[str] = []
    if sum(int(np.prod(part.shape[1:])) for part in parts.values()) > MAX_NAMED:
        return names
    for key, part in parts.items():
        size = int(np.prod(part.shape[1:]))
        names += [key] if part.ndim == 1 else [f"{key}[{i}]" for i in range(size)]
    return names


def side_by_side(parts: dict[str, np.ndarray]) -> np.ndarray:
    """Parts with the same rows as one array, in the order of `column_names`."""
    num_rows = same_length(parts, list(parts))
    return np.concatenate([part.reshape(num_rows, -1) for part in parts.values()], axis=1)
