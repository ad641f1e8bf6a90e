"""Tables: one row per state, with columns that number or name the episode. Names are compared without case and punctuation.

| column | taken as |
|---|---|
| `episode`, `trial`, `take`, `subject`, `clip`, … (`ID`), also with `_id` or `_index` | together, which episode a row is of |
| `time`, `timestamp`, `t`, `time_ms`, … | not a state; says how far apart the rows are |
| `step`, `frame`, `index`, … | not a state; rows must already be in order |
| `action…` | actions; with T rows of them, the state after an episode's last action is missing |
| `reward`, `done`, `terminated`, `truncated`, … | not a state |
| every other | a column of the state, under its name |

Without a column of episodes, one begins wherever the time (or the step) goes back; without that too, all rows are one episode.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from iddm.demos.formats.arrow import arrays_of, read_parquet
from iddm.demos.formats.common import column_names, from_episodes, same_length, side_by_side, split
from iddm.demos.types import Demos
from iddm.errors import UserError

ID = re.compile(
    r"(episode|trajectory|traj|trial|take|subject|participant|clip|session|sequence|recording|demo|rollout)(_?(id|idx|index|nr|no|number))?"
)
TIME = re.compile(r"(time|timestamp|t|seconds)(_(s|sec|seconds|ms|us|ns))?")
TIME_UNITS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}
COUNTERS = {"step", "steps", "frame", "frame_index", "index"}
NOT_STATES = {
    *COUNTERS,
    *("", "unnamed:_0", "task_index"),  # pandas writes its index without a name
    *("reward", "rewards", "done", "dones", "terminal", "terminals", "terminated", "truncated", "timeout", "timeouts"),
    *("next.reward", "next.done", "next.truncated", "next.success"),
}


def read_parquet_table(path: Path, episode_column: str | None = None) -> Demos:
    """Columns of numbers, or of lists of numbers."""
    table = read_parquet(path)
    ids = id_columns(table.schema.names, episode_column)
    return demos_from_columns(arrays_of(table, codes=ids), ids, "Parquet")


def id_columns(names: Sequence[str], given: str | None) -> tuple[str, ...]:
    """The columns that together say which episode a row is of: those that `--episode-column` gives, or whose names say so."""
    if given is None:
        return tuple(name for name in names if ID.fullmatch(_plain(name)))
    wanted = [part.strip() for part in given.split(",")]
    for name in wanted:
        if name not in names:
            raise UserError(f"--episode-column {given}: there is no column '{name}'; there are {', '.join(names[:20])}")
    return tuple(wanted)


def is_state(name: str) -> bool:
    """Whether a column that is not of the episode holds a part of the state."""
    plain = _plain(name)
    return plain not in NOT_STATES and not TIME.fullmatch(plain) and not plain.startswith("action")


def demos_from_columns(
    columns: dict[str, np.ndarray], ids: Sequence[str], source: str, metadata: dict[str, Any] | None = None
) -> Demos:
    """Episodes by the columns `ids`, in the order in which they begin."""
    num_rows = same_length(columns, list(columns)) if columns else 0
    if num_rows == 0:
        raise UserError("the table has no rows")
    numbers = {name: column for name, column in columns.items() if name not in ids and column.dtype.kind in "fiub"}
    states = {name: column for name, column in numbers.items() if is_state(name)}
    actions = {name: column for name, column in columns.items() if name not in ids and _plain(name).startswith("action")}
    if not states:
        raise UserError(f"no column of the table is a state (there are {', '.join(list(columns)[:12])})")
    metadata = {**(metadata or {}), "columns": column_names(states)}
    clocks = [name for name, column in numbers.items() if column.ndim == 1 and TIME.fullmatch(_plain(name))]
    if ids:
        order, ends = _by_id(np.stack([columns[name] for name in ids], axis=1))
    else:
        counters = [name for name, column in numbers.items() if column.ndim == 1 and _plain(name) in COUNTERS]
        counter = next(iter([*clocks, *counters]), None)
        back = [] if counter is None else np.flatnonzero(np.diff(numbers[counter]) < 0) + 1
        order, ends = np.arange(num_rows), np.append(back, num_rows).astype(np.int64)
        how = f"an episode begins wherever '{counter}' goes back" if len(back) else "all of its rows are taken as one episode"
        metadata["note_boundaries"] = f"The table has no column 'episode' (or trial, take, …): {how}; --episode-column names one."
    if clocks:
        metadata |= _rate(clocks[0], split(numbers[clocks[0]][order].astype(np.float64), ends))
    reward = next((numbers[name] for name in numbers if _plain(name) in ("reward", "rewards", "next.reward")), None)
    return from_episodes(
        split(side_by_side(states)[order], ends),
        split(_actions(actions)[order], ends) if actions else None,
        source,
        complete=not actions,
        rewards=None if reward is None else split(reward[order], ends),
        metadata=metadata,
    )


def _by_id(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order that puts rows with the same [rows, columns] of `ids` together, and where each such group ends."""
    _, first, which = np.unique(ids, axis=0, return_index=True, return_inverse=True)
    began = first[which.reshape(-1)]
    order = np.argsort(began, kind="stable")
    return order, np.append(np.flatnonzero(np.diff(began[order])) + 1, len(ids))


def _rate(name: str, times: list[np.ndarray]) -> dict[str, Any]:
    """How many seconds the rows are apart, by the column of time, and what is odd about it."""
    steps = np.concatenate([np.diff(part) for part in times])
    usual = float(np.median(steps)) if len(steps) and np.isfinite(steps).all() else 0.0
    unit = _plain(name).rpartition("_")[2]
    if usual <= 0:
        return {"warning_time": f"Column '{name}' does not rise from row to row: are the rows of an episode in order?"}
    if unit == _plain(name) and usual >= 1 and (steps == np.round(steps)).all():  # counts rows, or milliseconds
        told = f"Column '{name}' rises by {usual:g} per row, which is not taken as seconds: call it {name}_ms, _us, _ns or _s."
        return {} if usual == 1 else {"note_time": told}
    even = np.abs(steps - usual) < usual / 2
    about: dict[str, Any] = {"row_seconds": float(steps[even].mean()) * TIME_UNITS.get(unit, 1.0)}
    if even.mean() < 0.99:
        about["warning_time"] = (
            f"In {1 - even.mean():.0%} of the steps, '{name}' moves by less than half or more than one and a half of its usual "
            f"{usual:g}: rows are missing or uneven; interpolate them to even times first."
        )
    return about


def _actions(parts: dict[str, np.ndarray]) -> np.ndarray:
    together = side_by_side(parts)
    whole = together.shape[1] == 1 and together.dtype.kind in "fiub" and (together == np.round(together)).all()
    return together[:, 0].astype(np.int64) if whole and np.abs(together).max() < 2**31 else together


def _plain(name: str) -> str:
    """ "time_s" of "Time (s)"."""
    return re.sub(r"[\s()\[\]-]+", "_", name.lower()).strip("_")
