"""Demonstrations: what a `Demos` promises, its files, and what happens to bad ones."""

import contextlib
import io
import json
import os
import pickle
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from iddm.demos import Demos, inspect_demos, load_demos, print_inspection, require_compatible, save_demos
from iddm.envs.spaces import EnvSizes
from iddm.errors import UserError

SHARED = Path(__file__).parents[2] / "shared" / "demos"
SHARED_FILES = sorted(SHARED.glob("*/*.npz"))


def make(lengths=(5, 3, 8), obs_size=4, seed=0, **fields) -> Demos:
    rng = np.random.default_rng(seed)
    fields = {
        "actions": tuple(rng.normal(size=(t, 2)).astype(np.float32) for t in lengths),
        "episode_returns": np.arange(len(lengths)) * 1.5,
        "terminated": np.arange(len(lengths)) % 2 == 1,
        "metadata": {"env_id": "Hopper-v5", "é": [1, None, {"x": 2.5}]},
        **fields,
    }
    return Demos(tuple(rng.normal(size=(t + 1, obs_size)).astype(np.float32) for t in lengths), **fields)


def arrays_of(demos: Demos) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        save_demos(demos, Path(folder) / "d.npz")
        with np.load(Path(folder) / "d.npz", allow_pickle=False) as z:
            return dict(z)


def write(path: Path, **arrays) -> Path:
    np.savez(path, allow_pickle=True, **{k: v for k, v in arrays.items() if v is not None})
    return path


def printed(inspection, width=100, **options) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_inspection(inspection, console=console, **options)
    return console.file.getvalue()


# What a Demos promises


def test_counts_are_of_transitions_and_lengths_are_of_steps():
    demos = make(lengths=(5, 3, 8))
    assert (demos.num_episodes, demos.num_transitions, demos.obs_size) == (3, 16, 4)
    assert demos.lengths.tolist() == [5, 3, 8]


def test_states_only_removes_actions_and_nothing_else():
    demos = make()
    bare = demos.states_only()
    assert bare.actions is None
    assert bare.flat_actions() is None
    np.testing.assert_array_equal(bare.flat()[0], demos.flat()[0])
    assert bare.metadata == demos.metadata
    assert bare.digest() == make(actions=None).digest()


def test_a_demos_cannot_be_changed_through_the_array_it_was_made_from():
    rows = np.zeros((3, 2), dtype=np.float32)
    demos = Demos((rows,))
    rows[:] = 7
    assert not demos.observations[0].any()
    with pytest.raises(ValueError, match="read-only"):
        demos.observations[0][0] = 1


def test_flat_starts_are_the_rows_whose_successor_is_in_the_same_episode():
    demos = make(lengths=(2, 1))
    rows, starts = demos.flat()
    assert starts.tolist() == [0, 1, 3]
    pairs = [(o[t], o[t + 1]) for o in demos.observations for t in range(len(o) - 1)]
    np.testing.assert_array_equal(rows[starts], [s for s, _ in pairs])
    np.testing.assert_array_equal(rows[starts + 1], [s_next for _, s_next in pairs])
    assert demos.flat_actions().shape == (3, 2)


def test_integer_actions_stay_integers_one_a_step():
    columns = make(lengths=(2, 3), actions=(np.array([[0], [1]]), np.array([[1], [1], [0]])))
    assert columns.flat_actions().tolist() == [0, 1, 1, 1, 0]
    assert columns.flat_actions().dtype == np.int64


def test_returns_with_an_unknown_one_are_no_returns():
    assert make(episode_returns=np.array([1.0, np.nan, 2.0])).episode_returns is None


def test_digest_sees_values_boundaries_and_actions_but_not_metadata():
    demos = make()
    joined = Demos((np.concatenate(demos.observations),))
    flipped = make(seed=1)
    digests = {d.digest() for d in (demos, joined, flipped, demos.states_only(), demos.take_episodes(2))}
    assert len(digests) == 5
    assert demos.digest() == make(metadata={"other": 1}).digest()


def test_digest_is_the_same_in_every_version():
    demos = Demos((np.arange(6).reshape(3, 2),), actions=(np.array([1, 0]),))
    assert demos.digest() == "791935f8ec768df515ac110162761af50d8bb1d9c524a3969668540d97ec8d49"


# Sub-sampling


def test_episodes_are_drawn_with_a_seed_and_keep_what_belongs_to_them():
    demos = make(lengths=(5, 3, 8, 4, 6, 7))
    drawn = [demos.take_episodes(2, seed) for seed in range(8)]
    assert len({few.digest() for few in drawn}) > 2
    assert demos.take_episodes(2, 3).digest() == drawn[3].digest()
    whole = {rows.tobytes(): actions.tobytes() for rows, actions in zip(demos.observations, demos.actions, strict=True)}
    for few in drawn:
        assert all(whole[rows.tobytes()] == a.tobytes() for rows, a in zip(few.observations, few.actions, strict=True))


def test_take_episodes_takes_the_first():
    demos = make(lengths=(5, 3, 8)).take_episodes(2)
    assert demos.lengths.tolist() == [5, 3]
    assert [len(a) for a in demos.actions] == [5, 3]
    assert demos.episode_returns.tolist() == [0, 1.5]
    assert demos.terminated.tolist() == [False, True]


def test_take_transitions_takes_true_pairs_without_replacement_and_never_across_episodes():
    demos = make(lengths=(5, 3, 8))
    taken = demos.take_transitions(16)
    assert taken.lengths.tolist() == [1] * 16
    rows, starts = demos.flat()
    actions = demos.flat_actions()
    true = {rows[i].tobytes() + rows[i + 1].tobytes() + a.tobytes() for i, a in zip(starts, actions, strict=True)}
    got = {o.tobytes() + a.tobytes() for o, a in zip(taken.observations, taken.actions, strict=True)}
    assert got == true
    assert taken.terminated.sum() == 1  # the last pair of the one terminated episode


def test_fewer_transitions_are_the_first_of_more_with_the_same_seed():
    demos = make(lengths=(40, 40))
    few, more = demos.take_transitions(8, seed=3), demos.take_transitions(32, seed=3)
    assert few.digest() == more.take_episodes(8).digest()
    assert few.digest() != demos.take_transitions(8, seed=4).digest()
    assert few.metadata["taken_transitions"] == {"number": 8, "seed": 3}


@pytest.mark.parametrize("n", [0, -1, 4])
def test_taking_more_episodes_than_there_are_or_none_says_how_many_there_are(n):
    with pytest.raises(UserError, match="from 1 to 3"):
        make().take_episodes(n)


@pytest.mark.parametrize("n", [0, 17])
def test_taking_more_transitions_than_there_are_or_none_says_how_many_there_are(n):
    with pytest.raises(UserError, match="from 1 to 16"):
        make().take_transitions(n)


# Files


@pytest.mark.parametrize(
    "demos",
    [
        make(),
        make().states_only(),
        make(episode_returns=None, terminated=None, metadata={}),
        make(lengths=(2, 3), actions=(np.array([0, 1]), np.array([1, 1, 0]))),
        make(lengths=(20, 20)).take_transitions(8),
    ],
    ids=["whole", "states only", "bare", "discrete", "pairs"],
)
def test_what_is_saved_is_what_is_loaded(demos, tmp_path):
    save_demos(demos, tmp_path / "demos.npz")
    loaded = load_demos(tmp_path / "demos.npz")
    assert loaded.digest() == demos.digest()
    assert loaded.metadata == demos.metadata
    for name in ("episode_returns", "terminated"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(demos, name))


def test_the_same_demonstrations_give_the_same_bytes_and_no_time_of_day(tmp_path):
    save_demos(make(), tmp_path / "a.npz")
    save_demos(load_demos(tmp_path / "a.npz"), tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.npz") as file:
        assert {member.date_time for member in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    save_demos(make(), tmp_path / "demos.npz")
    before = (tmp_path / "demos.npz").read_bytes()

    def full_disk(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(UserError, match="No space left"):
        save_demos(make(seed=1), tmp_path / "demos.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["demos.npz"]
    assert (tmp_path / "demos.npz").read_bytes() == before


@pytest.mark.parametrize("name", ["demos.pkl", "demos", "folder.npz", "file/demos.npz"])
def test_saving_to_a_bad_place_is_a_user_error(name, tmp_path):
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=name):
        save_demos(make(), tmp_path / name)


def test_a_file_with_t_rows_gives_one_transition_fewer_and_says_so(tmp_path):
    rows, actions = np.arange(14.0).reshape(7, 2), np.arange(7.0)[:, None]
    arrays = {"observations": rows, "actions": actions, "terminated": np.array([True, False])}
    path = write(tmp_path / "d.npz", **arrays, episode_offsets=np.array([0, 4, 7]), episode_lengths=np.array([4, 3]))
    demos = load_demos(path)
    assert demos.lengths.tolist() == [3, 2]
    assert demos.flat_actions().ravel().tolist() == [0, 1, 2, 4, 5]
    assert demos.terminated is None
    assert "last successor is missing" in demos.metadata["note_rows"]
    assert "last successor is missing" in printed(inspect_demos(demos), width=300)


@pytest.mark.parametrize(
    ("arrays", "lengths"),
    [
        ({"observations": np.ones((7, 2))}, [6]),
        ({"observations": np.ones((3, 5, 2))}, [4, 4, 4]),
        ({"observations": np.ones((3, 5, 2)), "actions": np.ones((3, 4, 1))}, [4, 4, 4]),
        ({"observations": np.ones((3, 5, 2)), "actions": np.ones((3, 4), dtype=int)}, [4, 4, 4]),
        ({"observations": np.ones((3, 5, 2)), "actions": np.ones((3, 5, 1))}, [4, 4, 4]),
        ({"observations": np.ones((7, 2)), "actions": np.ones((6, 1))}, [6]),
        ({"observations": np.ones((7, 2)), "episode_lengths": np.array([2, 3])}, [2, 3]),
        ({"observations": np.ones((7, 2)), "episode_lengths": np.array([4, 3])}, [3, 2]),
        ({"observations": np.ones((7, 2)), "episode_offsets": np.array([0, 3, 7])}, [2, 3]),
        ({"observations": np.ones((7, 2), dtype=np.uint8)}, [6]),
        ({"observations": np.ones((7, 2)), "infos": np.array([{}], dtype=object)}, [6]),
    ],
    ids=lambda value: " ".join(f"{k}{v.shape}" for k, v in value.items()) if isinstance(value, dict) else "",
)
def test_layouts_of_other_people_are_read(arrays, lengths, tmp_path):
    assert load_demos(write(tmp_path / "d.npz", **arrays)).lengths.tolist() == lengths


@pytest.mark.skipif(not SHARED_FILES, reason="the folder of demonstrations recorded by others is not beside the repository")
@pytest.mark.parametrize("path", SHARED_FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_demonstration_recorded_by_others_loads(path):
    demos = load_demos(path)
    facts = demos.metadata
    assert (demos.num_episodes, demos.obs_size) == (facts["n_episodes"], facts["obs_dim"])
    missing = demos.num_episodes if "note_rows" in facts else 0
    assert demos.num_transitions == facts["n_transitions"] - missing
    assert len(demos.flat_actions()) == len(demos.flat()[1]) == demos.num_transitions
    assert demos.episode_returns.mean() == pytest.approx(facts["mean_return"], abs=0.01)


# Bad input


def with_value(value, row, column):
    rows = np.zeros((600, 9))
    rows[row, column] = value
    return rows


SOUND = arrays_of(make())
BAD_ARRAYS = {
    "NaN": (
        {"observations": with_value(np.nan, 512, 7), "episode_lengths": np.array([99, 499])},
        "episode 1 has NaN in column 7 (row 412)",
    ),
    "infinity": ({"observations": with_value(-np.inf, 5, 2)}, "infinity (in float32) in column 2 (row 5)"),
    "too large for float32": ({"observations": with_value(1e300, 0, 0)}, "infinity (in float32) in column 0 (row 0)"),
    "no observations": ({"states": np.ones((4, 2))}, "no array named 'observations'"),
    "no rows": ({"observations": np.ones((0, 3))}, "shape (0, 3)"),
    "no columns": ({"observations": np.ones((3, 0))}, "shape (3, 0)"),
    "one dimension": ({"observations": np.ones(5)}, "shape (5,)"),
    "four dimensions": ({"observations": np.ones((2, 3, 4, 5))}, "shape (2, 3, 4, 5)"),
    "one row": ({"observations": np.ones((1, 3))}, "episode 0 has one row"),
    "a one-row episode": (
        {"observations": np.ones((6, 3)), "episode_offsets": np.array([0, 5, 6])},
        "episode 1 has one row",
    ),
    "an empty episode": (
        {"observations": np.ones((6, 3)), "episode_offsets": np.array([0, 3, 3, 6])},
        "episode 1 is empty",
    ),
    "objects": ({"observations": np.array([[1, None]], dtype=object)}, "Python objects at 'observations'"),
    "pickled actions": ({**SOUND, "actions": np.array([{}], dtype=object)}, "Python objects at 'actions'"),
    "text": ({"observations": np.array([["a", "b"]] * 3)}, "not real numbers"),
    "complex": ({"observations": np.ones((3, 2)) * 1j}, "not real numbers"),
    "negative offsets": ({**SOUND, "episode_offsets": np.array([0, -6, 10, 19])}, "'episode_offsets' holds -6"),
    "falling offsets": ({**SOUND, "episode_offsets": np.array([0, 10, 6, 19])}, "must rise from 0 to 19"),
    "offsets beyond the rows": (
        {**SOUND, "episode_offsets": np.array([0, 6, 10, 2**63], dtype=np.uint64)},
        "holds 9223372036854775808, but 'observations' has 19 rows",
    ),
    "rows in no episode": ({**SOUND, "episode_offsets": np.array([0, 6, 10, 18])}, "must rise from 0 to 19"),
    "offsets of fewer episodes": ({**SOUND, "episode_offsets": np.array([0, 6, 19])}, "has 3 entries"),
    "offsets of nothing": ({**SOUND, "episode_offsets": np.array([], dtype=int)}, "must be a list of integers"),
    "offsets in fractions": ({**SOUND, "episode_offsets": np.array([0, 6.5, 10, 19])}, "must be a list of integers"),
    "other lengths": ({**SOUND, "episode_lengths": np.array([5, 4, 7])}, "episode 1 has 4 rows for 4 steps"),
    "lengths of fewer rows": (
        {"observations": np.ones((9, 2)), "episode_lengths": np.array([2, 2])},
        "adds up to 4 steps in 2 episodes",
    ),
    "lengths beside three dimensions": (
        {"observations": np.ones((2, 3, 4)), "episode_lengths": np.array([2, 2])},
        "cannot be combined with",
    ),
    "fewer actions": ({**SOUND, "actions": np.ones((15, 2))}, "'actions' has shape (15, 2)"),
    "actions of no dimension": ({**SOUND, "actions": np.array(1.0)}, "'actions' has shape ()"),
    "actions of three dimensions": ({**SOUND, "actions": np.ones((16, 2, 2))}, "actions of episode 0 have shape"),
    "actions of other episodes": (
        {"observations": np.ones((2, 3, 4)), "actions": np.ones((3, 2, 1))},
        "'actions' has shape (3, 2, 1)",
    ),
    "NaN in actions": (
        {**SOUND, "actions": np.where(np.arange(32).reshape(16, 2) == 13, np.nan, 0)},
        "the actions of episode 1 have NaN in column 1 (row 1)",
    ),
    "fewer returns": ({**SOUND, "episode_returns": np.ones(2)}, "episode_returns has shape (2,)"),
    "terminated for each step": ({**SOUND, "terminated": np.ones(16, dtype=bool)}, "terminated has shape (16,)"),
    "metadata that is no JSON": ({**SOUND, "metadata": np.array("{")}, "'metadata' must be"),
    "metadata without end": ({**SOUND, "metadata": np.array("[" * 100_000)}, "'metadata' must be"),
    "metadata that is a list": ({**SOUND, "metadata": np.array("[1]")}, "'metadata' must be"),
    "metadata that is a number": ({**SOUND, "metadata": np.array(3)}, "'metadata' must be"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_bad_arrays_are_one_sentence_that_names_the_file_and_the_place(case, tmp_path):
    arrays, sentence = BAD_ARRAYS[case]
    path = write(tmp_path / "demos.npz", **arrays)
    with pytest.raises(UserError) as caught:
        load_demos(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert sentence in message
    assert "\n" not in message


def zipped(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        z.writestr(name, content)
    return file.getvalue()


def sound_bytes() -> bytes:
    file = io.BytesIO()
    np.savez(file, **SOUND)
    return file.getvalue()


BAD_BYTES = {
    "empty": (b"", "is empty"),
    "text": (b"s0,s1\n1,2\n", "no episode has two rows"),
    "bytes of no kind": (b"\x00\x01\x02\x03", "accepted: npz"),
    "pickle": (pickle.dumps([np.ones((3, 2))]), "pickle, which could run code"),
    "npy": (b"\x93NUMPY\x01\x00", "damaged or cut short"),
    "cut short": (sound_bytes()[:-200], "damaged or cut short"),
    "cut in the middle": (sound_bytes()[:700], "damaged or cut short"),
    "zip of something else": (zipped("word/document.xml", b"<w/>"), "no array named 'observations'"),
    "zip of pickle": (zipped("observations.npy", pickle.dumps([1])), "damaged or cut short"),
    "zip of text": (zipped("observations", b"1 2 3"), "damaged or cut short at 'observations'"),
    "a header without end": (
        zipped("observations.npy", b"\x93NUMPY\x02\x00" + b"\x60\xea\0\0" + b" " * 60_000),
        "cut short",
    ),
    "no bytes in the array": (zipped("observations.npy", b""), "damaged or cut short"),
}


@pytest.mark.parametrize("case", BAD_BYTES)
def test_bad_files_are_one_sentence_that_names_the_file(case, tmp_path):
    content, sentence = BAD_BYTES[case]
    path = tmp_path / "demos.npz"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        load_demos(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_a_directory_and_a_pipe_are_user_errors(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("missing.npz", "x" * 5000, "null\0byte"):
        with pytest.raises(UserError, match="no such file"):
            load_demos(tmp_path / name)
    with pytest.raises(UserError, match="is a directory"):
        load_demos(str(tmp_path))
    with pytest.raises(UserError, match="not a regular file"):
        load_demos(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"observations": ()}, "no episodes"),
        ({"observations": (np.ones((3, 2)), np.ones((3, 4)))}, "episode 1 has 4 columns, but episode 0 has 2"),
        ({"observations": (np.ones(3),)}, "episode 0 has 1 dimension"),
        ({"observations": (np.ones((3, 2)),), "actions": (np.ones((3, 1)),)}, "3 actions for 3 rows"),
        ({"observations": (np.ones((3, 2)),), "actions": ()}, "actions for 0 episodes"),
        ({"observations": (np.ones((3, 2)),), "actions": (np.ones((2, 1)),) * 2}, "actions for 2 episodes"),
        (
            {"observations": (np.ones((3, 2)),) * 2, "actions": (np.ones((2, 1)), np.ones((2, 2)))},
            "the actions of episode 1 have shape (2, 2)",
        ),
        ({"observations": (np.ones((3, 2)),), "metadata": {"a": np.ones(2)}}, "metadata cannot be written"),
    ],
)
def test_a_demos_made_in_a_program_is_checked_too(fields, sentence):
    with pytest.raises(UserError) as caught:
        Demos(**fields)
    assert sentence in str(caught.value)


@settings(max_examples=150, deadline=None, database=None, derandomize=True)
@given(data=st.data(), content=st.just(sound_bytes()))
def test_whatever_bytes_are_changed_only_a_user_error_comes_out(data, content):
    changed = bytearray(content)
    places = st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255))
    for place, value in data.draw(st.lists(places, min_size=1, max_size=8)):
        changed[place] = value
    changed = changed[: data.draw(st.integers(1, len(content)) | st.just(len(content)))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demos.npz"
        path.write_bytes(changed)
        with contextlib.suppress(UserError):
            assert load_demos(path).num_transitions > 0


@settings(max_examples=150, deadline=None, database=None, derandomize=True)
@given(data=st.data())
def test_whatever_a_header_says_only_a_user_error_comes_out(data):
    key = data.draw(st.sampled_from([k for k in SOUND if k != "metadata"]))
    kind = data.draw(st.sampled_from(["<f4", "<f8", "<i8", "<u8", "|b1", "<U3", "<M8[s]", "|O", "|V4", "<c8", "??"]))
    shape = tuple(data.draw(st.lists(st.integers(-1, 20) | st.just(10**12), max_size=3)))
    header = f"{{'descr': {kind!r}, 'fortran_order': {data.draw(st.booleans())}, 'shape': {shape}, }}"
    header = header.ljust(117) + "\n"
    body = data.draw(st.binary(max_size=64)) + bytes(4000)
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + body
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demos.npz"
        np.savez(path, **{k: v for k, v in SOUND.items() if k != key})
        with zipfile.ZipFile(path, "a") as file:
            file.writestr(f"{key}.npy", content)
        with contextlib.suppress(UserError):
            assert load_demos(path).num_transitions > 0


# Inspection


def test_inspection_gives_ranges_and_finds_constant_columns():
    rows = np.array([[0.0, 5, 1], [2, 5, 1], [4, 5, 1]])
    inspection = inspect_demos(Demos((rows,)))
    first = inspection.columns[0]
    assert (first.minimum, first.mean, first.maximum, first.constant) == (0, 2, 4, False)
    assert first.std == pytest.approx(np.std([0, 2, 4]))
    assert [column.constant for column in inspection.columns] == [False, True, True]
    assert [f.level for f in inspection.findings] == ["warning"]
    assert "columns 1–2" in inspection.findings[0].sentence


def test_inspection_finds_copies_short_episodes_and_states_that_stand_still():
    moving = np.random.default_rng(0).normal(size=(20, 2))
    still = np.concatenate([moving[:3], moving[2:3]])
    sentences = " ".join(f.sentence for f in inspect_demos(Demos((moving, moving, still))).findings)
    assert "1 of 3 episodes are copies of others" in sentences
    assert "1 of 3 episodes are shorter than half of the longest" in sentences
    assert "no column changes" in sentences


def test_ant_of_27_columns_is_told_how_to_make_the_environment():
    demos, env = make(obs_size=27, metadata={}), EnvSizes("Ant-v5", obs_size=105)
    inspection = inspect_demos(demos, env)
    assert not inspection.usable
    assert "include_cfrc_ext_in_observation=False" in inspection.findings[-1].sentence
    with pytest.raises(UserError, match="27 columns, but an observation of Ant-v5 has 105"):
        require_compatible(demos, env)


@pytest.mark.parametrize(
    ("env", "level", "sentence"),
    [
        (EnvSizes("Hopper-v5", 4, 1000, 2), None, ""),
        (EnvSizes("Hopper-v4", 4, 1000, 2), "note", "recorded on Hopper-v5"),
        (EnvSizes("my/Walker2d-v5", 4, 1000, 2), "warning", "not on my/Walker2d-v5"),
        (EnvSizes("Hopper-v5", 4, 7, 2), "warning", "longest episode has 8 steps"),
        (EnvSizes("Hopper-v5", 4, None, 3), "warning", "actions are 2 wide"),
        (EnvSizes("Hopper-v5", 11), "error", "4 columns, but an observation of Hopper-v5 has 11"),
    ],
)
def test_the_fit_to_an_environment_is_found(env, level, sentence):
    inspection = inspect_demos(make(lengths=(8, 8), episode_returns=None), env)
    assert [f.level for f in inspection.findings] == ([level] if level else [])
    assert sentence in " ".join(f.sentence for f in inspection.findings)
    assert inspection.usable == (level != "error")
    assert ("Does not fit" in printed(inspection)) == (level == "error")


def test_wide_observations_do_not_flood_the_terminal():
    rows = np.random.default_rng(0).normal(size=(50, 105))
    rows[:, 90:] = 0
    text = printed(inspect_demos(Demos((rows,)), EnvSizes("Ant-v5", 105)), width=80)
    assert len(text.splitlines()) < 55
    assert "31–104" in text
    assert "15 constant" in text
    assert "Fits Ant-v5" in text
    assert max(map(len, text.splitlines())) <= 80


def test_metadata_of_a_stranger_cannot_steer_the_terminal():
    text = printed(inspect_demos(make(metadata={"env_id": "\x1b[2J[red]x\ud800", "note_rows": "\x1b[31m"})), title="[blue]y")
    assert "\x1b" not in text
    assert "[red]x" in text
    assert "[blue]y" in text


def test_reading_demonstrations_imports_neither_jax_nor_gymnasium():
    code = "import sys, json, iddm.demos; print(json.dumps([m for m in ('jax', 'gymnasium', 'rich') if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
