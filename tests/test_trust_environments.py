"""Environments that misbehave: one sentence that names the environment, the call and the step; never a traceback."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from iddm import evaluate, train
from iddm.demos import Demos
from iddm.envs.spec import resolve, shape_of
from iddm.envs.vector import make_vector
from iddm.errors import UserError, UserNotice
from iddm.training.run_dir import Run
from tests.conftest import TINY

GOOD_OBS = np.zeros(3, np.float32)
BAD_STEP = 3


class Sound(gym.Env):
    """Ten steps of nothing. What is changed in it, and from which step on, a test says."""

    observation_space: gym.Space = gym.spaces.Box(-1, 1, (3,), np.float32)
    action_space: gym.Space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, changes: dict[str, Any], bad_step: int = BAD_STEP) -> None:
        self.changes, self.bad_step, self.total = changes, bad_step, 0
        for name in ("observation_space", "action_space"):
            if name in changes:
                setattr(self, name, changes[name])

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> Any:
        self.time = 0
        result = self.changes.get("reset", (GOOD_OBS, {}))
        return result() if callable(result) else result

    def step(self, action: Any) -> Any:
        self.time += 1
        self.total += 1
        if self.total >= self.bad_step and "step" in self.changes:
            return self.changes["step"]() if callable(self.changes["step"]) else self.changes["step"]
        parts = {"obs": GOOD_OBS, "reward": 1.0, "terminated": False, "truncated": self.time == 10, "info": {}}
        if self.total >= self.bad_step:
            parts |= {key: value for key, value in self.changes.items() if key in parts}
        return tuple(parts.values())

    def close(self) -> None:
        if "close" in self.changes:
            self.changes["close"]()


def boom() -> None:
    raise ZeroDivisionError("the pole\nfell off")


STEP = f"`step` number {BAD_STEP} of the episode"
MISBEHAVIOURS: dict[str, tuple[dict[str, Any], str]] = {
    "step raises": ({"step": boom}, f"{STEP} raised ZeroDivisionError: the pole \\(IDDM_TRACEBACK=1 shows where\\)"),
    "reset raises": ({"reset": boom}, "`reset` raised ZeroDivisionError: the pole"),
    "old reset": ({"reset": GOOD_OBS}, "`reset` returned an array of shape .*return two values"),
    "old reset of two numbers": ({"reset": np.zeros(2)}, "`reset` returned an array of shape .*return two values"),
    "reset returns None": ({"reset": lambda: None}, "`reset` returned None"),
    "reset without a dictionary": ({"reset": (GOOD_OBS, None)}, "`reset` returned a tuple of 2; return two values"),
    "reset of another shape": ({"reset": (np.zeros(4), {})}, "`reset` returned an array of shape .4,., which does not fit"),
    "four values": ({"step": (GOOD_OBS, 1.0, False, {})}, f"{STEP} .*five values"),
    "step returns None": ({"step": lambda: None}, f"{STEP} .*five values|NoneType"),
    "another shape": ({"obs": np.zeros(5, np.float32)}, f"{STEP} returned an array of shape .5,., which does not fit"),
    "no observation": ({"obs": None}, f"{STEP} returned"),
    "observation of text": ({"obs": "left"}, f"{STEP} returned an observation that does not fit"),
    "observation with NaN": ({"obs": np.array([0, np.nan, 0])}, f"{STEP} returned an observation with nan in place 1"),
    "reward of many": ({"reward": np.zeros(2)}, f"{STEP} returned an array of shape .2,. as the reward"),
    "no reward": ({"reward": None}, f"{STEP} returned None as the reward; return a number, 0.0 where there is none"),
    "reward of text": ({"reward": "good"}, f"{STEP} returned a value of type str as the reward"),
    "reward NaN": ({"reward": float("nan")}, f"{STEP} returned nan as the reward"),
    "reward without end": ({"reward": np.float32(np.inf)}, f"{STEP} returned inf as the reward"),
    "terminated is text": ({"terminated": "no"}, f"{STEP} .*True or False|TypeError"),
    "truncated of many": ({"truncated": np.array([True, False])}, f"{STEP} .*True or False|ValueError"),
    "no width of actions": ({"action_space": gym.spaces.Box(-1, 1, (0,))}, "actions are Box.*between 1 and"),
    "choices without end": ({"action_space": gym.spaces.Discrete(10**9)}, "actions are Discrete.1000000000.; .*100,000"),
    "states without end": ({"observation_space": gym.spaces.Discrete(10**9)}, "observations are Discrete.*1,000,000,000"),
    "no action space": ({"action_space": None}, "its action_space is None, not a Gymnasium space"),
    "no observation space": ({"observation_space": None}, "its observation_space is None, not a Gymnasium space"),
    "observations of text": ({"observation_space": gym.spaces.Text(3)}, "which cannot be flattened|does not fit"),
}


def maker_of(changes: dict[str, Any], bad_step: int = BAD_STEP) -> Callable[[], gym.Env]:
    def maker() -> gym.Env:
        return Sound(changes, bad_step)

    return maker


def in_evaluation(maker: Any) -> None:
    evaluate("random", env=maker, episodes=2)
    shape_of(resolve(maker))  # what a policy would need


def in_a_time_limit(maker: Any) -> None:
    evaluate("random", env=maker, episodes=2, max_episode_steps=50)
    shape_of(resolve(maker))


def in_a_vector(maker: Any) -> None:
    spec = resolve(maker)
    space = shape_of(spec).action_space
    vector = make_vector(spec, 2, 0, "auto")
    vector.reset()
    for _ in range(30):
        vector.step(space.to_env(np.zeros((2, space.size))))
    vector.close()


@pytest.mark.parametrize("where", [in_evaluation, in_a_time_limit, in_a_vector])
@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_an_environment_that_misbehaves_is_one_sentence(name: str, where: Callable[[Any], None]) -> None:
    changes, words = MISBEHAVIOURS[name]
    with pytest.raises(UserError, match=words) as caught:
        where(maker_of(changes))
    assert "maker: " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("where", [in_evaluation, in_a_time_limit, in_a_vector])
@pytest.mark.parametrize(
    ("made", "words"), [(None, "made None"), (3, "made a value of type int"), (dict, "made a value of type dict")]
)
def test_a_function_that_makes_no_environment_is_one_sentence(made: Any, words: str, where: Callable[[Any], None]) -> None:
    with pytest.raises(UserError, match=f"{words}, and should return a gymnasium.Env"):
        where(lambda: made() if made is dict else made)


@pytest.mark.parametrize("where", [in_evaluation, in_a_vector])
def test_unusual_but_clear_returns_are_taken(where: Callable[[Any], None]) -> None:
    changing = iter(range(1_000_000))
    for changes in (
        {"reward": np.array([2.0])},
        {"reward": 1},
        {"reward": np.float32(0.5)},
        {"truncated": np.True_},
        {"terminated": 1},
        {"info": None},
        {"info": {"start": "a word", "kind": 1}},
    ):
        where(maker_of(changes))
    where(maker_of({"step": lambda: (GOOD_OBS, 0.0, False, True, {"kind": "text" if next(changing) % 2 else 3})}))


@pytest.mark.parametrize("where", [in_evaluation, in_a_vector])
def test_a_close_that_raises_is_told_and_the_result_stands(where: Callable[[Any], None]) -> None:
    with pytest.warns(UserNotice, match="maker: `close` raised ZeroDivisionError: the pole; nothing else was affected"):
        where(maker_of({"close": boom}))


def test_copies_with_different_spaces_are_one_sentence() -> None:
    sizes = iter(range(1, 100))
    with pytest.raises(UserError, match="its spaces differ each time it is made"):
        in_a_vector(lambda: Sound({"observation_space": gym.spaces.Box(-1, 1, (next(sizes),))}))


def test_an_environment_that_never_ends_is_told_with_the_way_out(monkeypatch) -> None:
    monkeypatch.setattr("iddm.evaluation.ENDLESS", 500)
    endless = maker_of({"truncated": False}, bad_step=0)
    with pytest.raises(UserError, match="has not ended after 500 steps; give a time limit with --max-episode-steps"):
        evaluate("random", env=endless, episodes=2)
    assert evaluate("random", env=endless, episodes=2, max_episode_steps=7).returns.tolist() == [7, 7]
    with pytest.raises(UserError, match="at least 1"):
        evaluate("random", env=endless, episodes=2, max_episode_steps=0)


def test_training_stops_with_its_last_checkpoint_kept(tmp_path: Path) -> None:
    demos = Demos(observations=(np.random.default_rng(0).standard_normal((50, 3)),))
    settings: dict[str, Any] = {**TINY, "num_envs": 2, "rollout_length": 16, "steps": 256}
    with pytest.raises(UserError, match=r"maker: `step` number \d+ of the episode raised ZeroDivisionError") as caught:
        train(maker_of({"step": boom}, bad_step=25), demos, out=tmp_path / "run", max_episode_steps=10, **settings)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    checkpoint = Run.open(tmp_path / "run").checkpoints.load()
    assert checkpoint is None or checkpoint.iteration > 0


def test_the_command_line_shows_a_sentence_and_the_traceback_on_request(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import sys; sys.path.insert(0, ROOT)\n".replace("ROOT", repr(str(Path(__file__).parents[1])))
        + "from tests.test_trust_environments import Sound, boom\n"
        + "def broken(): return Sound({'step': boom, 'close': boom})\n"
    )
    command = [sys.executable, "-m", "iddm", "eval", "random", "--env", "mine:broken", "--episodes", "1"]
    for wanted in ("0", "1"):
        env = {**os.environ, "IDDM_TRACEBACK": wanted, "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{tmp_path}"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=env)
        assert done.returncode == 2
        lines = done.stderr.splitlines()
        assert (
            lines[0] == "iddm: mine:broken: `close` raised ZeroDivisionError: the pole; nothing else was affected."
            or wanted == "1"
        )
        assert lines[-1].startswith("iddm: mine:broken: `step` number 3 of the episode raised ZeroDivisionError: the pole")
        assert (len(lines) == 2) == (wanted == "0")
        assert ("def boom" in done.stderr or "in boom" in done.stderr) == (wanted == "1")
