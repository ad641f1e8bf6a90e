"""What `iddm inspect` warns of before training, and what it says to do."""

from pathlib import Path

import numpy as np
import pytest

from iddm.bundled import bundled_demos
from iddm.cli import main
from iddm.demos import Demos, inspect_demos, load_demos, save_demos
from iddm.demos.boundaries import SETTLED, jumps
from iddm.demos.oddities import EnvSample
from iddm.envs.spaces import EnvSizes
from iddm.envs.spec import resolve
from iddm.evaluation import sample_env

SHARED = Path(__file__).parents[2] / "shared" / "demos"
SHARED_FILES = sorted(SHARED.glob("*/*.npz"))
ENV = EnvSizes("Mine-v0", 3, 100)


def walk(num_rows: int = 60, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(num_rows, 3)).cumsum(axis=0)


def said(demos: Demos, sample: np.ndarray | None = None, **env) -> str:
    beside = None if sample is None else EnvSample(sample)
    return " ".join(f"{level}: {sentence}" for level, sentence in inspect_demos(demos, ENV, beside).findings)


def test_a_column_constant_on_one_side_only_is_found_either_way() -> None:
    still = walk() * [1, 0, 1]
    assert "warning: Constant in the demonstrations but not in Mine-v0: column 1" in said(Demos((still,)), walk(seed=1))
    assert "Constant in Mine-v0 under random actions but not in the demonstrations: column 1" in said(Demos((walk(),)), still)
    assert "Constant" not in said(Demos((still,)), still)


def test_other_units_are_found() -> None:
    degrees = walk() * [1, 57.3, 1]
    assert "times wider than in Mine-v0 under random actions: column 1" in said(Demos((degrees,)), walk(seed=1))
    assert "units differ" in said(Demos((walk() / 1000,)), walk(seed=1))
    assert "units" not in said(Demos((walk(),)), walk(seed=1))


def test_normalised_states_are_found() -> None:
    rows = walk()
    assert "these states were normalised" in said(Demos(((rows - rows.mean(0)) / rows.std(0),)))


def test_a_clock_is_found_and_a_steady_climb_with_noise_is_not() -> None:
    rows = walk()
    rows[:, 2] = np.arange(60) * 0.001
    assert "Column 2 only counts time" in said(Demos((rows,)))
    later = rows.copy()
    later[:, 2] += 0.3
    assert "Column 2 only counts time" in said(Demos((rows, rows)))
    assert "Column 2 only counts time" in said(Demos((rows, later)))
    later[:, 2] -= 0.28  # an even way from another start is a motion
    assert "counts time" not in said(Demos((rows, later)))
    rows[:, 2] += np.random.default_rng(0).normal(size=60) * 1e-5
    assert "counts time" not in said(Demos((rows,)))


def test_episodes_shorter_than_the_environments_are_found_unless_they_ended_by_themselves() -> None:
    assert "shows 59 of the 100 steps of Mine-v0" in said(Demos((walk(),)), walk())
    assert "--max-episode-steps 59" in said(Demos((walk(),)), walk())
    assert "of the 100 steps" not in said(Demos((walk(),), terminated=np.array([True])), walk())
    assert "of the 100 steps" not in said(Demos((walk(100),)), walk())


def test_demonstrations_that_earn_no_more_than_doing_nothing_are_found() -> None:
    demos = Demos((walk(),), episode_returns=np.array([1100.0]))
    inspection = inspect_demos(demos, ENV, EnvSample(walk(), idle_return=990.0))
    assert any("Doing nothing earns 990" in sentence for _, sentence in inspection.findings)


def test_a_lost_boundary_is_found() -> None:
    demos = bundled_demos("HalfCheetah").take_episodes(3)
    rows, _ = demos.flat()
    assert "jumps back" not in said(demos)
    text = said(Demos((rows,)))
    assert "jumps back to a start inside an episode, 2 times (episode 0 row 1001, episode 0 row 2002)" in text
    assert "store where episodes end" in text


def test_an_impact_that_moves_a_few_columns_far_is_no_lost_boundary() -> None:
    rows = np.cumsum(np.random.default_rng(0).normal(size=(300, 40)), axis=0)
    rows[:, :10] = 0.0
    rows[25::25, :10] = 1000.0  # as Humanoid's forces, which are mostly zero
    assert "jumps back" not in said(Demos((rows.astype(np.float32),)))


@pytest.mark.skipif(not SHARED_FILES, reason="the folder of demonstrations recorded by others is not beside the repository")
@pytest.mark.parametrize("path", SHARED_FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_in_others_recordings_every_lost_boundary_is_found_and_nothing_else(path: Path) -> None:
    demos = load_demos(path)
    std = np.concatenate(demos.observations).std(axis=0)
    assert not any(len(jumps(rows, std)) for rows in demos.observations)
    ends = np.cumsum(demos.lengths + 1)
    far_enough = [int(end) for end, length in zip(ends[:-1], demos.lengths[:-1], strict=True) if length > SETTLED]
    assert jumps(np.concatenate(demos.observations), std).tolist() == far_enough


def test_the_environments_own_states_are_sampled() -> None:
    sample = sample_env(resolve("Ant-v5", None, {"include_cfrc_ext_in_observation": False}))
    assert sample.rows.shape[1] == 27
    assert 900 < sample.idle_return < 1100
    assert sample_env(resolve("CartPole-v1")).idle_return is None


def test_old_ants_contact_columns_and_a_clock_are_told_apart(tmp_path: Path, capsys) -> None:
    rows = np.random.default_rng(0).normal(size=(50, 111)).astype(np.float32)
    save_demos(Demos((rows,)), tmp_path / "old.npz")
    kwargs = '{"include_cfrc_ext_in_observation": false}'
    assert main(["inspect", str(tmp_path / "old.npz"), "--env", "Ant-v5", "--env-kwargs", kwargs]) == 2
    assert "--demo-columns 0:27" in capsys.readouterr().out


SPECIAL = {
    "cs285_2023/Ant": ["recorded on Ant-v4", "T+1 rows"],
    "cs285_2023/HalfCheetah": ["recorded on HalfCheetah-v4"],
    "opolo/Ant": ["last successor is missing", "Contact-force columns", "Ant-v2"],
    "opolo/Ant_ret1150": ["Doing nothing earns", "last successor is missing"],
    "opolo/Walker2d": ["last successor is missing", "Time-feature column dropped"],
    "stable_baselines2/CartPole": ["last successor is missing", "returns range from 27 to 500"],
    "tonic/InvertedDoublePendulum_ppo": ["v4 has 2 further columns that are always zero"],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_inspect_says_what_is_special_about_others_recordings(name: str, shared_demos, capsys) -> None:
    path = shared_demos(f"{name}.npz")
    task = path.stem.split("_")[0]
    kwargs = '{"include_cfrc_ext_in_observation": false}' if task == "Ant" else "{}"
    env = "CartPole-v1" if task == "CartPole" else f"{task}-v5"
    assert main(["inspect", str(path), "--env", env, "--env-kwargs", kwargs]) == 0
    out = capsys.readouterr().out
    assert f"Fits {env}" in out
    for words in SPECIAL[name]:
        assert words in out
