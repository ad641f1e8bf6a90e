"""Files that nobody vouches for: whatever is in them, `UserError` is all that comes out, soon and within bounds.

Each reader gets files that its own library wrote, with bytes changed, cut, or moved, and some made to harm.
"""

import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iddm.demos import load_demos, reader_process
from iddm.demos.load import load_here
from iddm.errors import UserError
from tests import test_formats as sound

SOUND = {
    "npz of imitation": lambda p: np.savez(p / "d.npz", allow_pickle=True, **sound.imitation_arrays()),
    "npy": lambda p: np.save(p / "d.npy", sound.OBS[0]),
    "csv": lambda p: sound.write_csv(p / "d.csv", actions=True),
    "parquet": lambda p: pq.write_table(pa.table({"episode": [0, 0, 1, 1], "x": [1.0, 2.0, 3.0, 4.0]}), p / "d.parquet"),
    "d4rl": lambda p: sound.write_d4rl(p / "d.hdf5"),
    "robomimic": lambda p: sound.write_robomimic(p / "d.hdf5"),
    "minari hdf5": lambda p: sound.write_minari(p, "hdf5"),
    "minari arrow": lambda p: sound.write_minari(p, "arrow"),
    "minari parquet": lambda p: sound.write_minari(p, "parquet"),
    "lerobot v3": lambda p: sound.write_lerobot(p / "d", "v3.0"),
    "lerobot v2.1": lambda p: sound.write_lerobot(p / "d", "v2.1"),
    "imitation folder": lambda p: sound.write_imitation_folder(p / "d"),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    paths = {}
    for name, write in SOUND.items():
        folder = tmp_path_factory.mktemp("sound")
        write(folder)
        (paths[name],) = folder.iterdir()
        assert load_demos(paths[name]).num_transitions > 0
    return paths


def only_user_error(path: Path) -> None:
    began = time.monotonic()
    error = None
    try:
        assert load_demos(path).num_transitions > 0
    except UserError as caught:
        error = str(caught)
    assert error is None or (error.startswith(f"{path}: ") and "\n" not in error)
    assert time.monotonic() - began < reader_process.PATIENCE + 10


@settings(max_examples=60, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@pytest.mark.parametrize("name", SOUND)
def test_whatever_is_changed_in_a_file_only_a_user_error_comes_out(name: str, written: dict[str, Path], data) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "d"
        (shutil.copytree if written[name].is_dir() else shutil.copy)(written[name], path)
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        victim = data.draw(st.sampled_from(files))
        content = bytearray(victim.read_bytes())
        how = data.draw(st.sampled_from(["change", "cut", "empty", "repeat", "swap", "remove"]))
        if how == "change":
            for _ in range(data.draw(st.integers(1, 8))):
                content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        elif how == "cut":
            content = content[: data.draw(st.integers(0, len(content) - 1))]
        elif how == "empty":
            content = bytearray()
        elif how == "repeat":
            place = data.draw(st.integers(0, len(content) - 1))
            content[place:place] = content[place : place + data.draw(st.integers(1, 64))]
        elif how == "swap":
            content = bytearray(data.draw(st.sampled_from(files)).read_bytes())
        if how == "remove":
            victim.unlink()
        else:
            victim.write_bytes(content)
        only_user_error(path)


# Files made to harm


class Harm:
    def __reduce__(self):
        return (os.system, ("touch harmed",))


def zip_of(path: Path, name: str, content: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, content)


def saved(save, name: str | None = None) -> bytes:
    file, array = io.BytesIO(), np.array([Harm()])
    save(file, **{name: array}) if name else save(file, array)
    return file.getvalue()


def npy(shape: tuple[int, ...], kind: str = "<f4") -> bytes:
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


def hdf5(path: Path, fill) -> None:
    with h5py.File(path, "w") as file:
        fill(file)


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((4, 2), "f4")
    layout[:] = h5py.VirtualSource("/etc/hostname", "data", (4, 2))
    file.create_virtual_dataset("observations", layout)


def outside(file: h5py.File) -> None:
    file.create_dataset("observations", (4, 2), "f4", external=[("/etc/passwd", 0, 32)])


def link(file: h5py.File) -> None:
    file["observations"] = h5py.ExternalLink("/etc/hostname", "/observations")


def folder_of(path: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)


def compressed_stream(path: Path) -> None:
    folder_of(path, {"dataset_info.json": b"{}", "state.json": b'{"_data_files": [{"filename": "a.arrow"}]}'})
    table = pa.table({"obs": [np.zeros((10_000, 4)).tolist()]})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(path / "a.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema, options=options) as writer:
        writer.write_table(table)


DEEP = json.dumps({"observation_space": '{"type": "Dict", "subspaces": {"a": ' * 20_000}).encode()
HOSTILE = {
    "a pickle": (lambda p: p.write_bytes(pickle.dumps(Harm())), "pickle"),
    "a pickle in npy": (lambda p: p.write_bytes(saved(np.save)), "pickle"),
    "a pickle in npz": (lambda p: p.write_bytes(saved(np.savez, "observations")), "pickle"),
    "a zip bomb": (lambda p: zip_of(p, "observations.npy", npy((500_000, 4)) + bytes(8_000_000)), "more than the"),
    "a shape without rows": (lambda p: zip_of(p, "observations.npy", npy((10**12, 4)) + bytes(64)), "declares 16000000000000"),
    "a shape beyond a machine": (lambda p: zip_of(p, "observations.npy", npy((10**30, 4)) + bytes(64)), "declares"),
    "npy of a shape without rows": (lambda p: p.write_bytes(npy((10**12, 4)) + bytes(64)), "declares 16000000000000"),
    "a way out of an archive": (lambda p: zip_of(p, "../../observations.npy", npy((2, 2)) + bytes(16)), "no array named"),
    "hdf5 of a shape without rows": (
        lambda p: hdf5(p, lambda f: f.create_dataset("observations", (10**12, 4), "f4", chunks=(10, 4))),
        "more than the",
    ),
    "hdf5 of one endless chunk": (
        lambda p: hdf5(p, lambda f: f.create_dataset("observations", (4, 4), "f4", maxshape=(None, 4), chunks=(10**7, 4))),
        "more than the",
    ),
    "hdf5 that points to another file": (lambda p: hdf5(p, link), "link to elsewhere"),
    "hdf5 with numbers of another file": (lambda p: hdf5(p, outside), "keeps its numbers in another file"),
    "hdf5 made of another file": (lambda p: hdf5(p, virtual), "keeps its numbers in another file"),
    "parquet bomb": (lambda p: pq.write_table(pa.table({"x": np.zeros(2_000_000)}), p), "more than the"),
    "compressed arrow": (compressed_stream, "write it uncompressed"),
    "csv with a cell without end": (
        lambda p: p.write_text("episode,x\n" + "a" * 200_000 + ",1\n" + "b,1\n" * 1000),
        "field larger",
    ),
    "nesting without end": (lambda p: folder_of(p, {"metadata.json": DEEP}), "damaged"),
    "a folder that names another": (
        lambda p: folder_of(p, {"dataset_info.json": b"{}", "state.json": b'{"_data_files": [{"filename": "/etc/passwd"}]}'}),
        "outside of its folder",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_made_to_harm_is_refused_in_one_sentence(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("iddm.demos.formats.common.SMALLEST_LIMIT", 1 << 20)  # small bombs are bombs enough
    make, words = HOSTILE[name]
    path = tmp_path / "d"
    make(path)
    with pytest.raises(UserError, match=words) as caught:
        load_here(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert not (tmp_path / "harmed").exists()


def test_a_reader_that_breaks_down_or_stalls_is_one_sentence_and_the_next_file_is_read(tmp_path: Path, monkeypatch) -> None:
    path = sound.write_d4rl(tmp_path / "d.hdf5")
    helper = reader_process.Helper()
    assert helper.read(path).num_episodes == 3
    helper._process.kill()
    helper._process.wait()
    assert helper.read(path).num_episodes == 3
    monkeypatch.setattr(reader_process, "_START", "import os; os.abort()")
    helper.close()
    with pytest.raises(UserError, match="its reader crashed"):
        helper.read(path)
    monkeypatch.setattr(reader_process, "_START", "import time; time.sleep(60)")
    monkeypatch.setattr(reader_process, "PATIENCE", 0.2)
    with pytest.raises(UserError, match="took more than"):
        helper.read(path)
    monkeypatch.undo()
    assert helper.read(path).num_episodes == 3
    helper.close()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_large_declarations_do_not_swell_the_process(tmp_path: Path) -> None:
    zip_of(tmp_path / "bomb.npz", "observations.npy", npy((20_000_000, 4)) + bytes(320_000_000))
    hdf5(tmp_path / "bomb.hdf5", lambda f: f.create_dataset("observations", (10**9, 4), "f4", chunks=(1000, 4)))
    code = """
import iddm, re
from iddm.demos.reader_process import HELPER
for name in ("bomb.npz", "bomb.hdf5"):
    try:
        iddm.load_demos(name)
    except iddm.UserError as error:
        assert "more than the" in str(error), error
for pid in ("self", HELPER._process.pid):
    print(re.search(r"VmHWM:\\s+(\\d+)", open(f"/proc/{pid}/status").read())[1])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert max(map(int, done.stdout.split())) < 250_000  # kilobytes
