"""Minari datasets, HDF5 and Arrow or Parquet: read here with bounds, written by the `minari` package. T+1 rows.

`<dataset>/data/metadata.json` holds the spaces as JSON. HDF5: `main_data.hdf5` with `episode_{i}/observations`, where a Dict
space is a group and a Tuple `_index_{k}`. Arrow: one folder per episode, every column padded to T+1 rows.
"""

import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from iddm.demos.formats.arrow import array_of, pyarrow, read_ipc, read_parquet
from iddm.demos.formats.common import MAX_NAMED, from_episodes, memory_limit, read_json
from iddm.demos.formats.hdf5 import Hdf5
from iddm.demos.types import Demos
from iddm.errors import UserError
from iddm.utils.extras import need

MAX_ONE_HOT = 10_000
MAX_NAME = 200
"""Characters of a column's name."""
Leaf = Callable[[tuple[str | int, ...]], np.ndarray]
"""The array at a place in a nested space."""


def is_minari_folder(path: Path) -> bool:
    return _data(path) is not None


def read_minari(path: Path) -> Demos:
    """Observations of any nesting of Box, Discrete, Dict and Tuple, flattened as Gymnasium does, with named columns."""
    data = _data(path)
    assert data is not None
    about = read_json(data / "metadata.json")
    space = json.loads(about["observation_space"])
    kind = about.get("data_format", "hdf5")
    if kind not in ("hdf5", "arrow", "parquet"):
        raise UserError(f"the Minari dataset's data_format is '{kind}'; hdf5, arrow and parquet are read")
    episodes = _read_hdf5(data, space) if kind == "hdf5" else _read_arrow(data, space, kind)
    if not episodes:
        raise UserError("the Minari dataset holds no episodes")
    observations, actions, rewards, terminated = map(list, zip(*episodes, strict=True))
    named = space.get("type") in ("Dict", "Tuple") and observations[0].shape[1] <= MAX_NAMED
    metadata: dict[str, Any] = {"columns": _names(space, observations[0].shape[1])} if named else {}
    env_id = re.search(r'"id": "([\w./:-]+)"', str(about.get("env_spec", "")))
    if env_id:
        metadata["env_id"] = env_id[1]
    known = all(a is not None for a in actions)
    return from_episodes(observations, actions if known else None, f"Minari {kind}", True, rewards, terminated, metadata)


def write_minari(demos: Demos, path: Path) -> None:
    """A Minari dataset in a new folder. Minari requires actions: without any, they are arrays with no columns."""
    need("minari", "minari", "Minari datasets")
    from gymnasium import spaces

    if path.exists():
        raise UserError(f"{path}: already exists; choose another folder, or remove it")
    path.parent.mkdir(parents=True, exist_ok=True)
    box = spaces.Box(-np.inf, np.inf, (demos.obs_size,), np.float32)
    first = None if demos.actions is None else demos.actions[0]
    if first is None:
        action_space = spaces.Box(-np.inf, np.inf, (0,), np.float32)
    elif first.ndim == 1:
        action_space = spaces.Discrete(int(max(a.max() for a in demos.actions or ())) + 1)
    else:
        action_space = spaces.Box(-np.inf, np.inf, first.shape[1:], np.float32)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent.resolve()) as folder:  # minari wants it absolute
        whole = Path(folder) / path.name
        data = whole / "data"
        data.mkdir(parents=True)
        _store(demos, data, box, action_space, path.name)
        whole.rename(path)


def _store(demos: Demos, data: Path, box: Any, action_space: Any, name: str) -> None:
    import minari
    from minari.data_collector.episode_buffer import EpisodeBuffer
    from minari.dataset.minari_storage import MinariStorage

    storage = MinariStorage.new(data, box, action_space, data_format="hdf5")
    buffers = []
    for e, rows in enumerate(demos.observations):
        steps = len(rows) - 1
        ended = np.arange(steps) == steps - 1
        terminal = demos.terminated is not None and bool(demos.terminated[e])
        rewards = np.zeros(steps)
        if demos.episode_returns is not None:
            rewards[-1] = demos.episode_returns[e]  # only the sum is known
        buffers.append(
            EpisodeBuffer(
                id=e,
                observations=rows,  # pyright: ignore[reportArgumentType]
                actions=np.zeros((steps, 0), np.float32) if demos.actions is None else demos.actions[e],  # pyright: ignore
                rewards=rewards.tolist(),
                terminations=(ended & terminal).tolist(),
                truncations=(ended & (not terminal)).tolist(),
            )
        )
    storage.update_episodes(buffers)
    storage.update_metadata(
        {
            "dataset_id": re.sub(r"[^\w-]", "-", name) + ("" if re.search(r"-v\d+$", name) else "-v0"),
            "minari_version": minari.__version__,
            "iddm": json.dumps(demos.metadata),
        }
    )


def _data(path: Path) -> Path | None:
    """The folder with metadata.json, whether the dataset's own folder or its `data` was given."""
    for folder in (path / "data", path):
        metadata = folder / "metadata.json"
        if not metadata.is_file():
            continue
        with open(metadata, "rb") as file:
            if b'"observation_space"' in file.read(1 << 20):
                return folder
    return None


Episode = tuple[np.ndarray, np.ndarray | None, np.ndarray, bool]


def _read_hdf5(data: Path, space: dict) -> list[Episode]:
    episodes, one_hot = [], OneHot(data)
    with Hdf5(data / "main_data.hdf5") as file:
        names = [name for name in file.names() if re.fullmatch(r"episode_\d{1,9}", name)]
        for name in sorted(names, key=lambda name: int(name.removeprefix("episode_"))):

            def leaf(place: tuple[str | int, ...], name: str = name) -> np.ndarray:
                parts = [part if isinstance(part, str) else f"_index_{part}" for part in place]
                return file.array("/".join([name, "observations", *parts]))

            ended = file.array(f"{name}/terminations")
            actions = file.array(f"{name}/actions") if file.shape(f"{name}/actions") is not None else None
            rewards = file.array(f"{name}/rewards")
            episodes.append((_flat(space, leaf, one_hot), _no_width(actions), rewards, bool(ended.any())))
    return episodes


def _read_arrow(data: Path, space: dict, kind: str) -> list[Episode]:
    episodes, one_hot = [], OneHot(data)
    folders = [folder for folder in data.iterdir() if re.fullmatch(r"\d{1,9}", folder.name)]
    for folder in sorted(folders, key=lambda folder: int(folder.name)):
        for file in sorted(folder.glob(f"*.{kind}")):
            table = read_parquet(file) if kind == "parquet" else pyarrow().Table.from_batches(list(read_ipc(file)))

            def leaf(place: tuple[str | int, ...], table: Any = table) -> np.ndarray:
                column = table.column("observations").combine_chunks()
                for part in place:
                    column = column.field(str(part))
                array = array_of(column, "observations")
                if array is None:
                    raise UserError("the observations are not numbers")
                return array

            columns = {key: array_of(table.column(key), key) for key in ("actions", "rewards", "terminations")}
            actions, rewards, ended = (None if c is None else c[:-1] for c in columns.values())
            if rewards is None or ended is None:
                raise UserError(f"{folder.name}/{file.name} has no rewards or terminations")
            episodes.append((_flat(space, leaf, one_hot), _no_width(actions), rewards, bool(ended.any())))
    return episodes


def _no_width(actions: np.ndarray | None) -> np.ndarray | None:
    """None where actions are not an array or have no columns."""
    return None if actions is None or 0 in actions.shape[1:] else actions


class OneHot:
    """Discrete observations, flattened as Gymnasium does; all together no larger than the dataset may unpack to."""

    def __init__(self, data: Path) -> None:
        self._bytes, self._limit = 0, memory_limit(data)

    def __call__(self, choice: np.ndarray, n: int) -> np.ndarray:
        if not 1 <= n <= MAX_ONE_HOT or (len(choice) and not (choice.min() >= 0 and choice.max() < n)):
            raise UserError(f"a Discrete observation is not among its {n} choices, or they are more than {MAX_ONE_HOT}")
        self._bytes += 4 * n * len(choice)
        if self._bytes > self._limit:
            raise UserError(
                f"its Discrete observations take {self._bytes:,} bytes or more as one-hot rows, more than the {self._limit:,} "
                "that are read from a dataset of its size; give fewer episodes"
            )
        rows = np.zeros((len(choice), n), np.float32)
        rows[np.arange(len(choice)), choice] = 1.0
        return rows


def _flat(space: dict, leaf: Leaf, one_hot: OneHot, place: tuple[str | int, ...] = ()) -> np.ndarray:
    """[rows, columns] in the order of Gymnasium's own flattening."""
    parts = _parts(space)
    if parts is not None:
        return np.concatenate([_flat(part, leaf, one_hot, (*place, key)) for key, part in parts], axis=1)
    array = leaf(place)
    if space.get("type") == "Discrete":
        return one_hot(array.astype(np.int64).reshape(-1) - int(space.get("start", 0)), int(space["n"]))
    if space.get("type") not in ("Box", "MultiBinary"):
        raise UserError(f"the observation space is a {space.get('type')}, which cannot be flattened")
    return array.reshape(len(array), -1)


def _names(space: dict, most: int, prefix: str = "") -> list[str]:
    """A name for each column; `most` is how many there are, whatever the space says."""
    parts = _parts(space)
    if parts is None:
        size = int(space["n"]) if space.get("type") in ("Discrete", "MultiBinary") else int(np.prod(space.get("shape", [1])))
        if size > most:
            raise UserError(f"the observation space declares {size} columns, and the data have {most}")
        return [prefix] if size == 1 else [f"{prefix}[{i}]" for i in range(size)]
    names: list[str] = []
    for key, part in parts:
        names += _names(part, most - len(names), (f"{prefix}.{key}" if prefix else str(key))[:MAX_NAME])
    return names


def _parts(space: dict) -> list[tuple[str | int, dict]] | None:
    inside = space.get("subspaces")
    if space.get("type") == "Dict" and isinstance(inside, dict):
        return list(inside.items())
    return list(enumerate(inside)) if space.get("type") == "Tuple" and isinstance(inside, list) else None
