"""Other people's demonstrations: each format is written by its own library where there is one, and read by `load_demos`."""

import json
import subprocess
import sys
from pathlib import Path

import h5py
import minari
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gymnasium import spaces
from minari.data_collector.episode_buffer import EpisodeBuffer
from minari.dataset.minari_storage import MinariStorage

from iddm.cli import main
from iddm.demos import Demos, load_demos
from iddm.errors import UserError
from tests.test_cli import SMALL

LENGTHS = (5, 3, 8)
RNG = np.random.default_rng(0)
OBS = [RNG.normal(size=(t + 1, 4)).astype(np.float32) for t in LENGTHS]
ACTS = [RNG.normal(size=(t, 2)).astype(np.float32) for t in LENGTHS]
REWARDS = [RNG.normal(size=t).astype(np.float32) for t in LENGTHS]
RETURNS = [float(r.sum()) for r in REWARDS]


def assert_complete(demos: Demos) -> None:
    """All T+1 rows and T actions came through."""
    np.testing.assert_array_equal(demos.flat()[0], np.concatenate(OBS))
    assert demos.lengths.tolist() == list(LENGTHS)
    if demos.actions is not None:
        np.testing.assert_array_equal(demos.flat_actions(), np.concatenate(ACTS))
    assert "note_rows" not in demos.metadata


def assert_without_last(demos: Demos) -> None:
    """T rows per episode give T-1 transitions, and a note."""
    np.testing.assert_array_equal(demos.flat()[0], np.concatenate([o[:-1] for o in OBS]))
    np.testing.assert_array_equal(demos.flat_actions(), np.concatenate([a[:-1] for a in ACTS]))
    assert "last successor is missing" in demos.metadata["note_rows"]


def joined(parts, cut=0) -> np.ndarray:
    return np.concatenate([part[: len(part) - cut] for part in parts])


# Minari


def write_minari(folder: Path, kind: str, space=None, observations=OBS) -> Path:
    data = folder / "mine-v0" / "data"
    data.mkdir(parents=True)
    space = space or spaces.Box(-np.inf, np.inf, (4,), np.float32)
    storage = MinariStorage.new(data, space, spaces.Box(-1, 1, (2,), np.float32), data_format=kind)
    storage.update_episodes(
        EpisodeBuffer(
            id=i,
            observations=o,
            actions=a,
            rewards=r.tolist(),
            terminations=[False] * (len(r) - 1) + [i == 1],
            truncations=[False] * (len(r) - 1) + [i != 1],
        )
        for i, (o, a, r) in enumerate(zip(observations, ACTS, REWARDS, strict=True))
    )
    return data.parent


@pytest.mark.parametrize("kind", ["hdf5", "arrow", "parquet"])
def test_minari_is_read_whole_from_its_folder_or_the_data_in_it(kind: str, tmp_path: Path) -> None:
    folder = write_minari(tmp_path, kind)
    for path in (folder, folder / "data"):
        demos = load_demos(path)
        assert_complete(demos)
        assert demos.terminated.tolist() == [False, True, False]
        np.testing.assert_allclose(demos.episode_returns, RETURNS, rtol=1e-6)


@pytest.mark.parametrize("kind", ["hdf5", "arrow", "parquet"])
def test_a_minari_dictionary_is_laid_flat_as_gymnasium_does_with_named_columns(kind: str, tmp_path: Path) -> None:
    place = spaces.Tuple((spaces.Box(-9, 9, (2,), np.float32), spaces.Discrete(3, start=1)))
    space = spaces.Dict({"place": place, "height": spaces.Box(-9, 9, (1,), np.float32)})
    nested = [{"place": (o[:, :2], np.arange(len(o)) % 3 + 1), "height": o[:, 2:3]} for o in OBS]
    demos = load_demos(write_minari(tmp_path, kind, space, nested))
    row = {"place": (OBS[0][1, :2], 2), "height": OBS[0][1, 2:3]}
    np.testing.assert_array_equal(demos.observations[0][1], spaces.flatten(space, row))
    names = ["height", "place.0[0]", "place.0[1]", "place.1[0]", "place.1[1]", "place.1[2]"]
    assert sorted(demos.metadata["columns"]) == names
    flat = dict(zip(demos.metadata["columns"], demos.observations[0][1], strict=True))
    assert (flat["place.1[1]"], flat["height"]) == (1, OBS[0][1, 2])


# imitation


def test_an_imitation_folder_is_read_and_its_infos_are_not(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the extra package `datasets` writes imitation's folders")
    columns = {
        "obs": [o.tolist() for o in OBS],
        "acts": [a.tolist() for a in ACTS],
        "infos": [['{"py/reduce": [{"py/function": "os.system"}]}'] * t for t in LENGTHS],
        "terminal": [True, False, True],
        "rews": [r.tolist() for r in REWARDS],
    }
    floats = datasets.Sequence(datasets.Sequence(datasets.Value("float32")))
    features = {"obs": floats, "acts": floats, "infos": datasets.Sequence(datasets.Value("string"))}
    features |= {"terminal": datasets.Value("bool"), "rews": datasets.Sequence(datasets.Value("float32"))}
    datasets.Dataset.from_dict(columns, features=datasets.Features(features)).save_to_disk(tmp_path / "rollouts")
    demos = load_demos(tmp_path / "rollouts")
    assert_complete(demos)
    assert demos.actions is not None
    assert demos.terminated.tolist() == [True, False, True]
    np.testing.assert_allclose(demos.episode_returns, RETURNS, rtol=1e-6)


def write_imitation_folder(folder: Path) -> Path:
    """The same layout by pyarrow: a stream of one row per episode."""
    folder.mkdir()
    table = pa.table({"obs": [o.tolist() for o in OBS], "acts": [a.tolist() for a in ACTS], "infos": ["[]"] * 3})
    with pa.OSFile(str(folder / "data-00000-of-00001.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    (folder / "dataset_info.json").write_text("{}")
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}))
    return folder


def test_an_imitation_folder_needs_no_package_but_pyarrow(tmp_path: Path) -> None:
    assert_complete(load_demos(write_imitation_folder(tmp_path / "d")))


def test_an_imitation_folder_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    folder = write_imitation_folder(tmp_path / "d")
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "../../etc/passwd"}]}))
    with pytest.raises(UserError, match="outside of its folder"):
        load_demos(folder)


def imitation_arrays() -> dict:
    return {
        "obs": joined(OBS),
        "acts": joined(ACTS),
        "rews": joined(REWARDS),
        "infos": np.array([{}] * sum(LENGTHS), dtype=object),
        "terminal": np.array([True, False, True]),
        "indices": np.cumsum(LENGTHS)[:-1],
    }


def test_imitations_older_npz_is_split_at_its_indices_and_its_infos_are_not_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", allow_pickle=True, **imitation_arrays())
    demos = load_demos(tmp_path / "d.npz")
    assert_complete(demos)
    assert demos.terminated.tolist() == [True, False, True]
    np.testing.assert_allclose(demos.episode_returns, RETURNS, rtol=1e-6)


# HDF5


def write_d4rl(path: Path, *, timeouts=True, successors=False) -> Path:
    last = np.concatenate([np.arange(t) == t - 1 for t in LENGTHS])
    terminal = last & (np.repeat([0, 1, 2], LENGTHS) == 1)
    with h5py.File(path, "w") as file:
        file["observations"] = joined(OBS, cut=1)
        file["actions"] = joined(ACTS)
        file["rewards"] = joined(REWARDS)
        file["terminals"] = terminal if timeouts else last
        if timeouts:
            file["timeouts"] = last & ~terminal
        if successors:
            file["next_observations"] = np.concatenate([o[1:] for o in OBS])
        file["infos/qpos"] = np.zeros((sum(LENGTHS), 3))
    return path


def test_d4rl_ends_episodes_at_terminals_and_timeouts(tmp_path: Path) -> None:
    for timeouts in (True, False):
        demos = load_demos(write_d4rl(tmp_path / "d.hdf5", timeouts=timeouts))
        assert_without_last(demos)
        np.testing.assert_allclose(demos.episode_returns, RETURNS, rtol=1e-6)
        assert ("note_boundaries" in demos.metadata) != timeouts


def test_d4rl_with_next_observations_is_whole(tmp_path: Path) -> None:
    demos = load_demos(write_d4rl(tmp_path / "d.hdf5", successors=True))
    assert_complete(demos)
    assert demos.terminated.tolist() == [False, True, False]


def write_robomimic(path: Path, *, successors=True, obs=True, episodes=LENGTHS) -> Path:
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"] = json.dumps({"env_name": "Lift", "type": 1})
        data.attrs["total"] = sum(LENGTHS)
        for i in range(len(episodes)):
            demo = data.create_group(f"demo_{i}")
            demo.attrs["num_samples"] = LENGTHS[i % 3]
            o = OBS[i % 3]
            demo["actions"], demo["rewards"], demo["dones"] = ACTS[i % 3], REWARDS[i % 3], np.zeros(len(o) - 1, int)
            demo["states"] = o[:-1]
            for group, rows in (("obs", o[:-1]), ("next_obs", o[1:])) if obs else ():
                if group == "obs" or successors:
                    demo[f"{group}/b_velocity"] = rows[:, 2:]
                    demo[f"{group}/a_position"] = rows[:, :2].astype(np.float64)
                    demo[f"{group}/image"] = np.zeros((len(rows), 2, 2, 3), np.uint8)
        file["mask/train"] = np.array([b"demo_0"])
    return path


def test_robomimic_is_whole_with_next_obs_and_leaves_images_out(tmp_path: Path) -> None:
    demos = load_demos(write_robomimic(tmp_path / "d.hdf5"))
    assert_complete(demos)
    assert demos.metadata["columns"] == ["a_position[0]", "a_position[1]", "b_velocity[0]", "b_velocity[1]"]
    assert demos.metadata["env_id"] == "Lift"


@pytest.mark.parametrize("obs", [True, False])
def test_robomimic_without_next_obs_has_t_rows(obs: bool, tmp_path: Path) -> None:
    assert_without_last(load_demos(write_robomimic(tmp_path / "d.hdf5", successors=False, obs=obs)))


def test_robomimics_tenth_episode_comes_after_the_ninth(tmp_path: Path) -> None:
    demos = load_demos(write_robomimic(tmp_path / "d.hdf5", episodes=range(11)))
    assert demos.lengths.tolist() == [LENGTHS[i % 3] for i in range(11)]


def test_hdf5_of_something_else_and_a_part_of_minari_say_what_to_do(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "d.hdf5", "w") as file:
        file["images"] = np.zeros(3)
    with pytest.raises(UserError, match="holds images, which is neither"):
        load_demos(tmp_path / "d.hdf5")
    with pytest.raises(UserError, match="give the dataset's folder"):
        load_demos(write_minari(tmp_path, "hdf5") / "data" / "main_data.hdf5")


# LeRobot


def write_lerobot(folder: Path, version: str) -> Path:
    rows = [
        {
            "observation.state": o[:-1].tolist(),
            "action": a.tolist(),
            "timestamp": (np.arange(len(a)) / 50).tolist(),
            "frame_index": list(range(len(a))),
            "episode_index": [i] * len(a),
            "next.reward": r.tolist(),
            "next.done": [False] * len(a),
        }
        for i, (o, a, r) in enumerate(zip(OBS, ACTS, REWARDS, strict=True))
    ]
    (folder / "meta").mkdir(parents=True)
    (folder / "data" / "chunk-000").mkdir(parents=True)
    features = {"observation.state": {"dtype": "float32", "shape": [4], "names": {"motors": ["x", "y", "vx", "vy"]}}}
    (folder / "meta" / "info.json").write_text(json.dumps({"codebase_version": version, "fps": 50, "features": features}))
    fixed = pa.list_(pa.float32(), 4)
    types = {"observation.state": fixed if version == "v3.0" else pa.list_(pa.float32()), "action": pa.list_(pa.float32())}
    tables = [pa.table({k: pa.array(v, types.get(k)) for k, v in row.items()}) for row in rows]
    if version == "v3.0":
        pq.write_table(pa.concat_tables(tables), folder / "data" / "chunk-000" / "file-000.parquet")
    else:
        for i, table in enumerate(tables):
            pq.write_table(table, folder / "data" / "chunk-000" / f"episode_{i:06d}.parquet")
    return folder


@pytest.mark.parametrize("version", ["v3.0", "v2.1"])
def test_lerobot_gives_the_state_by_episode_with_the_motors_names(version: str, tmp_path: Path) -> None:
    demos = load_demos(write_lerobot(tmp_path / "d", version))
    assert_without_last(demos)
    assert demos.metadata["columns"] == ["x", "y", "vx", "vy"]
    assert demos.metadata["fps"] == 50
    np.testing.assert_allclose(demos.episode_returns, RETURNS, rtol=1e-6)


def test_a_lerobot_folder_without_its_data_says_so(tmp_path: Path) -> None:
    folder = write_lerobot(tmp_path / "d", "v3.0")
    (folder / "data" / "chunk-000" / "file-000.parquet").unlink()
    with pytest.raises(UserError, match="download the whole dataset"):
        load_demos(folder)


# npz, npy, tables


def test_stable_baselines_2_starts_episodes_at_its_flags(tmp_path: Path) -> None:
    starts = np.concatenate([np.arange(t) == 0 for t in LENGTHS])
    arrays = {"obs": joined(OBS, cut=1), "actions": joined(ACTS), "rewards": joined(REWARDS), "episode_starts": starts}
    np.savez(tmp_path / "d.npz", **arrays, episode_returns=np.array(RETURNS))
    demos = load_demos(tmp_path / "d.npz")
    assert_without_last(demos)
    np.testing.assert_allclose(demos.episode_returns, RETURNS, rtol=1e-6)


def test_il_datasets_pickled_arrays_are_refused(tmp_path: Path) -> None:
    obs = np.empty(1, dtype=object)
    np.savez(tmp_path / "d.npz", allow_pickle=True, obs=obs, episode_starts=np.array([True]))
    with pytest.raises(UserError, match=r"Python objects at 'obs' \(a pickle"):
        load_demos(tmp_path / "d.npz")


def test_cilos_pairs_become_whole_episodes_and_loose_pairs_stay_pairs(tmp_path: Path) -> None:
    s, s_next = joined(OBS, cut=1), np.concatenate([o[1:] for o in OBS])
    starts = np.concatenate([np.arange(t) == 0 for t in LENGTHS])
    np.savez(tmp_path / "d.npz", states=s, next_states=s_next, actions=joined(ACTS), starts=starts)
    assert_complete(load_demos(tmp_path / "d.npz"))
    order = np.random.default_rng(1).permutation(len(s))
    np.savez(tmp_path / "d.npz", states=s[order], next_states=s_next[order], actions=joined(ACTS)[order])
    loose = load_demos(tmp_path / "d.npz")
    assert loose.num_transitions == len(s)
    np.testing.assert_array_equal(loose.flat()[0][loose.flat()[1] + 1], s_next[order])


def test_npy_is_one_episode_or_several_of_one_length(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", OBS[0])
    np.save(tmp_path / "many.npy", np.asfortranarray(np.stack([OBS[0][:4], OBS[1]])))
    np.testing.assert_array_equal(load_demos(tmp_path / "one.npy").observations[0], OBS[0])
    np.testing.assert_array_equal(load_demos(tmp_path / "many.npy").observations[1], OBS[1])


def write_csv(path: Path, delimiter=",", actions=False) -> Path:
    lines = [delimiter.join(["episode", "step", "x", "y", "vx", "vy", *(["action_0", "action_1", "reward"] if actions else [])])]
    for name, o, a, r in zip("bca", OBS, ACTS, REWARDS, strict=True):
        rows = o[:-1] if actions else o
        for t, row in enumerate(rows):
            lines.append(delimiter.join([f"run {name}", str(t), *map(repr, row.tolist())]))
            if actions:
                lines[-1] += delimiter + delimiter.join(map(repr, [*a[t].tolist(), r[t].item()]))
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_takes_episodes_by_name_and_every_other_column_as_state(delimiter: str, tmp_path: Path) -> None:
    demos = load_demos(write_csv(tmp_path / "d.csv", delimiter))
    assert_complete(demos)
    assert demos.metadata["columns"] == ["x", "y", "vx", "vy"]


def test_csv_with_actions_has_t_rows(tmp_path: Path) -> None:
    demos = load_demos(write_csv(tmp_path / "d.csv", actions=True))
    assert_without_last(demos)
    np.testing.assert_allclose(demos.episode_returns, RETURNS, rtol=1e-6)


def test_csv_without_names_is_one_episode_of_states(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "d.csv", OBS[0], delimiter=",")
    demos = load_demos(tmp_path / "d.csv")
    np.testing.assert_allclose(demos.observations[0], OBS[0], rtol=1e-6)
    assert "one episode" in demos.metadata["note_boundaries"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,y\n1,2\n3,\n", "line 3, column 'y': the cell is empty"),
        ("x,y\n1,2\n\n3,oh\n", "line 4, column 'y': 'oh' is not a finite number"),
        ("x,kind,y\n1,run,2\n3,run,4;\n", "line 3, column 'y': '4;' is not a finite number"),
        ("x,y\n1,2\n3\n", "line 3 has 1 cell"),
        ("x,x\n1,2\n3,4\n", "the same name"),
        ("x,y\n", "no rows"),
        ("episode,reward\n0,1\n0,2\n", "no column of the table is a state"),
        ("x,y\n1,2\n3,nan\n", "line 3, column 'y': 'nan' is not a finite number"),
        ("dear reader\nhow are you\n", "no column of the table is a state"),
    ],
)
def test_a_bad_table_says_where(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(text)
    with pytest.raises(UserError, match=words):
        load_demos(tmp_path / "d.csv")


def test_parquet_takes_columns_of_numbers_or_of_lists(tmp_path: Path) -> None:
    which = np.repeat(["b", "c", "a"], [len(o) for o in OBS])
    plain = {name: joined(OBS)[:, i] for i, name in enumerate(["x", "y", "vx", "vy"])}
    pq.write_table(pa.table({"episode": which, **plain}), tmp_path / "plain.parquet")
    pq.write_table(pa.table({"episode": which, "state": joined(OBS).tolist()}), tmp_path / "lists.parquet")
    assert_complete(load_demos(tmp_path / "plain.parquet"))
    lists = load_demos(tmp_path / "lists.parquet")
    assert lists.metadata["columns"] == ["state[0]", "state[1]", "state[2]", "state[3]"]
    np.testing.assert_allclose(lists.flat()[0], joined(OBS), rtol=1e-6)


# Extras, conversion, training


@pytest.mark.parametrize(("module", "extra"), [("h5py", "hdf5"), ("pyarrow", "arrow")])
def test_a_missing_extra_is_named_with_the_command_that_installs_it(module: str, extra: str, tmp_path: Path) -> None:
    path = write_d4rl(tmp_path / "d.hdf5") if module == "h5py" else write_lerobot(tmp_path / "d", "v3.0")
    (tmp_path / "absent").mkdir()
    (tmp_path / "absent" / f"{module}.py").write_text("raise ImportError")
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'absent')!r})\nimport iddm\niddm.load_demos({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"pip install 'iddm-imitation[{extra}]'" in done.stderr.splitlines()[-1]


def test_convert_writes_our_npz_and_minari_and_back(tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch) -> None:
    source = write_robomimic(tmp_path / "d.hdf5")
    assert main(["convert", str(source), str(tmp_path / "d.npz")]) == 0
    assert "3 episodes, 16 transitions" in capsys.readouterr().out
    assert_complete(load_demos(tmp_path / "d.npz"))
    assert main(["convert", str(tmp_path / "d.npz"), str(tmp_path / "mine-v0")]) == 0
    assert_complete(load_demos(tmp_path / "mine-v0"))
    dataset = minari.MinariDataset(tmp_path / "mine-v0" / "data")
    np.testing.assert_array_equal(dataset[1].observations, OBS[1])
    assert main(["convert", str(tmp_path / "d.npz"), str(tmp_path / "mine-v0")]) == 2
    assert main(["convert", str(tmp_path / "d.npz"), str(tmp_path / "d.hdf5")]) == 2
    monkeypatch.chdir(tmp_path)
    assert main(["convert", "d.npz", "here"]) == 0
    assert load_demos("here").num_transitions == load_demos("d.npz").num_transitions


def test_states_without_actions_become_a_minari_dataset_too(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", OBS[0])
    assert main(["convert", str(tmp_path / "d.npy"), str(tmp_path / "mine")]) == 0
    demos = load_demos(tmp_path / "mine")
    assert demos.actions is None
    np.testing.assert_array_equal(demos.observations[0], OBS[0])


@pytest.mark.parametrize("write", [lambda p: write_minari(p, "hdf5"), lambda p: write_robomimic(p / "d.hdf5"),
                                   lambda p: write_d4rl(p / "d.hdf5"), lambda p: write_lerobot(p / "d", "v3.0")],
                         ids=["minari", "robomimic", "d4rl", "lerobot"])  # fmt: skip
def test_every_format_trains_from_the_command_line(write, tmp_path: Path) -> None:
    args = ["train", "CartPole-v1", "--demos", str(write(tmp_path)), "--out", str(tmp_path / "run"), *SMALL]
    assert main(args) == 0
