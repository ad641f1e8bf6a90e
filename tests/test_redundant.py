"""Redundant motors: the same task with several motors per joint, and the part of an action that changes no state."""

import gymnasium as gym
import numpy as np
import pytest

from iddm.bundled import bundled_demos, bundled_expert, with_expert_actions
from iddm.config import configure, default_config
from iddm.envs.redundant import Motors
from iddm.envs.spec import make_env, resolve, shape_of
from iddm.envs.stored import StoredEnv
from iddm.envs.vector import choose_backend, envpool_has, make_vector
from iddm.errors import UserError
from iddm.evaluation import evaluate
from iddm.training.demonstrations import find_demos, prepare_demonstrations

MAPS = ["mean", "sine"]


@pytest.mark.parametrize("map", MAPS)
def test_even_motors_make_the_torque_without_null_space(map: str) -> None:
    torque = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    motors = Motors(4, map)
    np.testing.assert_allclose(motors.torque(motors.even(torque)), torque, atol=1e-12)
    np.testing.assert_allclose(motors.null_energy(motors.even(torque)), 0.0, atol=1e-24)


def test_null_energy_is_what_motors_do_against_each_other() -> None:
    motors = Motors(2)
    action = np.array([0.5, -0.2, 0.1, -0.2])  # motor 0 of both joints, then motor 1
    np.testing.assert_allclose(motors.torque(action), [0.3, -0.2])
    assert motors.null_energy(action) == pytest.approx(0.2**2)  # the first joint's: ±0.2


@pytest.mark.parametrize("map", MAPS)
def test_the_null_space_changes_no_state(map: str) -> None:
    motors, rng = Motors(2, map), np.random.default_rng(1)
    plain, redundant = make_env(resolve("Hopper")), make_env(resolve("redundant/Hopper", kwargs={"motors": 2, "map": map}))
    assert redundant.action_space.shape == (6,)
    plain.reset(seed=3)
    redundant.reset(seed=3)
    for _ in range(20):
        action = rng.uniform(-0.5, 0.5, 6).astype(np.float32)
        expected, reward, *_ = plain.step(motors.torque(action).astype(np.float32))
        found, same_reward, *_ = redundant.step(action)
        np.testing.assert_allclose(found, expected, atol=1e-4)
        assert same_reward == pytest.approx(reward, abs=1e-4)


def test_motor_cost_takes_the_effort_of_single_motors_from_the_reward() -> None:
    free, costly = (make_env(resolve("redundant/Hopper", kwargs={"motor_cost": cost})) for cost in (0.0, 0.5))
    action = np.array([0.6, 0.0, 0.0, -0.6, 0.0, 0.0], np.float32)  # the two motors of the first joint against each other
    for env in (free, costly):
        env.reset(seed=0)
    assert free.step(action)[1] - costly.step(action)[1] == pytest.approx(0.5 * (0.6**2 + 0.6**2) / 2)


@pytest.mark.skipif(not envpool_has(resolve("Hopper-v5")), reason="EnvPool is not installed, or not for this machine")
@pytest.mark.parametrize("map", MAPS)
def test_envpool_steps_redundant_motors_as_the_plain_task(map: str) -> None:
    spec = resolve("redundant/Hopper", kwargs={"motors": 2, "map": map, "motor_cost": 0.5})
    assert choose_backend(spec, "auto") == "envpool"
    plain, redundant = (make_vector(each, 3, 0, "envpool") for each in (resolve("Hopper"), spec))
    np.testing.assert_array_equal(plain.reset(), redundant.reset())
    action = np.random.default_rng(1).uniform(-0.5, 0.5, (3, 6)).astype(np.float32)
    expected, found = plain.step(Motors(2, map).torque(action)), redundant.step(action)
    np.testing.assert_allclose(found.obs, expected.obs, atol=1e-4)
    np.testing.assert_allclose(expected.reward - found.reward, 0.5 * (action**2).sum(axis=1) / 2, atol=1e-4)


def test_options_of_the_plain_task_are_left_to_gymnasium() -> None:
    spec = resolve("redundant/Hopper", kwargs={"motors": 2, "healthy_reward": 0.5})
    assert choose_backend(spec, "auto") == "gymnasium"


def test_the_name_brings_time_limit_states_and_settings_of_the_task() -> None:
    shape = shape_of(resolve("redundant/Hopper"))
    assert (shape.env_id, shape.obs_size, shape.max_episode_steps) == ("redundant/Hopper-v5", 11, 1000)
    assert default_config("redundant/Hopper").learner.log_std_init == default_config("Hopper").learner.log_std_init
    assert StoredEnv("redundant/Hopper", kwargs={"motors": 4}).own().kwargs == {"motors": 4}  # a file may name it


@pytest.mark.parametrize(
    ("env", "kwargs", "sentence"),
    [
        ("redundant/CartPole", {}, "its actions are choices"),
        ("redundant/Hopper", {"motors": 0}, "whole number from 1"),
        ("redundant/Hopper", {"map": "cube"}, "expected mean or sine"),
        ("redundant/Hopper", {"motor_cost": "much"}, "expected a number"),
        ("redundant/Nowhere-v0", {}, "not registered"),
        ("redundant/redundant/Hopper", {}, "without a namespace"),
    ],
)
def test_what_cannot_have_several_motors_is_one_sentence(env: str, kwargs: dict, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        make_env(resolve(env, kwargs=kwargs))


@pytest.mark.parametrize("map", MAPS)
def test_the_bundled_experts_motors_share_its_torque(map: str) -> None:
    motors, expert = Motors(2, map), bundled_expert("redundant/Hopper")
    states = bundled_demos("redundant/Hopper").take_episodes(1)
    plain, shared = with_expert_actions(states, "Hopper"), with_expert_actions(states, "redundant/Hopper", motors)
    np.testing.assert_allclose(motors.torque(shared.flat_actions()), np.clip(plain.flat_actions(), -1, 1), atol=1e-5)
    spec = resolve("redundant/Hopper", max_episode_steps=50, kwargs={"motors": 2, "map": map})
    alone = evaluate(expert, resolve("Hopper", max_episode_steps=50), episodes=1).mean
    assert evaluate(expert, spec, episodes=1).mean == pytest.approx(alone, rel=0.02)


def test_gail_learns_from_the_bundled_expert_with_all_motors() -> None:
    config = configure(default_config("redundant/Hopper", "gail"), {"env_kwargs": '{"motors": 4}'})
    shape = shape_of(resolve("redundant/Hopper", kwargs={"motors": 4}))
    actions = prepare_demonstrations(config, shape, None).expert.actions
    assert actions.shape[1] == 12
    np.testing.assert_array_equal(actions[:, :3], actions[:, 9:])


def test_the_wrapper_is_an_environment_that_gymnasium_makes() -> None:
    resolve("redundant/Hopper")
    env = gym.make("redundant/Hopper-v5", motors=3)
    assert env.action_space.shape == (9,)
    env.close()


@pytest.mark.parametrize("how", ["expert:1", "expert:1:stochastic"])
def test_the_bundled_expert_makes_new_demonstrations_with_its_actions(how: str) -> None:
    settings = {"demos": how, "env_kwargs": '{"motors": 2}'}
    source, demos = find_demos(configure(default_config("redundant/InvertedPendulum", "gail"), settings))
    assert (source, demos.num_episodes) == ("bundled: InvertedPendulum", 1)
    actions = demos.flat_actions()
    np.testing.assert_array_equal(actions[:, 0], actions[:, 1])
    expert = bundled_expert("InvertedPendulum").predict(demos.observations[0][:-1])
    assert np.allclose(actions[:, :1], expert, atol=1e-5) == (how == "expert:1")


@pytest.mark.parametrize("how", ["expert:", "expert:many", "expert:5:loud"])
def test_what_the_expert_cannot_make_is_one_sentence(how: str) -> None:
    with pytest.raises(UserError, match="write expert:50"):
        find_demos(configure(default_config("Hopper"), {"demos": how}))
