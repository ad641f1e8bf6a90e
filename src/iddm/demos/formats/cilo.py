"""CILO's npz: pairs `states`, `next_states` with `actions`, and `starts`, a flag on each episode's first pair."""

import numpy as np

from iddm.demos.formats.common import from_episodes, same_length, split
from iddm.demos.types import Demos
from iddm.errors import UserError


def demos_from_pairs(arrays: dict[str, np.ndarray]) -> Demos:
    """A pair joins the episode of the one before it where its state is that one's successor; nothing is lost."""
    num_pairs = same_length(arrays, ["states", "next_states", "actions", "starts"])
    if num_pairs == 0:
        raise UserError("'states' is empty")
    s, s_next = (arrays[key].reshape(num_pairs, -1) for key in ("states", "next_states"))
    if s.shape != s_next.shape:
        raise UserError(f"'states' has shape {arrays['states'].shape}, but 'next_states' {arrays['next_states'].shape}")
    begins = np.ones(num_pairs, bool)
    begins[1:] = (s[1:] != s_next[:-1]).any(axis=1)
    if "starts" in arrays:
        begins |= arrays["starts"].reshape(num_pairs, -1)[:, 0].astype(bool)
    ends = np.append(np.flatnonzero(begins)[1:], num_pairs)
    episodes = [np.concatenate([a, b[-1:]]) for a, b in zip(split(s, ends), split(s_next, ends), strict=True)]
    actions = split(arrays["actions"], ends) if "actions" in arrays else None
    return from_episodes(episodes, actions, "CILO npz", complete=True)
