"""CSV and Parquet tables: one row per state, with a column that numbers or names the episode.

| column | taken as |
|---|---|
| `episode`, `episode_id`, `episode_index`, `trajectory`, `traj`, … | the episode; without one, all rows are one episode |
| `step`, `t`, `time`, `timestamp`, `frame`, … | not a state; rows must already be in order |
| `action…` | actions; with T rows of them, the state after an episode's last action is missing |
| `reward`, `done`, `terminated`, `truncated`, … | not a state |
| every other | a column of the state, under its name |
"""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from iddm.demos.formats.arrow import arrays_of, read_parquet
from iddm.demos.formats.common import column_names, from_episodes, same_length, side_by_side, split
from iddm.demos.types import Demos
from iddm.errors import UserError

EPISODE = ("episode", "episode_id", "episode_index", "episode_idx", "trajectory", "trajectory_id", "traj", "traj_id")
NOT_STATES = {
    *("step", "steps", "t", "time", "timestamp", "frame", "frame_index", "index", "task_index"),
    *("reward", "rewards", "done", "dones", "terminal", "terminals", "terminated", "truncated", "timeout", "timeouts"),
    *("next.reward", "next.done", "next.truncated", "next.success"),
}
MAX_LINE = 1 << 20


def is_text(head: bytes) -> bool:
    """Bytes that could begin a table of text."""
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = head[: error.start].decode("utf-8-sig", errors="replace") if error.start > len(head) - 4 else ""
    return bool(text.strip()) and all(c.isprintable() or c in "\r\n\t" for c in text) and text.lstrip()[0] not in "{[<"


def read_csv(path: Path) -> Demos:
    """Comma, semicolon or tab; with a line of names, or of numbers alone."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        first = file.readline(MAX_LINE)
        delimiter = max(",;\t", key=first.count)
        names = [name.strip() for name in next(csv.reader([first], delimiter=delimiter))]
        headed = not all(_is_number(name) for name in names)
        if headed and len(set(names)) != len(names):
            raise UserError("two columns of the table have the same name")
        episode = next((i for i, name in enumerate(names) if headed and name.lower() in EPISODE), None)
        body = io.StringIO(("" if headed else first) + file.read())
    options: dict[str, Any] = {"delimiter": delimiter, "comments": None, "ndmin": 2}
    if not body.getvalue().strip():
        raise UserError("the table has no rows")
    try:
        columns = {}
        if episode is not None:
            codes: dict[str, int] = {}  # one number per name: an array of text would be as wide as its longest
            rows = (row for row in csv.reader(body, delimiter=delimiter) if row)
            columns[names[episode]] = np.array([codes.setdefault(row[episode], len(codes)) for row in rows])
            body.seek(0)
        numeric = [i for i in range(len(names)) if i != episode]
        values = np.loadtxt(body, dtype=np.float64, usecols=numeric, **options)
    except (ValueError, IndexError, csv.Error) as error:
        raise UserError(f"the table cannot be read: {str(error).splitlines()[0][:200]}") from None
    for j, i in enumerate(numeric):
        columns[names[i] if headed else f"column{i}"] = values[:, j]
    return demos_from_columns(columns, "CSV")


def read_parquet_table(path: Path) -> Demos:
    """Columns of numbers, or of lists of numbers."""
    return demos_from_columns(arrays_of(read_parquet(path), codes=EPISODE), "Parquet")


def demos_from_columns(columns: dict[str, np.ndarray], source: str) -> Demos:
    """Episodes by the episode column, in the order in which they begin."""
    num_rows = same_length(columns, list(columns)) if columns else 0
    if num_rows == 0:
        raise UserError("the table has no rows")
    episode = next((name for name in columns if name.lower() in EPISODE), None)
    actions = {name: column for name, column in columns.items() if name.lower().startswith("action")}
    states = {
        name: column
        for name, column in columns.items()
        if name != episode and name not in actions and name.lower() not in NOT_STATES and column.dtype.kind in "fiub"
    }
    if not states:
        raise UserError(f"no column of the table is a state (there are {', '.join(list(columns)[:12])})")
    metadata: dict[str, Any] = {"columns": column_names(states)}
    if episode is None:
        metadata["note_boundaries"] = f"The table has no column '{EPISODE[0]}': all of its rows are taken as one episode."
        order, ends = np.arange(num_rows), np.array([num_rows])
    else:
        _, first, which = np.unique(columns[episode], return_index=True, return_inverse=True)
        began = first[which.reshape(-1)]
        order = np.argsort(began, kind="stable")
        ends = np.append(np.flatnonzero(np.diff(began[order])) + 1, num_rows)
    reward = next((columns[name] for name in columns if name.lower() in ("reward", "rewards", "next.reward")), None)
    return from_episodes(
        split(side_by_side(states)[order], ends),
        split(_actions(actions)[order], ends) if actions else None,
        source,
        complete=not actions,
        rewards=None if reward is None else split(reward[order], ends),
        metadata=metadata,
    )


def _actions(parts: dict[str, np.ndarray]) -> np.ndarray:
    together = side_by_side(parts)
    whole = together.shape[1] == 1 and together.dtype.kind in "fiub" and (together == np.round(together)).all()
    return together[:, 0].astype(np.int64) if whole and np.abs(together).max() < 2**31 else together


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
