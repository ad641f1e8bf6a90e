"""A checkpoint comes back to the bit, or not at all."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from iddm.errors import UserError, UserNotice
from iddm.training.checkpoints import Checkpoint
from iddm.training.run_dir import Run
from iddm.utils.tensors import Damaged, read_sealed, sealed

ARRAYS = {
    "w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "n": np.array(3),
    "empty": np.zeros((0, 2)),
    "flag": np.array([True]),
}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "config.json").write_text("{}")
    run = Run.open(tmp_path)
    for iteration in (8, 16):
        run.checkpoints.save(Checkpoint(iteration, {"w": np.full(100, iteration, np.float32)}, np.zeros((4, 2))))
    return run


def newest(run: Run) -> Path:
    return max((run.path / "checkpoints").iterdir())


def test_a_sealed_file_comes_back_to_the_bit(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(sealed(ARRAYS, {"iteration": "3"}))
    arrays, about = read_sealed(tmp_path / "f")
    assert about == {"iteration": "3"}
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype


def test_no_changed_byte_of_a_sealed_file_goes_unseen(tmp_path: Path) -> None:
    content = sealed(ARRAYS, {"iteration": "3"})
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 0x10
        (tmp_path / "f").write_bytes(changed)
        try:
            arrays, about = read_sealed(tmp_path / "f")
        except Damaged:
            continue
        assert about == {"iteration": "3"}  # white space of the header
        assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)


def test_a_flipped_bit_leads_back_to_the_checkpoint_before_and_the_user_is_told(run: Run) -> None:
    content = bytearray(newest(run).read_bytes())
    content[-5] ^= 1
    newest(run).write_bytes(content)
    with pytest.warns(UserNotice, match=r"iteration_00000016.*some of its bytes have changed.*going on from iteration_00000008"):
        checkpoint = run.checkpoints.load()
    assert checkpoint.iteration == 8
    assert checkpoint.actions.shape == (4, 2)


def test_a_renumbered_checkpoint_is_damaged(run: Run) -> None:
    newest(run).write_bytes(newest(run).read_bytes().replace(b'"iteration":"16"', b'"iteration":"17"'))
    with pytest.warns(UserNotice, match="damaged"):
        assert run.checkpoints.load().iteration == 8


def test_where_all_are_damaged_one_sentence_says_how(run: Run) -> None:
    for path in (run.path / "checkpoints").iterdir():
        path.write_bytes(save({"w": np.zeros(3, np.float32)}, {"iteration": "16"}))
    with pytest.raises(UserError, match=r"no checkpoint can be read: .*it has no checksum.*it has no checksum"):
        run.checkpoints.load()


def test_types_that_numpy_does_not_have_are_damage(tmp_path: Path) -> None:
    header = json.dumps({"w": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}).encode()
    (tmp_path / "f").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(Damaged):
        read_sealed(tmp_path / "f")
