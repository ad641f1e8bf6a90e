"""Jumps inside an episode: where a boundary between episodes was lost, the state jumps back to a start.

The numbers were chosen on the 14 recordings that tests/test_oddities.py then checks: with their episodes run together, every
boundary after an episode longer than `SETTLED` is found and nothing else; as they are, nothing is. `SHARE_CLOSER` was chosen on
random actions in Humanoid and HumanoidStandup too. Other tasks were not tried.
"""

import numpy as np
from jaxtyping import Float32, Int64

SETTLED = 40
"""The first rows, which are never taken for a jump: there the state is near the start anyway."""
FALL_BACK = 2.4
"""A jump brings the state this many times closer to the episode's first row in one step; dynamics, at most 2.1 times, but for
impacts, which move a few columns far (Humanoid's forces)."""
SHARE_CLOSER = 0.4
"""So this share of the columns must come at least twice as close. After the recordings' jumps 0.5 and more do (but for some of
InvertedPendulum, which the other rule finds); where Humanoid and HumanoidStandup take random actions, at most 0.24."""
OUT_OF_QUIET = 20.0
"""Or it is this many times larger than each of the last `SETTLED` steps."""


def jumps(rows: Float32[np.ndarray, "rows obs"], std: Float32[np.ndarray, " obs"]) -> Int64[np.ndarray, " n"]:
    """Indices of the rows that begin a new episode inside this one; `std` is the columns' deviation over all episodes."""
    if len(rows) < 2 * SETTLED:
        return np.zeros(0, np.int64)
    moving = std > 1e-9
    z = rows[:, moving].astype(np.float64) / std[moving]
    by_column = np.abs(z - z[0])
    many_closer = (by_column[1:] < 0.5 * by_column[:-1]).mean(axis=1) >= SHARE_CLOSER
    from_start = np.sqrt((by_column**2).mean(axis=1))
    step = np.sqrt((np.diff(z, axis=0) ** 2).mean(axis=1))
    before, after = from_start[:-1], from_start[1:]
    fell_back = (before > FALL_BACK * after) & many_closer & (step > 0.5)
    recent = np.lib.stride_tricks.sliding_window_view(step, SETTLED).max(axis=1)[:-1]  # of the steps before number SETTLED on
    out_of_quiet = np.zeros(len(step), bool)
    out_of_quiet[SETTLED:] = (step[SETTLED:] > OUT_OF_QUIET * recent) & (step[SETTLED:] > 0.5)
    found = np.flatnonzero(fell_back | out_of_quiet) + 1
    found = found[found > SETTLED]
    return found[np.diff(found, prepend=-SETTLED) >= SETTLED] if len(found) else found  # one of each cluster
