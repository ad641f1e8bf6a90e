"""LeRobot folders, v3 (many episodes per file) and v2.1 (one per file): `observation.state` by `episode_index`. T rows."""

from pathlib import Path

import numpy as np

from iddm.demos.formats.arrow import arrays_of, read_parquet
from iddm.demos.formats.common import from_episodes, read_json, same_length, split
from iddm.demos.types import Demos
from iddm.errors import UserError

STATE, EPISODE = "observation.state", "episode_index"
KEEP = (STATE, EPISODE, "frame_index", "action", "next.reward")


def is_lerobot_folder(path: Path) -> bool:
    return (path / "meta" / "info.json").is_file()


def read_lerobot(path: Path) -> Demos:
    """Every file under `data`, in order of episode and frame."""
    info = read_json(path / "meta" / "info.json")
    files = sorted(path.glob("data/chunk-*/*.parquet"))
    if not files:
        raise UserError("there is no data/chunk-*/*.parquet in the folder; download the whole dataset")
    tables = [arrays_of(read_parquet(file, KEEP)) for file in files]
    for file, table in zip(files, tables, strict=True):
        if STATE not in table or EPISODE not in table:
            raise UserError(f"{file.name} has no column '{STATE if STATE not in table else EPISODE}' of numbers")
    shared = [key for key in KEEP if all(key in table for table in tables)]
    arrays = {key: np.concatenate([table[key] for table in tables]) for key in shared}
    same_length(arrays, shared)
    order = np.lexsort((arrays.get("frame_index", np.arange(len(arrays[EPISODE]))), arrays[EPISODE]))
    arrays = {key: array[order] for key, array in arrays.items()}
    ends = np.append(np.flatnonzero(np.diff(arrays[EPISODE])) + 1, len(order))
    parts = {key: split(arrays[key], ends) for key in ("action", "next.reward") if key in arrays}
    return from_episodes(
        split(arrays[STATE], ends),
        parts.get("action"),
        f"LeRobot {info.get('codebase_version', '')}".strip(),
        complete=False,
        rewards=parts.get("next.reward"),
        metadata=_about(info, arrays[STATE][:1].size),
    )


def _about(info: dict, size: int) -> dict:
    about = {key: info[key] for key in ("fps", "robot_type") if isinstance(info.get(key), (int, float, str))}
    names = info.get("features", {}).get(STATE, {}).get("names")
    if isinstance(names, dict):  # {"motors": [...]}
        names = next(iter(names.values()), None)
    if isinstance(names, list) and len(names) == size and all(isinstance(name, str) for name in names):
        about["columns"] = names
    return about
