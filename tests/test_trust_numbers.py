"""Numbers that are none: nothing learned from them is saved, and a sentence says where they came from."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import iddm
from iddm.envs import vector
from iddm.envs.rollout import Collector
from iddm.envs.spec import resolve, shape_of
from iddm.errors import UserError
from iddm.training.finite import Diverged, check_before_saving
from iddm.training.run_dir import Run
from tests.conftest import TINY


class Spoiled:
    """Environments whose numbers are changed: `part` of environment 3 becomes `value` at a step, counted over the run."""

    def __init__(self, env: vector.VectorEnv, part: str, value: float, at: int) -> None:
        self._env, self._part, self._value, self._at, self._time = env, part, value, at, 0
        self.start = env.start

    def _spoil(self, array: np.ndarray) -> np.ndarray:
        array = array.copy()
        array[(3, 7) if array.ndim == 2 else 3] = self._value
        return array

    def reset(self) -> np.ndarray:
        obs = self._env.reset()
        return self._spoil(obs) if self._part == "reset" else obs

    def restart(self, which: np.ndarray) -> np.ndarray:
        return self._env.restart(which)

    def step(self, action: np.ndarray) -> vector.Step:
        self._time += 1
        step = self._env.step(action)
        if self._time != self._at or self._part == "reset":
            return step
        return step._replace(**{self._part: self._spoil(getattr(step, self._part))})

    def close(self) -> None:
        self._env.close()


@pytest.mark.parametrize("backend", ["auto", "gymnasium"])
@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("obs", np.inf, "observation column 7 is inf at step 5 of environment 3"),
        ("obs", np.nan, "observation column 7 is nan at step 5 of environment 3"),
        ("obs", -1e30, r"observation column 7 is -1e\+30 at step 5 of environment 3"),
        ("reward", np.nan, "the reward is nan at step 5 of environment 3"),
        ("reward", np.inf, "the reward is inf at step 5 of environment 3"),
        ("reset", np.nan, "observation column 7 is nan at step 0 of environment 3"),
    ],
)
def test_a_bad_number_is_told_with_its_place(part: str, value: float, words: str, backend: Any) -> None:
    spec = resolve("Hopper-v5")
    env = vector.make_vector(spec, 4, 0, backend)
    with pytest.raises(UserError, match=f"Hopper-v5: {words}: an environment must return numbers between"):
        Collector(Spoiled(env, part, value, 5), shape_of(spec).action_space, env_id=spec.id).collect(
            lambda obs, t: np.zeros((4, 3), np.float32), 8
        )
    env.close()


def test_an_infinite_observation_leaves_the_last_good_checkpoint_good(tmp_path: Path, monkeypatch) -> None:
    made = vector.make_vector
    settings: dict[str, Any] = {**TINY, "checkpoint_every": 1}
    for at, words in [(2 * 64 + 5, "the last good checkpoint stays"), (5, "there is no checkpoint yet")]:
        monkeypatch.setattr("iddm.training.environments.make_vector", lambda *a, at=at: Spoiled(made(*a), "obs", np.inf, at))
        with pytest.raises(UserError, match=f"Hopper-v5: observation column 7 is inf .*; {words}"):
            iddm.train("Hopper-v5", method="ppo", out=tmp_path / str(at), **settings)
        assert not Run.open(tmp_path / str(at)).finished
    checkpoint = Run.open(tmp_path / "133").checkpoints.load()
    assert checkpoint.iteration == 2
    assert all(np.isfinite(array).all() for array in checkpoint.arrays.values())
    assert Run.open(tmp_path / "5").checkpoints.load() is None
    monkeypatch.undo()
    assert iddm.resume(tmp_path / "133").finished


def test_nothing_of_the_learners_state_is_saved_where_it_is_not_finite(tmp_path: Path) -> None:
    good = {".policy.net.weights[0]": np.ones(3, np.float32), ".opt_state[0].count": np.array(3)}
    check_before_saving(good, Run(tmp_path))
    with pytest.raises(Diverged, match=r"normaliser.var is not finite, so it was not saved; there is no checkpoint yet"):
        check_before_saving(good | {".normaliser.var": np.array([1.0, np.inf])}, Run(tmp_path))
