"""robomimic hdf5: `data/demo_i` with `obs/<key>`, `actions`, `rewards`, and often `next_obs/<key>`, which makes T+1 rows of T."""

import json
import re
from typing import TYPE_CHECKING

import numpy as np

from iddm.demos.formats.common import column_names, from_episodes, side_by_side
from iddm.demos.types import Demos
from iddm.errors import UserError

if TYPE_CHECKING:
    from iddm.demos.formats.hdf5 import Hdf5


def read_robomimic(file: "Hdf5") -> Demos:
    """All low-dimensional keys of `obs` side by side, sorted by name (images are left out); `states` where there is no `obs`."""
    names = [name for name in file.names("data") if re.fullmatch(r"demo_\d{1,9}", name)]
    names.sort(key=lambda name: int(name.removeprefix("demo_")))
    if not names:
        raise UserError("'data' holds no 'demo_0'")
    keys = _low_dimensional(file, f"data/{names[0]}")
    observations, actions, rewards, columns = [], [], [], []
    complete = all("next_obs" in file.names(f"data/{name}") for name in names) and all(key.startswith("obs/") for key in keys)
    for name in names:
        where = f"data/{name}"
        parts = {key.removeprefix("obs/"): file.array(f"{where}/{key}") for key in keys}
        rows = side_by_side(parts)
        if complete and len(rows):
            last = {key: file.array(f"{where}/next_obs/{key}") for key in parts}
            rows = np.concatenate([rows, side_by_side(last)[-1:]])
        columns = column_names(parts)
        observations.append(rows)
        inside = file.names(where)
        actions.append(file.array(f"{where}/actions") if "actions" in inside else None)
        rewards.append(file.array(f"{where}/rewards") if "rewards" in inside else None)
    return from_episodes(
        observations,
        None if any(a is None for a in actions) else actions,
        "robomimic hdf5",
        complete,
        rewards=None if any(r is None for r in rewards) else rewards,
        metadata={"columns": columns, **_env(file.text("data", "env_args"))},
    )


def _low_dimensional(file: "Hdf5", demo: str) -> list[str]:
    inside = file.names(demo)
    keys = [f"obs/{key}" for key in sorted(file.names(f"{demo}/obs"))] if "obs" in inside else []
    keys = [key for key in keys if len(file.shape(f"{demo}/{key}") or ()) in (1, 2)]
    if not keys and "states" in inside:
        return ["states"]
    if not keys:
        raise UserError(f"'{demo}' has neither low-dimensional arrays in 'obs' nor 'states'")
    return keys


def _env(env_args: str | None) -> dict[str, str]:
    try:
        return {"env_id": str(json.loads(env_args or "")["env_name"])}
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
