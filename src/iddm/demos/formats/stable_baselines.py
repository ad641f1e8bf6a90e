"""Stable-Baselines 2 and IL-Datasets npz: `obs, actions, rewards, episode_returns`, and `episode_starts` flags. T rows."""

import numpy as np

from iddm.demos.formats.common import ends_before, from_episodes, same_length, split
from iddm.demos.types import Demos


def demos_from_starts(arrays: dict[str, np.ndarray]) -> Demos:
    """Episodes from the flags on their first rows."""
    same_length(arrays, ["obs", "actions", "rewards", "episode_starts"])
    ends = ends_before(arrays["episode_starts"])
    parts = {key: split(arrays[key], ends) for key in ("actions", "rewards") if key in arrays}
    return from_episodes(
        split(arrays["obs"], ends),
        parts.get("actions"),
        "Stable-Baselines 2 or IL-Datasets npz",
        complete=False,
        rewards=parts.get("rewards"),
    )
