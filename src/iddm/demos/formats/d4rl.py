"""D4RL hdf5: flat `observations, actions, rewards, terminals`, newer files also `timeouts` or `next_observations`. T rows."""

import numpy as np

from iddm.demos.formats.common import ends_after, from_episodes, same_length, split
from iddm.demos.types import Demos
from iddm.errors import UserError


def demos_from_flat(arrays: dict[str, np.ndarray]) -> Demos:
    """The next row is the successor, except after a `terminals` or `timeouts` flag. `next_observations` completes the rows."""
    num_rows = same_length(arrays, list(arrays))
    if num_rows == 0:
        raise UserError("'observations' is empty")
    last = np.zeros(num_rows, bool)
    for key in ("terminals", "timeouts"):
        if key in arrays:
            last |= arrays[key].reshape(num_rows, -1)[:, 0].astype(bool)
    ends = ends_after(last)
    observations = split(arrays["observations"].reshape(num_rows, -1), ends)
    complete = "next_observations" in arrays
    if complete:
        successors = split(arrays["next_observations"].reshape(num_rows, -1), ends)
        observations = [np.concatenate([a, b[-1:]]) for a, b in zip(observations, successors, strict=True)]
    metadata = {}
    if "timeouts" not in arrays:
        metadata["note_boundaries"] = (
            "The file has no 'timeouts': episodes that a time limit ended run into the next one, unless 'terminals' marks them."
        )
    parts = {key: split(arrays[key], ends) for key in ("actions", "rewards") if key in arrays}
    flags = arrays["terminals"].reshape(num_rows, -1)[ends - 1, 0].astype(bool) if "terminals" in arrays else None
    return from_episodes(
        observations,
        parts.get("actions"),
        "D4RL hdf5",
        complete,
        rewards=parts.get("rewards"),
        terminated=flags,
        metadata=metadata,
    )
