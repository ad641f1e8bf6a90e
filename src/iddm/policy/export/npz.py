"""Plain arrays. A few lines of any language act with them; docs/demonstrations.md has them in NumPy."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from iddm.policy import Policy
from iddm.utils.files import write_whole


def export_npz(policy: Policy, out: Path) -> None:
    """`mean, std, clip`, `weight0, bias0, …`, `centre, scale, low, high` of a Box or `start` of choices.

    Between the layers is `activation` (tanh or relu); where `squashed` is true, a tanh follows the last one.
    """
    space = policy.action_space
    arrays: dict[str, Any] = {"mean": policy.mean, "std": policy.std, "clip": np.float32(policy.clip)}
    for i, (weight, bias) in enumerate(policy.mode_layers()):
        arrays |= {f"weight{i}": weight, f"bias{i}": bias}
    if space.discrete:
        arrays["start"] = np.int64(space.start)
    else:
        centre, scale = space.centre_and_scale
        arrays |= {"centre": centre, "scale": scale, "low": np.array(space.low), "high": np.array(space.high)}
        arrays["shape"] = np.array(space.shape, np.int64)
    arrays |= {"activation": np.array(policy.activation), "squashed": np.array(policy.squashed)}
    if policy.log_std is not None:
        arrays["log_std"] = policy.log_std
    content = io.BytesIO()
    np.savez(content, **arrays, about=np.array(json.dumps(policy.config, sort_keys=True)))
    write_whole(out, content.getvalue())
