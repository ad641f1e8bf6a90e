"""Every array of a demonstration is checked here, once, whether it comes from a file or from a program.

An error names the place by episode, column and row, all counted from 0, the row within its episode.
It does not name the file: `load_demos` adds that.
"""

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Float64
from numpy.typing import ArrayLike

from iddm.errors import UserError

MANY = 10_000
"""From this many episodes on, they are checked all at once."""


def check_observations(episodes: Iterable[ArrayLike], names: Any = None) -> tuple[Float32[np.ndarray, "_ obs"], ...]:
    """Episodes of at least two rows, all of one width, every number finite; frozen copies in float32.

    `names` are those of the columns, where there are any.
    """
    episodes = tuple(episodes)
    together = _all_at_once(episodes, np.float32)
    if together is not None and together[0].ndim == 2 and min(map(len, together)) > 1:
        return together
    checked = []
    for e, episode in enumerate(episodes):
        rows = _numbers(episode, f"episode {e}")
        if rows.ndim != 2:
            raise UserError(
                f"episode {e} has {rows.ndim} dimension(s), shape {rows.shape}; "
                "an episode is [rows, columns] with one flat observation per row"
            )
        if len(rows) == 0:
            raise UserError(f"episode {e} is empty; an episode needs at least two rows (a state and its successor)")
        if len(rows) == 1:
            raise UserError(f"episode {e} has one row; it needs at least two (a state and its successor)")
        if rows.shape[1] == 0:
            raise UserError(f"episode {e} has no columns; each row must hold an observation")
        if checked and rows.shape[1] != checked[0].shape[1]:
            raise UserError(
                f"episode {e} has {rows.shape[1]} columns, but episode 0 has {checked[0].shape[1]}; "
                "all episodes must come from one observation space"
            )
        checked.append(_finite(_frozen(rows, np.float32), f"episode {e} has", names))
    if not checked:
        raise UserError("there are no episodes; at least one is needed")
    return tuple(checked)


def check_actions(actions: Iterable[ArrayLike] | None, observations: Sequence[np.ndarray]) -> tuple[np.ndarray, ...] | None:
    """One action per transition: [T, A] float32, or [T] int64 for one integer per step."""
    if actions is None:
        return None
    actions = tuple(actions)
    together = _all_at_once(actions, None)
    if together is not None and [len(rows) + 1 for rows in together] == list(map(len, observations)):
        return together
    checked: list[np.ndarray] = []
    for e, episode in enumerate(actions):
        what = f"the actions of episode {e}"
        rows = _numbers(episode, what)
        if rows.ndim not in (1, 2) or 0 in rows.shape[1:]:
            raise UserError(f"{what} have shape {rows.shape}; they must be [steps, columns], or [steps] of integers")
        if e < len(observations) and len(rows) != len(observations[e]) - 1:
            raise UserError(
                f"episode {e} has {len(rows)} actions for {len(observations[e])} rows of observations; "
                f"it needs {len(observations[e]) - 1}, one for each row but the last"
            )
        discrete = rows.dtype.kind in "iub" and (rows.ndim == 1 or rows.shape[1] == 1)
        rows = rows.reshape(-1) if discrete else rows.reshape(len(rows), -1)
        if checked and (rows.shape[1:] != checked[0].shape[1:]):
            raise UserError(f"{what} have shape {rows.shape}, but those of episode 0 have {checked[0].shape}")
        checked.append(_finite(_frozen(rows, np.int64 if discrete else np.float32), f"{what} have"))
    if len(checked) != len(observations):
        raise UserError(f"there are actions for {len(checked)} episodes, but observations for {len(observations)}")
    return tuple(checked)


def check_returns(returns: ArrayLike | None, num_episodes: int) -> Float64[np.ndarray, " episodes"] | None:
    """One return per episode; None where any is unknown (NaN or infinite), because half a list misleads."""
    if returns is None:
        return None
    values = _frozen(_per_episode(returns, "episode_returns", num_episodes), np.float64)
    return values if np.isfinite(values).all() else None


def check_terminated(terminated: ArrayLike | None, num_episodes: int) -> Bool[np.ndarray, " episodes"] | None:
    """One flag per episode."""
    if terminated is None:
        return None
    return _frozen(_per_episode(terminated, "terminated", num_episodes), np.bool_)


def check_metadata(metadata: Any) -> dict[str, Any]:
    """A copy of what JSON can hold."""
    if not isinstance(metadata, dict):
        raise UserError(f"metadata must be a dictionary (a JSON object), not {type(metadata).__name__}")
    try:
        return json.loads(json.dumps(metadata))
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(f"metadata cannot be written as JSON: {error}") from None


def check_count(n: int, available: int, unit: str) -> int:
    """How many to take: at least one, at most what is there."""
    if not 1 <= n <= available:
        raise UserError(f"cannot take {n} {unit}: choose from 1 to {available}, which is all there are")
    return int(n)


def _numbers(array: ArrayLike, what: str) -> np.ndarray:
    try:
        values = np.asarray(array)
    except ValueError as error:  # ragged lists
        raise UserError(f"{what} is not an array: {error}") from None
    if values.dtype.kind == "O":
        raise UserError(f"{what}: the array holds Python objects, not numbers; store plain float32")
    if values.dtype.kind not in "fiub":
        raise UserError(f"{what}: the array is of type {values.dtype}, not real numbers; store plain float32")
    return values


def _per_episode(values: ArrayLike, what: str, num_episodes: int) -> np.ndarray:
    array = _numbers(values, what)
    if array.shape != (num_episodes,):
        raise UserError(f"{what} has shape {array.shape}; one value for each of the {num_episodes} episodes is needed")
    return array


def _all_at_once(episodes: Sequence[Any], dtype: type[np.generic] | None) -> tuple[np.ndarray, ...] | None:
    """Read-only parts of one array, which takes a second for a million short episodes.

    None if there are few, or if anything is wrong: then they are checked one by one, so that the error can name the place.
    Without a dtype, they are actions: one integer per step stays an integer.
    """
    first = episodes[0] if len(episodes) >= MANY else None
    if not isinstance(first, np.ndarray) or first.dtype.kind not in "fiub" or first.ndim not in (1, 2) or 0 in first.shape[1:]:
        return None
    width, kind = first.shape[1:], first.dtype
    if any(type(rows) is not np.ndarray or rows.dtype != kind or rows.shape[1:] != width or not rows.ndim for rows in episodes):
        return None
    whole = np.concatenate(episodes)
    discrete = dtype is None and kind.kind in "iub" and width in ((), (1,))
    whole = whole.reshape(-1) if discrete else whole.reshape(len(whole), -1) if dtype is None else whole
    with np.errstate(over="ignore"):
        whole = whole.astype(np.int64 if discrete else dtype or np.float32, order="C")
    if not np.isfinite(whole).all():
        return None
    whole.flags.writeable = False
    ends = np.cumsum([len(rows) for rows in episodes]).tolist()
    return tuple(whole[start:end] for start, end in pairwise([0, *ends]))


def _frozen(values: np.ndarray, dtype: type[np.generic]) -> np.ndarray:
    """A read-only copy, or the array itself where it is one already."""
    if values.dtype == dtype and values.flags.c_contiguous and not values.flags.writeable:
        return values
    with np.errstate(over="ignore"):  # beyond float32 becomes infinity, which `_finite` reports with its place
        copy = np.array(values, dtype=dtype, order="C")
    copy.flags.writeable = False
    return copy


def _finite(values: np.ndarray, episode_has: str, names: Any = None) -> np.ndarray:
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        what = "NaN" if np.isnan(values[row, column]) else "infinity (in float32)"
        named = f" '{names[column]}'" if isinstance(names, list) and len(names) == values.shape[1] else ""
        raise UserError(f"{episode_has} {what} in column {column}{named} (row {row})")
    return values
