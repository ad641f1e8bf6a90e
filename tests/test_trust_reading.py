"""The process that reads strangers' files: forks, interruptions, and files that want all of the memory."""

import json
import multiprocessing
import os
import re
import signal
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iddm.demos import Demos, limits, load_demos, reader_process, save_demos
from iddm.errors import UserError
from tests import test_formats as sound

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")


# Forks and interruptions


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
def test_a_fork_reads_with_a_helper_of_its_own(tmp_path: Path) -> None:
    path = sound.write_d4rl(tmp_path / "d.hdf5")
    assert load_demos(path).num_episodes == 3
    mine = reader_process.HELPER._process
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=lambda: answers.put((load_demos(path).num_episodes, reader_process.HELPER._process.pid)))
    child.start()
    child.join(60)
    alive = child.is_alive()
    child.kill()
    assert not alive, "the fork hangs"
    episodes, its_helper = answers.get()
    assert episodes == 3
    assert its_helper != mine.pid
    assert load_demos(path).num_episodes == 3
    assert reader_process.HELPER._process is mine
    assert mine.poll() is None


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
def test_a_fork_that_ends_leaves_the_helper_to_its_parent(tmp_path: Path) -> None:
    path = sound.write_d4rl(tmp_path / "d.hdf5")
    helper = reader_process.Helper()
    helper.read(path)
    with helper._lock:  # as if another thread were reading
        pid = os.fork()
        if pid == 0:
            helper.close()
            free = helper._lock.acquire(blocking=False)
            os._exit(0 if free and helper._process is None else 1)
        assert os.waitpid(pid, 0)[1] == 0
    assert helper._process.poll() is None
    assert helper.read(path).num_episodes == 3
    helper.close()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
@pytest.mark.parametrize("after", [0.001, 0.02, 0.1, 0.5])
def test_an_interrupted_read_leaves_the_next_one_sound(after: float, tmp_path: Path) -> None:
    first, second = sound.write_d4rl(tmp_path / "a.hdf5"), sound.write_d4rl(tmp_path / "b.hdf5")

    class Interrupt(BaseException):
        pass

    def handler(number: int, frame: object) -> None:
        raise Interrupt

    helper = reader_process.Helper()
    helper.read(first)
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        while True:
            helper.read(first)
    except Interrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    for path in (second, first):
        assert helper.read(path).num_episodes == 3
    helper.close()


def test_an_answer_that_nobody_waited_for_is_not_the_next_ones(tmp_path: Path) -> None:
    sound.write_d4rl(tmp_path / "d.hdf5")
    helper = reader_process.Helper()
    process = helper._running()
    process.stdin.write(json.dumps({"path": "nowhere", "out": "nowhere", "from": str(tmp_path)}).encode() + b"\n")
    helper._asked = True  # interrupted before anything could be done
    assert helper.read(tmp_path / "d.hdf5").num_episodes == 3
    helper.close()


# Memory


def deflated_zeros(num_megabytes: int) -> bytes:
    packer = zlib.compressobj(9)
    first, later = (packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + later * (num_megabytes - 1)


def chunk_that_inflates(path: Path) -> None:
    """A chunk of 4 KB that its stream inflates to 4 GB."""
    with h5py.File(path, "w") as file:
        data = file.create_dataset("observations", (256, 4), "f4", chunks=(256, 4), compression="gzip")
        data.id.write_direct_chunk((0, 0), deflated_zeros(4096))


def page_that_inflates(path: Path) -> None:
    """A Parquet page whose header says that it unpacks to 2 GB: the footer is as it was."""
    pq.write_table(pa.table({"x": np.zeros(100_000)}), path, compression="gzip", use_dictionary=False)
    content = path.read_bytes()
    # A page header begins with its type and its uncompressed size, in Thrift's compact form: 0x15 type 0x15 zigzag varint.
    found = re.search(rb"\x15\x00\x15([\x80-\xff]*[\x00-\x7f])\x15([\x80-\xff]*[\x00-\x7f])", content)
    size = len(found[1])
    huge = bytearray(varint(2 * (2**31 - 1)))
    path.write_bytes(content[: found.start(1)] + bytes(huge) + content[found.start(1) + size :])


def varint(value: int) -> bytes:
    out = []
    while True:
        out.append((value & 0x7F) | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(out)


def minari(path: Path, space: dict, rows: np.ndarray, times: int = 1) -> None:
    (path / "data").mkdir(parents=True)
    about = {"observation_space": json.dumps(space), "data_format": "hdf5"}
    (path / "data" / "metadata.json").write_text(json.dumps(about))
    with h5py.File(path / "data" / "main_data.hdf5", "w") as file:
        for e in range(times):
            group = file.create_group(f"episode_{e}")
            group.create_dataset("observations", data=rows, compression="gzip")
            for name in ("rewards", "terminations", "actions"):
                group[name] = np.zeros(len(rows) - 1)


def one_hot_that_expands(path: Path) -> None:
    minari(path, {"type": "Discrete", "n": 10_000, "start": 0}, np.zeros(1_000_000, np.int8))


def many_one_hots(path: Path) -> None:
    minari(path, {"type": "Discrete", "n": 10_000, "start": 0}, np.zeros(5_000, np.int8), times=40)


def names_that_expand(path: Path) -> None:
    parts = {f"{i:04d}" + "x" * 1000: {"type": "Box", "shape": [1_000_000]} for i in range(500)}
    minari(path, {"type": "Dict", "subspaces": parts}, np.zeros((10, 2), np.float32))
    with h5py.File(path / "data" / "main_data.hdf5", "a") as file:
        del file["episode_0/observations"]
        for key in parts:
            file[f"episode_0/observations/{key}"] = np.zeros((3, 1), np.int8)


def imitation(path: Path) -> None:
    path.mkdir()
    (path / "dataset_info.json").write_text("{}")


def a_device(path: Path) -> None:
    imitation(path)
    (path / "state.json").symlink_to("/dev/zero")


def a_device_as_data(path: Path) -> None:
    imitation(path)
    (path / "state.json").write_text('{"_data_files": [{"filename": "a.arrow"}]}')
    (path / "a.arrow").symlink_to("/dev/zero")


def a_pipe(path: Path) -> None:
    imitation(path)
    os.mkfifo(path / "state.json")


def a_link_out(path: Path) -> None:
    imitation(path)
    (path / "state.json").symlink_to("/etc/passwd")


def a_folder_out(path: Path) -> None:
    sound.write_lerobot(path, "v2.1")
    (path / "data").rename(path.parent / "elsewhere")
    (path / "data").symlink_to(path.parent / "elsewhere")


def a_hole(path: Path) -> None:
    imitation(path)
    with open(path / "state.json", "w") as file:
        file.truncate(1 << 40)


def a_hole_in_a_table(path: Path) -> None:
    with open(path, "w") as file:
        file.write("episode,x\n" + "0,1\n" * 100)
        file.truncate(1 << 40)


def long_metadata(path: Path) -> None:
    imitation(path)
    (path / "state.json").write_text("[" + "[]," * 10_000_000 + "[]]")


GREEDY: dict[str, tuple[Callable[[Path], None], str]] = {
    "an HDF5 chunk that inflates": (chunk_that_inflates, "damaged|memory"),
    "a Parquet page that inflates": (page_that_inflates, "damaged|memory"),
    "one-hot rows that expand": (one_hot_that_expands, "one-hot rows, more than the"),
    "one-hot rows of many episodes": (many_one_hots, "one-hot rows, more than the"),
    "names that expand": (names_that_expand, "declares 1000000 columns, and the data have"),
    "a device": (a_device, "'state.json' is a link that leads out of the folder"),
    "a device as data": (a_device_as_data, "'a.arrow' is a link that leads out of the folder"),
    "a pipe": (a_pipe, "'state.json' is a device or a pipe"),
    "a link out": (a_link_out, "'state.json' is a link that leads out of the folder"),
    "a folder out": (a_folder_out, "'data' is a link that leads out of the folder"),
    "a hole": (a_hole, "'state.json' claims 1,099,511,627,776 bytes"),
    "a hole in a table": (a_hole_in_a_table, "claims 1,099,511,627,776 bytes"),
    "long metadata": (long_metadata, "at most 16,777,216 of metadata"),
}


def peak(pid: int) -> int:
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) << 10


@needs_proc
@pytest.mark.parametrize("name", GREEDY)
def test_a_file_that_wants_all_memory_is_refused_soon_and_within_bounds(name: str, tmp_path: Path) -> None:
    make, words = GREEDY[name]
    make(tmp_path / "d")
    helper = reader_process.Helper()
    helper.read(sound.write_d4rl(tmp_path / "small.hdf5"))
    pid, before, began = helper._process.pid, peak(helper._process.pid), time.monotonic()
    with pytest.raises(UserError, match=words) as caught:
        helper.read(tmp_path / "d") if (tmp_path / "d").is_dir() or "table" not in name else load_demos(tmp_path / "d")
    assert str(caught.value).startswith(f"{tmp_path / 'd'}: ")
    assert time.monotonic() - began < 30  # a busy machine; ten seconds of its own
    if helper._process is not None and helper._process.pid == pid:
        assert peak(pid) - before < limits.ROOM + (64 << 20)
    helper.close()


def test_wide_observations_have_no_names(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "d", "w") as file:
        file.create_dataset("data/demo_0/obs/x", data=np.zeros((3, 50_000), np.int8), compression="gzip")
    demos = load_demos(tmp_path / "d")
    assert demos.obs_size == 50_000
    assert demos.columns == ()


def test_links_within_a_folder_and_into_a_cache_of_downloads_are_followed(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshots" / "0123"
    sound.write_lerobot(snapshot, "v2.1")
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    for i, file in enumerate(sorted(p for p in snapshot.rglob("*") if p.is_file())):
        file.rename(blobs / str(i))
        file.symlink_to(blobs / str(i))
    assert load_demos(snapshot).num_episodes > 0
    (tmp_path / "link").symlink_to(snapshot)
    assert load_demos(tmp_path / "link").num_episodes > 0


def test_a_large_honest_file_is_read_within_the_limits(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((1_500_000, 16), np.float32)
    with h5py.File(tmp_path / "d.hdf5", "w") as file:
        file["observations"] = rows
        file["terminals"] = np.arange(len(rows)) % 1000 == 999
    assert load_demos(tmp_path / "d.hdf5").num_episodes == 1500


def tiny_episodes(path: Path, kind: str, number: int) -> None:
    rows, steps = np.zeros((2 * number, 2), np.float32), np.zeros(2 * number, np.int64)
    if kind == "npz":
        np.savez(path, observations=rows, episode_lengths=np.ones(number, np.int64), actions=steps[::2])
    else:
        with h5py.File(path, "w") as file:
            file["observations"], file["actions"], file["rewards"] = rows, steps, steps.astype(np.float32)
            file["terminals"] = np.arange(2 * number) % 2 == 1


@pytest.mark.parametrize("number", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["npz", "hdf5"])
def test_a_million_tiny_episodes_load_in_seconds(kind: str, number: int, tmp_path: Path) -> None:
    tiny_episodes(tmp_path / f"d.{kind}", kind, number)
    began = time.process_time()
    demos = load_demos(tmp_path / f"d.{kind}")
    assert demos.num_episodes == number
    if kind == "npz":
        save_demos(demos, tmp_path / "again.npz")
        assert demos.take_episodes(number - 1).states_only().num_transitions == number - 1
    assert time.process_time() - began < number / 50_000


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_many_episodes_are_checked_as_few_are(dtype: type, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 5, 40)
    rows = [(rng.standard_normal((n, 3)) * 100).astype(dtype) for n in lengths]
    for actions in (
        [rng.integers(0, 3, n - 1) for n in lengths],
        [rng.integers(0, 3, (n - 1, 1)) for n in lengths],
        [rng.standard_normal((n - 1, 2)) for n in lengths],
        [rng.standard_normal(n - 1) for n in lengths],
    ):
        few = Demos(tuple(rows), tuple(actions))
        monkeypatch.setattr("iddm.demos.check.MANY", 2)
        many = Demos(tuple(rows), tuple(actions))
        monkeypatch.undo()
        assert few.digest() == many.digest()
        assert not many.observations[3].flags.writeable


@pytest.mark.parametrize("wrong", ["nan", "width", "short", "text", "flat", "actions"])
def test_one_odd_episode_among_many_is_named(wrong: str, monkeypatch) -> None:
    rows = [np.zeros((3, 2)) for _ in range(20)]
    odd = {"nan": np.full((3, 2), np.nan), "width": np.zeros((3, 4)), "short": np.zeros((1, 2)), "flat": np.zeros(3)}
    rows[7] = {**odd, "text": np.array([["a", "b"]] * 3)}.get(wrong, rows[7])
    actions = [np.zeros((4 if wrong == "actions" and e == 7 else 2, 1)) for e in range(20)]
    monkeypatch.setattr("iddm.demos.check.MANY", 2)
    with pytest.raises(UserError, match="episode 7"):
        Demos(tuple(rows), tuple(actions))


def test_names_in_a_file_cannot_steer_a_terminal(tmp_path: Path) -> None:
    pq.write_table(pa.table({"episode\x1b[2J\nx": ["a"], "step": [1]}), tmp_path / "d.parquet")
    with pytest.raises(UserError) as caught:
        load_demos(tmp_path / "d.parquet")
    assert str(caught.value).isprintable()
    assert "episode�[2J�x" in str(caught.value) or "step" in str(caught.value)
