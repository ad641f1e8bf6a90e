"""The `imitation` library: its folders (Hugging Face `save_to_disk`, one row per episode) and its older npz. T+1 rows.

`infos` holds jsonpickle text, which could run code: it is never decoded.
"""

from pathlib import Path

import numpy as np

from iddm.demos.formats.arrow import read_ipc, rows_of_lists
from iddm.demos.formats.common import from_episodes, read_json, split
from iddm.demos.types import Demos
from iddm.errors import UserError


def is_imitation_folder(names: frozenset[str]) -> bool:
    return {"dataset_info.json", "state.json"} <= names


def read_imitation_folder(path: Path) -> Demos:
    """The Arrow files that `state.json` names, in its order."""
    state = read_json(path / "state.json")
    names = [entry["filename"] for entry in state["_data_files"]]
    if any(Path(name).name != name or name in (".", "..") for name in names):
        raise UserError("state.json names a file outside of its folder")
    episodes: dict[str, list[np.ndarray]] = {"obs": [], "acts": [], "rews": [], "terminal": []}
    for name in names:
        for batch in read_ipc(path / name):
            if "obs" not in batch.schema.names:
                raise UserError(f"there is no column 'obs' (there are {', '.join(batch.schema.names)}); imitation's have one")
            for key, rows in episodes.items():
                if key in batch.schema.names:
                    rows += rows_of_lists(batch.column(key))
    return from_episodes(
        episodes["obs"],
        episodes["acts"] or None,
        "imitation folder",
        complete=True,
        rewards=episodes["rews"] or None,
        terminated=np.array([bool(flag) for flag in episodes["terminal"]]) if episodes["terminal"] else None,
    )


def demos_from_concatenated(arrays: dict[str, np.ndarray]) -> Demos:
    """The older npz: `acts` are split at `indices`, `obs` (one more per episode) at `indices + arange(n) + 1`."""
    indices = arrays["indices"]
    num_rows = arrays["obs"].shape[0] if arrays["obs"].ndim else 0
    num_episodes = indices.size + 1
    num_steps = num_rows - num_episodes
    if indices.dtype.kind not in "iu" and indices.size:
        raise UserError(f"'indices' must hold integers, not {indices.dtype}")
    ends = np.append(indices.reshape(-1).astype(np.int64), num_steps)
    if ends[0] < 0 or (np.diff(ends) < 0).any():
        raise UserError(f"'indices' must rise from 0 to {num_steps}, the number of steps")
    for key in ("acts", "rews"):
        if key in arrays and arrays[key].shape[:1] != (num_steps,):
            raise UserError(f"'{key}' has shape {arrays[key].shape}, but the {num_episodes} episodes have {num_steps} steps")
    parts = {key: split(arrays[key], ends) for key in ("acts", "rews") if key in arrays}
    return from_episodes(
        split(arrays["obs"], ends + np.arange(1, num_episodes + 1)),
        parts.get("acts"),
        "imitation npz",
        complete=True,
        rewards=parts.get("rews"),
        terminated=arrays["terminal"] if arrays.get("terminal", np.zeros(0)).shape == (num_episodes,) else None,
    )
