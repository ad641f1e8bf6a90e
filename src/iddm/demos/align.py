"""How demonstrations are aligned with an environment: which columns are compared, how many states at once, how far apart.

Demonstrations rarely match an environment exactly: some columns are missing, or the camera was slower than the simulator. The
policy and the mutual information still see the whole state; only what is compared with the expert is cut to what both have.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from jaxtyping import Int32

from iddm.demos.types import Demos
from iddm.envs.spaces import EnvSizes
from iddm.errors import UserError

MAX_LAG = 8
"""A stride with larger numbers (a row is 16/15 of a step) is handled by interpolation instead of by comparing distant states."""


@dataclass(frozen=True)
class View:
    """k states, each `agent_lag` environment steps (or `expert_lag` rows of the demonstrations) after the one before.

    Before an episode is that old, its first state stands in for earlier ones, on both sides.
    """

    columns: tuple[int, ...] | None = None
    """Of the environment's observation; None for all."""
    window: int = 2
    agent_lag: int = 1
    expert_lag: int = 1

    @property
    def stride(self) -> Fraction:
        """Environment steps between two rows of the demonstrations."""
        return Fraction(self.agent_lag, self.expert_lag)

    @property
    def agent_lags(self) -> tuple[int, ...]:
        """How many steps before the newest state each of the others is, oldest first."""
        return tuple(self.agent_lag * i for i in range(self.window - 1, 0, -1))

    @property
    def plain(self) -> bool:
        """The pair (s, s') with all columns, or with some."""
        return self.window == 2 and self.agent_lag == 1 and self.expert_lag == 1

    def expert_past(self, demos: Demos) -> Int32[np.ndarray, "transitions states"]:
        """For each transition of `Demos.flat`, the rows of the states before its successor, oldest first."""
        lags = self.expert_lag * np.arange(self.window - 1, 0, -1)
        first = np.cumsum([0, *demos.lengths[:-1] + 1])
        past = [start + np.maximum(np.arange(1, n + 1)[:, None] - lags, 0) for start, n in zip(first, demos.lengths, strict=True)]
        return np.concatenate(past).astype(np.int32)


def make_view(columns: tuple[int, ...] | None, window: int, stride: Fraction) -> View:
    """`stride`: environment steps between two rows of the demonstrations."""
    if window < 2:
        raise UserError(
            f"--window {window}: a discriminator on transitions needs at least 2 states; for single states, use method gaifo-s."
        )
    return View(columns, window, stride.numerator, stride.denominator)


def parse_stride(text: str) -> Fraction:
    """ "2" (demonstrations at half the rate), "1/2" (at twice the rate), "5/3"."""
    try:
        stride = Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        stride = Fraction(0)
    if not Fraction(1, 1000) <= stride <= 1000:
        raise UserError(
            f"--stride {text}: give the number of environment steps between two rows of the demonstrations, such as 2 or 5/3."
        )
    return stride


def at_the_environments_rate(demos: Demos, stride: Fraction, always: bool = False) -> tuple[Demos, Fraction]:
    """Demonstrations to use with a stride of small numbers; others, or `always`, are interpolated to one row per step.

    A stride of 1/k keeps every k-th row as it is.
    """
    if stride == 1 or (max(stride.numerator, stride.denominator) <= MAX_LAG and not always):
        return demos, stride
    episodes = []
    for rows in demos.observations:
        times = np.arange(len(rows)) * float(stride)
        wanted = np.arange(int(times[-1] + 1e-9) + 1)
        if len(wanted) > 1:
            episodes.append(np.stack([np.interp(wanted, times, column) for column in rows.T], axis=1))
    if not episodes:
        raise UserError(f"--stride {stride}: no episode of the demonstrations lasts a whole environment step.")
    kept = len(episodes) == demos.num_episodes
    returns, ended = (demos.episode_returns, demos.terminated) if kept else (None, None)
    return Demos(tuple(episodes), None, returns, ended, {**demos.metadata, "interpolated": str(stride)}), Fraction(1)


def parse_columns(text: str, size: int, names: Sequence[str], whose: str) -> tuple[int, ...]:
    """ "0:8,11,height": indices, ranges without their end, and names, in the order given."""
    chosen: list[int] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        if part in names:
            chosen.append(list(names).index(part))
        elif span := re.fullmatch(r"(\d{0,7}):(\d{0,7})", part):
            chosen += range(int(span[1] or 0), int(span[2] or size))
        elif part.isdecimal():
            chosen.append(int(part))
        else:
            known = (
                f"; there are {', '.join(names[:20])}" if names else ", whose columns have no names: give indices such as 0:8,11"
            )
            raise UserError(f"'{part}' is not a column of {whose}{known}.")
    if not chosen or max(chosen) >= size or len(set(chosen)) != len(chosen):
        raise UserError(f"Columns '{text}' of {whose}: choose some of 0 to {size - 1}, each once.")
    return tuple(chosen)


def take_columns(demos: Demos, columns: tuple[int, ...]) -> Demos:
    """The same episodes with only these columns of the states."""
    metadata = dict(demos.metadata)
    if demos.columns:
        metadata["columns"] = [demos.columns[i] for i in columns]
    return replace(demos, observations=tuple(rows[:, list(columns)] for rows in demos.observations), metadata=metadata)


def by_name(demos: Demos, names: Sequence[str]) -> Demos | None:
    """The columns of these names, in this order; None where the demonstrations do not have them all."""
    if not names or not set(names) <= set(demos.columns):
        return None
    return take_columns(demos, tuple(demos.columns.index(name) for name in names))


def choose_columns(
    demos: Demos, env: EnvSizes, columns: str | None, demo_columns: str | None, where: str
) -> tuple[Demos, tuple[int, ...] | None]:
    """The demonstrations cut to the columns that are compared, and which of the environment's these are (None for all).

    Where both have names, columns are matched by these, otherwise by their order.
    """
    if demo_columns is not None:
        demos = take_columns(demos, parse_columns(demo_columns, demos.obs_size, demos.columns, where))
    whole = demos.obs_size == env.obs_size
    own = whole and columns is not None and not any(part.strip() in env.columns for part in columns.split(","))
    names = demos.columns if own else env.columns
    chosen = None if columns is None else parse_columns(columns, env.obs_size, names, env.env_id)
    compared = [env.columns[i] for i in chosen or range(env.obs_size)] if env.columns else []
    if named := by_name(demos, compared):
        return named, chosen
    if whole and chosen is not None:
        demos = take_columns(demos, chosen)
    for theirs, ours in zip(demos.columns, compared, strict=False):
        if theirs != ours and theirs in env.columns and demos.obs_size == len(compared):
            raise UserError(
                f"{where}: column '{theirs}' would be compared with '{ours}' of {env.env_id}; give --columns in the file's order."
            )
    if chosen is None or demos.obs_size == len(chosen):
        return demos, chosen
    raise UserError(
        f"{where}: there are {demos.obs_size} columns; with --columns {columns} there must be those {len(chosen)} in that order, "
        f"or all {env.obs_size} of {env.env_id}; choose some with --demo-columns."
    )
