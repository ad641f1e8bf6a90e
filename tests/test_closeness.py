"""Closeness to held-out demonstrations, and the policy that is kept by it."""

from dataclasses import replace
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import iddm
from iddm.closeness import HIGHEST, Sample, Yardstick, split
from iddm.demos import Demos
from iddm.demos.align import View
from iddm.errors import UserError
from iddm.training.evaluations import num_episodes
from iddm.training.run_dir import Run
from iddm.training.setup import Setup

from .conftest import TINY, TINY_GAIFO


def walk(rng: np.random.Generator, length: int = 200, pull: float = 0.1, columns: int = 2) -> np.ndarray:
    """A random walk that is pulled to zero."""
    rows = np.zeros((length + 1, columns))
    for t in range(length):
        rows[t + 1] = (1 - pull) * rows[t] + rng.normal(size=columns)
    return rows


def walks(seed: int, number: int, **kwargs: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [walk(rng, **kwargs) for _ in range(number)]


@pytest.mark.parametrize("number", [10, 1])
def test_parts_share_no_transition_and_lose_at_most_none(number: int) -> None:
    demos = Demos(tuple(walks(0, number)), terminated=np.ones(number, bool))
    parts = split(demos)
    assert parts is not None
    assert parts.by_blocks == (number == 1)
    pairs = [
        {tuple(np.r_[a, b]) for rows in part.observations for a, b in pairwise(rows)} for part in (parts.rest, parts.held_out)
    ]
    assert not pairs[0] & pairs[1]
    assert len(pairs[0]) + len(pairs[1]) == demos.num_transitions
    assert len(pairs[1]) == pytest.approx(0.2 * demos.num_transitions)
    ended = [np.asarray(part.terminated).sum() for part in (parts.rest, parts.held_out)]
    assert sum(ended) == number, "a piece ends by itself only where its episode did"


def test_too_little_cannot_be_split() -> None:
    assert split(Demos(tuple(walks(0, 2, length=10)))) is None
    assert Yardstick.of(Demos(tuple(walks(0, 2, length=10)))) is None


@pytest.mark.parametrize("number", [10, 3])
def test_the_experts_own_episodes_are_at_one_and_others_fall_off_with_their_distance(number: int) -> None:
    yardstick = Yardstick.of(Demos(tuple(walks(0, number, pull=0.5, length=1000))))
    assert yardstick is not None
    close = [yardstick.closeness(walks(1, 6, pull=pull, length=1000), [False] * 6) for pull in (0.5, 0.1, 0.02)]
    assert close[0] == pytest.approx(1, abs=0.35)
    assert close[0] > 1.3 * close[1]
    assert close[1] > 1.3 * close[2]


def test_much_nearer_than_demonstrations_are_to_each_other_is_not_told() -> None:
    demos = Demos(tuple(walks(0, 10, length=100)))
    yardstick = Yardstick.of(demos)
    assert yardstick is not None
    assert yardstick.closeness(demos.observations[8:], [False] * 2) == HIGHEST  # the held-out episodes themselves
    same = Demos(tuple(walks(0, 1, length=100) * 10))
    yardstick = Yardstick.of(same)
    assert yardstick is not None
    assert yardstick.closeness(same.observations[:2], [False] * 2) == HIGHEST, "demonstrations all the same have no floor"


def test_ending_early_and_not_ending_are_both_far() -> None:
    same = {"pull": 1.0}  # every state is drawn alike: only the lengths differ
    demos = Demos(tuple(walks(0, 10, length=100, **same)), terminated=np.r_[[True] * 9, False])
    yardstick = Yardstick.of(
        Demos(tuple([*demos.observations[:9], walk(np.random.default_rng(5), 200, 1.0)]), None, None, demos.terminated)
    )
    assert yardstick is not None
    alike, short, endless = (
        yardstick.distance(walks(1, 10, length=length, **same), [ends] * 10)
        for length, ends in ((100, True), (20, True), (200, False))
    )
    assert alike < min(short, endless)


def test_columns_and_rates_of_the_demonstrations_are_those_compared() -> None:
    every_second = Demos(tuple(rows[::2, :1] for rows in walks(0, 10, length=400)))
    yardstick = Yardstick.of(every_second, View(columns=(0,), agent_lag=2))
    assert yardstick is not None
    assert yardstick.closeness(walks(1, 10, length=400), [False] * 10) == pytest.approx(1, abs=0.35)
    wrong_rate = Yardstick.of(every_second, View(columns=(0,)))
    assert wrong_rate is not None
    assert wrong_rate.closeness(walks(1, 10, length=400), [False] * 10) < 0.7


def test_energy_distance_of_two_points_is_known() -> None:
    at_once, later = np.zeros(3), np.full(3, 1.5)
    near, far = Sample(np.zeros((3, 2)), at_once, 0.0), Sample(np.tile([0.0, 2.0], (3, 1)), at_once, 0.0)
    np.testing.assert_allclose(near.distance(far), [0, 2])  # √(2·2)
    np.testing.assert_allclose(near.distance(replace(far, time=later)), [np.sqrt(2 * 1.5), np.sqrt(2 * 2.5)])
    np.testing.assert_allclose(near.distance(replace(near, absorbed=1.0)), np.sqrt(2), err_msg="an end lies at 1 from the middle")


def test_going_on_where_demonstrations_end_is_far_even_if_all_end_at_the_same_step() -> None:
    same = {"length": 100, "pull": 1.0}
    yardstick = Yardstick.of(Demos(tuple(walks(0, 10, **same)), terminated=np.ones(10, bool)))
    assert yardstick is not None
    assert (yardstick.length, yardstick.horizon) == (100, 150)
    finished = yardstick.closeness(walks(1, 10, **same), [True] * 10)
    endless = yardstick.closeness(walks(1, 10, length=200, pull=1.0), [False] * 10)
    assert finished == pytest.approx(1, abs=0.35)
    assert endless < 0.5 * finished


def test_the_same_states_at_other_times_are_far() -> None:
    rng = np.random.default_rng(0)
    rising = [np.linspace(0, 1, 101)[:, None] + 0.05 * rng.normal(size=(101, 1)) for _ in range(20)]
    yardstick = Yardstick.of(Demos(tuple(rising[:10])))
    assert yardstick is not None
    alike, late = (
        yardstick.closeness(rows, [False] * 10) for rows in (rising[10:], [np.roll(rows, 50, axis=0) for rows in rising[10:]])
    )
    assert late < 0.5 * alike


class Unpaid(gym.RewardWrapper):
    """Every reward is zero."""

    def reward(self, reward: Any) -> float:
        return 0.0


def unpaid_cartpole() -> gym.Env:
    return gym.wrappers.TimeLimit(Unpaid(gym.make("CartPole-v1").unwrapped), 100)


def paid_cartpole() -> gym.Env:
    return gym.wrappers.TimeLimit(gym.make("CartPole-v1").unwrapped, 100)


def test_short_episodes_are_evaluated_more_often() -> None:
    assert [num_episodes(length) for length in (None, 1000, 150, 50, 5)] == [4, 4, 7, 20, 20]


EVALUATED = TINY_GAIFO | {"evaluations": 4}


@pytest.fixture(scope="module")
def run(cartpole_demos: Demos, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return iddm.train(paid_cartpole, cartpole_demos, "gaifo", tmp_path_factory.mktemp("closeness") / "run", **EVALUATED)


def test_the_closest_policy_is_kept_and_the_last_beside_it(run: Run) -> None:
    evaluated = [row for row in run.metrics() if not isnan(row["closeness"])]
    assert [row["iteration"] for row in evaluated] == [1, 2, 3, 4]
    assert run.last_policy_path.is_file()
    assert not (run.path / "evaluated").exists()
    best = max(evaluated, key=lambda row: row["closeness"])
    kept_is_last = run.policy_path.read_bytes() == run.last_policy_path.read_bytes()
    assert kept_is_last == (best["iteration"] == 4)


def test_the_environments_reward_chooses_nothing(run: Run, cartpole_demos: Demos, tmp_path: Path) -> None:
    unpaid = iddm.train(unpaid_cartpole, cartpole_demos, "gaifo", tmp_path / "run", **EVALUATED)
    assert unpaid.metrics()[-1]["evaluation_return"] == 0 != run.metrics()[-1]["evaluation_return"]
    for ours, theirs in ((unpaid.policy, run.policy), (unpaid.last_policy, run.last_policy)):
        assert all(np.array_equal(a, b) for a, b in zip(ours.weights, theirs.weights, strict=True))


def test_training_until_closeness_stops_at_the_floor(cartpole_demos: Demos, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(Yardstick, "closeness", lambda self, episodes, terminated: 1.0)
    run = iddm.train(paid_cartpole, cartpole_demos, "gaifo", tmp_path / "run", until="closeness", **EVALUATED)
    assert len(run.metrics()) == 1
    assert run.finished
    with pytest.raises(UserError, match="--until closeness needs evaluations"):
        iddm.train(paid_cartpole, cartpole_demos, "gaifo", tmp_path / "other", until="closeness", **TINY)


def test_a_finished_run_goes_on_and_the_policy_it_kept_stays_a_candidate(cartpole_demos: Demos, tmp_path: Path) -> None:
    settings = EVALUATED | {"steps": 512, "evaluations": 2}
    first = iddm.train("CartPole", cartpole_demos, "gaifo", tmp_path / "run", **settings)
    kept = first.policy_path.read_bytes()
    run = iddm.resume(tmp_path / "run", demos=cartpole_demos, steps=1024)
    rows = run.metrics()
    assert (run.finished, run.config.steps, rows[-1]["steps"]) == (True, 1024, 1024)
    best = max((row for row in rows if not isnan(row["closeness"])), key=lambda row: row["closeness"])
    assert (run.policy_path.read_bytes() == kept) == (best["steps"] <= 512)
    with pytest.raises(UserError, match="1024 steps are done"):
        iddm.resume(tmp_path / "run", demos=cartpole_demos, steps=512)


def test_a_run_starts_from_a_policy_that_exists(run: Run, cartpole_demos: Demos, tmp_path: Path) -> None:
    started = Setup.prepare(replace(run.config, init=str(run.path)), cartpole_demos, paid_cartpole)
    policy = started.saved_policy(started.config.learner.policy(started.initial_state()))
    obs = np.random.default_rng(0).normal(size=(20, 4))
    np.testing.assert_allclose(policy.network(obs), run.policy.network(obs), atol=1e-6)
    wider = EVALUATED | {"hidden": (8,), "init": str(run.path)}
    with pytest.raises(UserError, match="other layers; give it its own size with --hidden 16 16"):
        iddm.train(paid_cartpole, cartpole_demos, "gaifo", tmp_path / "wider", **wider)
    assert not (tmp_path / "wider").exists()
