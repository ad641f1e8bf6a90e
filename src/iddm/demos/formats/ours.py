"""Our own layout of demonstrations as named arrays, for every kind of file that can hold arrays.

| key | what | |
|---|---|---|
| `observations` | float32 [rows, D], all episodes' rows one after another | needed |
| `episode_offsets` | integers [E+1], where each episode's rows start and end | written; read if there |
| `episode_lengths` | integers [E], steps (actions) of each episode | written; read if there |
| `actions` | [steps, A] or integers [steps], all episodes' one after another | optional |
| `episode_returns`, `terminated` | [E] | optional |
| `metadata` | 0-d text, a JSON object | optional |

We write T+1 rows for an episode of T steps. Files with T rows (the last successor is missing) are read as T-1
transitions, without the last action. `observations` may also be [E, T+1, D], or [T+1, D] for one episode,
without offsets and lengths. Other keys are left unread.
"""

import json
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Int64, Shaped

from iddm.demos.types import Demos
from iddm.errors import UserError

KEYS = (
    "observations",
    "episode_offsets",
    "episode_lengths",
    "actions",
    "episode_returns",
    "terminated",
    "metadata",
)
NOTE_T_ROWS = (
    "The file has T rows for an episode of T steps: the last successor is missing, so each episode gives T-1 "
    "transitions, its last action is left out, and whether it terminated is unknown."
)


def demos_from_arrays(arrays: dict[str, np.ndarray]) -> Demos:
    """Any of the layouts above."""
    if "observations" not in arrays:
        raise UserError("there is no array named 'observations'; store the states under that name")
    observations = arrays["observations"]
    if observations.ndim not in (2, 3) or observations.size == 0:
        raise UserError(
            f"'observations' has shape {observations.shape}; it must hold [rows, columns], "
            "or [episodes, rows, columns] with episodes of one length"
        )
    metadata = _metadata(arrays.get("metadata"))
    if observations.ndim == 3:
        arrays = _flattened(arrays)
        observations = arrays["observations"]
    actions = arrays.get("actions")
    offsets, lengths = _episodes(arrays, len(observations))
    rows = np.diff(offsets)
    if not rows.all():
        raise UserError(f"episode {np.flatnonzero(rows == 0)[0]} is empty; leave it out")
    missing_last = _last_successor_is_missing(rows, lengths, actions)
    terminated = arrays.get("terminated")
    if missing_last:
        metadata["note_rows"] = NOTE_T_ROWS
        terminated = None
    return Demos(
        observations=_split(observations, offsets),
        actions=None if actions is None else _split_actions(actions, rows, missing_last),
        episode_returns=arrays.get("episode_returns"),
        terminated=terminated,
        metadata=metadata,
    )


def arrays_from_demos(demos: Demos) -> dict[str, np.ndarray]:
    """The layout that we write."""
    rows, _ = demos.flat()
    arrays = {
        "observations": rows,
        "episode_offsets": np.concatenate([[0], np.cumsum(demos.lengths + 1)]),
        "episode_lengths": demos.lengths,
        "actions": demos.flat_actions(),
        "episode_returns": demos.episode_returns,
        "terminated": demos.terminated,
        "metadata": np.array(json.dumps(demos.metadata, sort_keys=True)),
    }
    return {key: array for key, array in arrays.items() if array is not None}


def _flattened(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """[E, T+1, D] as all episodes' rows one after another, with their offsets."""
    if "episode_offsets" in arrays or "episode_lengths" in arrays:
        raise UserError(
            "'observations' of 3 dimensions cannot be combined with 'episode_offsets' or 'episode_lengths'; "
            "store all episodes' rows one after another as [rows, columns]"
        )
    num_episodes, num_rows, obs_size = arrays["observations"].shape
    flat = {
        **arrays,
        "observations": arrays["observations"].reshape(-1, obs_size),
        "episode_offsets": np.arange(num_episodes + 1) * num_rows,
    }
    if "actions" in arrays:
        shape = arrays["actions"].shape
        if len(shape) < 2 or shape[0] != num_episodes or 0 in shape:
            raise UserError(
                f"'actions' has shape {shape}; beside {num_episodes} episodes of one length it must be "
                "[episodes, steps, columns] or [episodes, steps]"
            )
        flat["actions"] = arrays["actions"].reshape(shape[0] * shape[1], *shape[2:])
    return flat


def _metadata(array: np.ndarray | None) -> dict[str, Any]:
    if array is None:
        return {}
    try:
        metadata = json.loads(str(array)) if array.ndim == 0 and array.dtype.kind == "U" else None
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise UserError("'metadata' must be a 0-d text array that holds a JSON object")
    return metadata


def _integers(array: np.ndarray, key: str, num_rows: int) -> Int64[np.ndarray, " n"]:
    if array.dtype.kind not in "iu" or array.ndim != 1 or len(array) == 0:
        raise UserError(f"'{key}' must be a list of integers, not {array.dtype} of shape {array.shape}")
    if array.min() < 0 or array.max() > num_rows:
        value = array.min() if array.min() < 0 else array.max()
        raise UserError(f"'{key}' holds {value}, but 'observations' has {num_rows} rows")
    return array.astype(np.int64)


def _episodes(
    arrays: dict[str, np.ndarray], num_rows: int
) -> tuple[Int64[np.ndarray, " ends"], Int64[np.ndarray, " episodes"] | None]:
    """Where episodes start and end, and their steps where the file says."""
    lengths = offsets = None
    if "episode_lengths" in arrays:
        lengths = _integers(arrays["episode_lengths"], "episode_lengths", num_rows)
    if "episode_offsets" in arrays:
        offsets = _integers(arrays["episode_offsets"], "episode_offsets", num_rows)
        if offsets[0] != 0 or offsets[-1] != num_rows or (np.diff(offsets) < 0).any():
            raise UserError(f"'episode_offsets' must rise from 0 to {num_rows}, the number of rows in 'observations'")
        if len(offsets) < 2 or (lengths is not None and len(lengths) != len(offsets) - 1):
            raise UserError(f"'episode_offsets' has {len(offsets)} entries; it needs one more than there are episodes")
    elif lengths is not None:
        total = int(lengths.sum())
        if num_rows not in (total, total + len(lengths)):
            raise UserError(
                f"'episode_lengths' adds up to {total} steps in {len(lengths)} episodes, which needs "
                f"{total + len(lengths)} rows (or {total} without the last successors), "
                f"but there are {num_rows}"
            )
        offsets = np.concatenate([[0], np.cumsum(lengths + (num_rows != total))])
    return (np.array([0, num_rows]) if offsets is None else offsets), lengths


def _last_successor_is_missing(
    rows: Int64[np.ndarray, " episodes"],
    lengths: Int64[np.ndarray, " episodes"] | None,
    actions: np.ndarray | None,
) -> bool:
    """Whether episodes have T rows (True) or T+1 rows (False): by the lengths, else by the number of actions."""
    if lengths is None:
        return actions is not None and actions.ndim > 0 and len(actions) == int(rows.sum())
    if (rows == lengths).all():
        return True
    wrong = np.flatnonzero(rows != lengths + 1)
    if len(wrong):
        e = wrong[0]
        raise UserError(
            f"episode {e} has {rows[e]} rows for {lengths[e]} steps; all episodes must have one row more "
            "than steps, or all as many rows as steps"
        )
    return False


def _split(array: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(array[start:end] for start, end in pairwise(offsets))


def _split_actions(
    actions: np.ndarray, rows: Int64[np.ndarray, " episodes"], missing_last: bool
) -> tuple[Shaped[np.ndarray, "_ ..."], ...]:
    steps = rows if missing_last else rows - 1
    if actions.ndim == 0 or len(actions) != steps.sum():
        raise UserError(
            f"'actions' has shape {actions.shape}, but the episodes have {steps.sum()} steps; one row per step is needed"
        )
    episodes = _split(actions, np.concatenate([[0], np.cumsum(steps)]))
    return tuple(episode[:-1] for episode in episodes) if missing_last else episodes
