"""Both backends mean the same: true successors, ends apart from time limits, masked autoreset rows, any Box."""

import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from iddm.envs.rollout import Collector, staggered
from iddm.envs.spaces import ActionSpace
from iddm.envs.spec import resolve, shape_of
from iddm.envs.vector import choose_backend, envpool_has, make_vector
from iddm.errors import UserError
from iddm.tasks import TASKS, find_task

HAS_ENVPOOL = envpool_has(resolve("Hopper-v5"))
BACKENDS = ["gymnasium", pytest.param("envpool", marks=pytest.mark.skipif(not HAS_ENVPOOL, reason="no EnvPool wheel here"))]


def collect(name: str, backend: str, steps: int, max_episode_steps: int | None = None, num_envs: int = 3):
    spec = resolve(name, max_episode_steps)
    space = shape_of(spec).action_space
    collector = Collector(make_vector(spec, num_envs, 0, backend), space)
    rng = np.random.default_rng(0)

    def act(obs: np.ndarray, t: int) -> np.ndarray:
        return rng.integers(0, space.size, num_envs) if space.discrete else rng.uniform(-1, 1, (num_envs, space.size))

    return collector.collect(act, steps)


@pytest.mark.parametrize("backend", BACKENDS)
def test_row_after_an_end_is_masked_and_every_valid_row_holds_its_true_successor(backend: str) -> None:
    rollout, returns = collect("Hopper-v5", backend, 200)
    ended = rollout.terminated | rollout.truncated
    assert ended.any()
    np.testing.assert_array_equal(~rollout.valid[1:], (ended & rollout.valid)[:-1])
    jump = np.abs(rollout.next_obs[..., 0] - rollout.obs[..., 0])  # height: an autoreset jumps, a step of 8 ms does not
    assert jump[rollout.valid].max() < 0.1
    assert jump[~rollout.valid].max() > 0.1
    np.testing.assert_array_equal(rollout.next_obs[:-1], rollout.obs[1:])
    assert len(returns) == (ended & rollout.valid).sum()


@pytest.mark.parametrize("backend", BACKENDS)
def test_time_limit_is_truncation_and_falling_is_termination(backend: str) -> None:
    rollout, _ = collect("HalfCheetah-v5", backend, 25, max_episode_steps=10)
    assert rollout.truncated[9].all()
    assert not rollout.valid[10].any()
    assert not rollout.terminated.any()
    assert collect("Hopper-v5", backend, 100)[0].terminated.any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_discrete_actions_run(backend: str) -> None:
    rollout, returns = collect("CartPole", backend, 60)
    assert rollout.action.shape == (60, 3)
    assert returns
    assert max(returns) < 100


def test_returns_of_episodes_are_sums_of_their_valid_rewards() -> None:
    rollout, returns = collect("Hopper-v5", "gymnasium", 100, num_envs=1)
    ended = ((rollout.terminated | rollout.truncated) & rollout.valid)[:, 0]
    last = np.flatnonzero(ended)[-1]
    assert sum(returns) == pytest.approx(rollout.env_reward[: last + 1][rollout.valid[: last + 1]].sum(), rel=1e-4)


@pytest.mark.skipif(not HAS_ENVPOOL, reason="no EnvPool wheel here")
@pytest.mark.parametrize("name", ["Hopper-v5", "HalfCheetah-v5", "InvertedPendulum-v5"])
def test_a_policy_scores_the_same_on_both_backends(name: str) -> None:
    def act(obs: np.ndarray, t: int) -> np.ndarray:  # deterministic feedback: only the start's noise differs
        size = shape_of(resolve(name)).action_space.size
        return np.tanh(obs @ np.linspace(-1, 1, obs.shape[1] * size).reshape(obs.shape[1], size))

    scores = {}
    for backend in ("envpool", "gymnasium"):
        collector = Collector(make_vector(resolve(name, 60), 32, 1, backend), shape_of(resolve(name)).action_space)
        scores[backend] = np.array(collector.collect(act, 130)[1])
    a, b = scores["envpool"], scores["gymnasium"]
    error = np.sqrt(a.var() / len(a) + b.var() / len(b))
    assert abs(a.mean() - b.mean()) < 4 * error + 1e-3 * abs(b.mean())


def test_tasks_have_the_sizes_that_the_table_says() -> None:
    for task in TASKS:
        shape = shape_of(resolve(task.name))
        assert (shape.obs_size, shape.max_episode_steps) == (task.obs_size, task.max_episode_steps)
    assert find_task("hopper") is find_task("Hopper-v5")
    assert resolve("CartPole").max_episode_steps == 200
    assert resolve("CartPole-v1").max_episode_steps == 500


def test_any_box_is_rescaled_and_back() -> None:
    space = ActionSpace(3, False, (-2.0, 0.0, -np.inf), (2.0, 10.0, np.inf), shape=(3,))
    np.testing.assert_allclose(space.to_env(np.array([1.0, -1.0, 7.0])), [2.0, 0.0, 7.0])
    np.testing.assert_allclose(space.to_env(np.array([5.0, 0.0, 0.0])), [2.0, 5.0, 0.0])
    action = np.array([[0.3, -0.4, 1.5]])
    np.testing.assert_allclose(space.from_env(space.to_env(action)), action, rtol=1e-6)
    assert ActionSpace.from_json(space.to_json()) == space
    assert shape_of(resolve("Pendulum-v1")).action_space.high == (2.0,)


class DictEnv(gym.Env):
    """An environment of a user's own, with named observations."""

    observation_space = gym.spaces.Dict({"a": gym.spaces.Box(-1, 1, (2,)), "b": gym.spaces.Discrete(3)})
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return {"a": np.zeros(2, np.float32), "b": 1}, {}

    def step(self, action):
        return {"a": np.ones(2, np.float32), "b": 2}, 1.0, False, False, {}


def make_dict_env() -> gym.Env:
    return DictEnv()


def test_a_function_that_makes_an_environment_works_with_dictionary_observations() -> None:
    spec = resolve(make_dict_env, max_episode_steps=5)
    assert shape_of(spec).obs_size == 5
    assert choose_backend(spec, "auto") == "gymnasium"
    rollout, _ = Collector(make_vector(spec, 2, 0, "auto"), shape_of(spec).action_space).collect(
        lambda obs, t: np.zeros((2, 1)), 6
    )
    assert rollout.truncated[4].all()
    assert resolve(spec.id).id == spec.id


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Hoper-v5", "Did you mean.*Hopper"),
        ("no_such_module:make", "no_such_module"),
        ("iddm.errors:UserErrors", "UserErrors"),
        ("MountainCar-v0:x", "from the directory of the module's file, or --import"),
    ],
)
def test_unknown_environment_is_one_sentence(name: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        resolve(name)


def test_a_function_is_found_in_the_current_directory_where_the_command_itself_does_not_look(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "reach_here.py").write_text("def make():\n    return 7\n")
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    with pytest.raises(UserError, match="No module named 'reach_here'"):
        resolve("reach_here:make")
    monkeypatch.chdir(tmp_path)
    spec = resolve("reach_here:make")
    del sys.modules["reach_here"]
    assert spec.make is not None
    assert spec.make() == 7


def test_a_functions_own_time_limit_is_known() -> None:
    assert shape_of(resolve(lambda: gym.wrappers.TimeLimit(make_dict_env(), 9))).max_episode_steps == 9
    assert shape_of(resolve(make_dict_env)).max_episode_steps is None
    assert shape_of(resolve(lambda: gym.make("CartPole-v1"))).max_episode_steps == 500


def test_envpool_is_refused_where_it_does_not_have_the_task() -> None:
    with pytest.raises(UserError, match="use --backend gymnasium"):
        choose_backend(resolve(make_dict_env), "envpool")


@pytest.mark.parametrize("backend", ["gymnasium", "envpool"])
@pytest.mark.parametrize("lags", [(1,), (3, 1)])
def test_environments_with_staggered_starts_do_not_run_in_step(backend, lags: tuple[int, ...]) -> None:
    spec = resolve("HalfCheetah-v5", 12)
    space = shape_of(spec).action_space
    collector = Collector(make_vector(spec, 3, 0, backend), space, lags, staggered(3, 12))
    rng = np.random.default_rng(0)
    rollout, _ = collector.collect(lambda obs, t: rng.uniform(-1, 1, (3, space.size)).astype(np.float32), 40)
    first_cut = [int(np.flatnonzero(rollout.truncated[:, n])[0]) for n in range(3)]
    assert first_cut == [3, 7, 11]
    assert rollout.valid[4, 0], "a cut episode is followed by a real row, not by an autoreset's"
    assert rollout.step[3:6, 0].tolist() == [3, 0, 1]
    assert not np.array_equal(rollout.next_obs[3, 0], rollout.obs[4, 0]), "the true successor stays, the next row begins anew"
    lengths = np.diff(np.flatnonzero(rollout.truncated[:, 0]))
    assert (lengths[1:] == 13).all()  # twelve steps, and the autoreset's row
    assert len({int(x) for x in rollout.step[30]}) == 3
    if rollout.past is not None:
        np.testing.assert_array_equal(rollout.past[4, 0], [rollout.obs[4, 0]] * 2)


def test_an_episode_that_ends_before_its_cut_is_not_cut_later() -> None:
    spec = resolve("CartPole-v1", 40)
    collector = Collector(make_vector(spec, 2, 0, "gymnasium"), shape_of(spec).action_space, first_lengths=np.array([15, 40]))
    rollout, _ = collector.collect(lambda obs, t: np.zeros(2, int), 60)
    assert rollout.terminated[:15, 0].any()
    assert not rollout.truncated.any()
