"""Tasks of all kinds: the point mass, the experts that ship for them, and the study that compares defaults on them."""

import sys
import warnings
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy.stats import somersd

import iddm
from iddm.bundled import DATA, with_expert_actions
from iddm.cli import main
from iddm.config import command_of, expert_config
from iddm.envs.point_mass import PointMass
from iddm.envs.spec import make_env, resolve
from iddm.errors import UserError
from iddm.studies.catalogue import STUDIES, samples
from iddm.studies.catalogue.kinds import KINDS, OLD, Choice, choice, closeness, correlation, measured, shares, somers_d
from iddm.studies.results import Evaluated, Outcome, Result, Results
from iddm.studies.spec import EXPERT, SIX, UNTRAINED, RunSpec
from iddm.tasks import find_task
from iddm.theory.maze import NEXT_STATE

from . import made_up

SOLVED = {
    "Pendulum": -250,
    "Reacher": -6.5,
    "MountainCarContinuous": 93,
    "Acrobot": -100,
    "Gridworld": 87,
    "LunarLanderContinuous": 220,
    "PointMass": -15,
}
"""A mean return over five episodes that says: solved."""


# The point mass


def test_the_point_mass_moves_and_is_rewarded_as_its_docstring_says() -> None:
    env = PointMass()
    obs, _ = env.reset(seed=3)
    p, v = obs[:2].astype(float), np.zeros(2)
    assert (np.abs(p) <= 1.5).all()
    assert not obs[2:].any()
    rng = np.random.default_rng(0)
    for _ in range(20):
        a = rng.uniform(-1.0, 1.0, 2)
        v = 0.9 * v + 0.02 * a
        p = p + v
        obs, reward, terminated, truncated, _ = env.step(a)
        np.testing.assert_allclose(obs, [*p, *v], atol=1e-6)
        np.testing.assert_allclose(reward, -np.hypot(*p) - np.hypot(*v), atol=1e-6)
        assert not terminated
        assert not truncated


def test_a_wall_stops_the_point_mass_along_its_axis_and_forces_beyond_the_limits_are_clipped() -> None:
    strong, full = PointMass(), PointMass()
    for env, force in ((strong, 50.0), (full, 1.0)):
        obs, _ = env.reset(seed=0)
        while obs[0] < 2.0:
            obs, *_ = env.step(np.array([force, 0.1]))
            assert env.observation_space.contains(obs)
        assert obs[2] == 0.0
        assert obs[3] > 0.0
    np.testing.assert_array_equal(strong._observation(), full._observation())


def test_resting_at_the_target_has_the_highest_reward() -> None:
    env = PointMass()
    env.reset(seed=0)
    env._place, env._velocity = np.zeros(2), np.zeros(2)
    assert env.step(np.zeros(2))[1] == 0.0
    assert env.step(np.array([0.1, 0.0]))[1] < 0.0


def test_gymnasiums_checker_accepts_the_point_mass_and_it_has_a_time_limit() -> None:
    resolve("PointMass")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make("iddm/PointMass-v0").unwrapped)
    assert gym.spec("iddm/PointMass-v0").max_episode_steps == find_task("PointMass").max_episode_steps


# The experts


@pytest.mark.parametrize("task", SOLVED)
def test_the_bundled_expert_solves_its_task_and_its_ten_episodes_are_small(task: str) -> None:
    assert iddm.evaluate(iddm.bundled_expert(task), episodes=5).mean >= SOLVED[task]
    demos = iddm.bundled_demos(task)
    assert demos.num_episodes == 10
    assert demos.episode_returns.mean() >= SOLVED[task]
    assert (demos.actions is None) == (task != "Gridworld")
    assert iddm.bundled_demos(find_task(task).env_id).digest() == demos.digest()
    assert all((DATA / f"{task}{ending}").stat().st_size < 100_000 for ending in (".npz", ".safetensors"))


def test_the_gridworlds_recorded_actions_are_those_that_were_taken() -> None:
    demos = with_expert_actions(iddm.bundled_demos("Gridworld"), "Gridworld")
    for rows, actions in zip(demos.observations, demos.actions, strict=True):
        cells = rows.argmax(axis=1)
        np.testing.assert_array_equal(NEXT_STATE[cells[:-1], actions.ravel()], cells[1:])
    assert len({rows.tobytes() for rows in demos.observations}) > 1  # other ways, as short


def test_an_experts_command_starts_from_its_tasks_learner_unless_another_is_named() -> None:
    own = expert_config("Pendulum")
    assert (own.learner.name, own.steps, own.learner.hidden) == ("sac", 20_000, (64, 64))
    assert command_of(own) == "iddm expert Pendulum --learner sac --steps 20000 --seed 0"
    other = expert_config("Pendulum", learner="ppo")
    assert (other.learner.name, other.steps) == ("ppo", expert_config("Pendulum-v0").steps)
    assert expert_config("Hopper", learner="sac") == replace(expert_config("Walker2d", learner="sac"), env="Hopper")


def test_without_box2d_the_lander_is_one_sentence_that_names_the_extra(monkeypatch, capsys) -> None:
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.box2d")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "Box2D", None)
    with pytest.raises(UserError, match=r"LunarLanderContinuous-v3 .* need an extra: pip install 'iddm-imitation\[box2d\]'"):
        make_env(resolve("LunarLanderContinuous"))
    assert main(["eval", "LunarLanderContinuous", "--episodes", "1"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


# The study


def test_the_default_has_the_same_settings_on_every_task_but_for_steps() -> None:
    for spec in STUDIES["kinds"].runs(seeds=1):
        names = {name for name, _ in spec.settings}
        with_small_networks = spec.task in samples.STEPS and spec.learner == "ppo"
        if spec.method not in UNTRAINED and not with_small_networks:
            assert names <= {"learner", "evaluations"} or names == {"adversarial.reward_form"}, spec.command
    assert {spec.task for spec in STUDIES["kinds"].runs(seeds=1)} == set(KINDS)
    assert {spec.task for spec in STUDIES["table2"].runs(seeds=1)} == set(SIX)


def test_the_study_shares_its_runs_from_ten_episodes_with_the_study_of_samples() -> None:
    kinds, of_samples = ({spec.name for spec in STUDIES[name].runs(seeds=1)} for name in ("kinds", "samples"))
    off_policy, others = len(("gaifo", "iddm", "iddm-zero")), len(("gaifo", "iddm", "bco"))
    assert len(kinds & of_samples) == len(samples.STEPS) * (off_policy + others + len(UNTRAINED))


def test_the_table_has_the_kind_the_scores_of_both_defaults_and_the_controls() -> None:
    study = STUDIES["kinds"]
    table = shares(study.results(made_up.results(["kinds"], seeds=2)))
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert list(rows) == list(KINDS)
    point = rows["PointMass"]
    assert point["kind"] == "resting at a target"
    assert point["expert"] == "120.0 ± 0.0 (50 ep.)"
    columns = "IDDM", "GAIfO", "IDDM, old default", "GAIfO, old default", "BCO"
    for name in (*columns, "IDDM, weights 0 (control)", "constant reward (control)"):
        assert point[name].endswith("] (2)"), name


def test_old_and_new_default_stand_in_their_own_columns() -> None:
    runs = [spec for spec in STUDIES["kinds"].runs(seeds=1, only=["pendulum"]) if spec.method in ("iddm", *UNTRAINED)]
    top = {EXPERT: 100.0, "random": 0.0}

    def outcome(spec: RunSpec) -> Outcome:
        value = top.get(spec.method, 25.0 if spec.steps == OLD["steps"] else 90.0)
        return Outcome(Result.of(spec, np.full(50, value)), (), {})

    table = shares(STUDIES["kinds"].results(Results({}).with_outcomes(map(outcome, runs))))
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert (row["IDDM"], row["IDDM, old default"], row["GAIfO"]) == ("90 % (1)", "25 % (1)", "–")


def evaluations(*pairs: tuple[float, float]) -> list[Evaluated]:
    """Evaluations with these returns and closenesses."""
    return [Evaluated(100 * i, paid, 10.0, close) for i, (paid, close) in enumerate(pairs)]


def test_closeness_is_compared_with_the_return() -> None:
    assert correlation(evaluations((1.0, 0.1), (2.0, 0.3), (3.0, 0.2))) == pytest.approx(0.5)
    assert correlation(evaluations((3.0, 0.4), (2.0, 0.5), (1.0, 0.5))) == pytest.approx(-np.sqrt(3) / 2)
    assert correlation(evaluations((2.0, 0.1), (2.0, 0.3))) is None


def test_evaluations_without_a_closeness_are_left_out() -> None:
    rows = tuple(evaluations((2.0, float("nan")), (3.0, 0.5)))
    result = Result.of(RunSpec("Pendulum", "iddm", 0, steps=100), np.ones(2))
    assert measured(Outcome(result, (), {}, rows)) == [rows[1]]
    assert measured(Outcome(result, (), {}, ())) == []


def test_somers_d_counts_pairs_whose_returns_differ() -> None:
    rows = evaluations((1.0, 0.1), (9.0, 0.9), (8.0, 1.0), (9.5, 0.9))
    assert somers_d(rows, apart=5.0) == 1.0  # the three better ones beside the first; among themselves they are not 5 apart
    assert somers_d(rows, apart=0.5) == pytest.approx((3 - 1 + 0 - 1) / 6)  # 9 before 8, 9.5 beside 9 (a tie), 9.5 before 8
    assert somers_d(rows, apart=10.0) is None


def test_somers_d_is_scipys_where_no_two_are_too_near() -> None:
    rng = np.random.default_rng(0)
    paid, close = rng.normal(size=(2, 40)).round(1)
    rows = evaluations(*zip(paid, close, strict=True))
    assert somers_d(rows, apart=0.05) == pytest.approx(somersd(paid, close).statistic)


def test_closeness_chooses_the_closest_policy_and_the_later_of_equals() -> None:
    assert choice(evaluations((1.0, 0.1), (2.0, 0.3), (3.0, 0.2))) == Choice(chosen=2.0, best=3.0, last=3.0)
    assert choice(evaluations((3.0, 0.5), (2.0, 0.5), (1.0, 0.4))) == Choice(chosen=2.0, best=3.0, last=1.0)


def test_the_table_of_closeness_has_a_row_per_task_and_their_median() -> None:
    table = closeness(STUDIES["kinds"].results(made_up.results(["kinds"], seeds=2)))
    assert [row[0] for row in table.rows] == [*KINDS, "median of the tasks"]
    assert {row[2] for row in table.rows} == {"1.00"}  # made up to follow exactly
    assert all(row[-1].startswith("4 of ") for row in table.rows[:-1])  # two methods, two seeds; then the others
