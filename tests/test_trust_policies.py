"""A policy file is sound, or one sentence says what is wrong with it when it is read; it never fails later, in `predict`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from iddm.errors import UserError
from iddm.policy import load_policy

ABOUT: dict[str, Any] = {
    "format": "iddm-policy-1",
    "clip": 10.0,
    "action_space": {"size": 2, "discrete": False, "low": ["-1.0", "-inf"], "high": ["1.0", "inf"], "start": 0, "shape": [2]},
    "config": {"env": "Pendulum-v1", "max_episode_steps": 100, "env_kwargs": {}},
}
TENSORS = {
    "obs.mean": np.zeros(3, np.float32),
    "obs.std": np.ones(3, np.float32),
    "layer0.weight": np.ones((3, 4), np.float32),
    "layer0.bias": np.zeros(4, np.float32),
    "layer1.weight": np.ones((4, 2), np.float32),
    "layer1.bias": np.zeros(2, np.float32),
    "log_std": np.zeros(2, np.float32),
}


def write(path: Path, tensors: dict[str, Any] = {}, about: dict[str, Any] = {}, space: dict[str, Any] = {}) -> Path:  # noqa: B006
    kept = {name: array for name, array in {**TENSORS, **tensors}.items() if array is not None}
    words = {**ABOUT, **about, "action_space": {**ABOUT["action_space"], **space}} if space else {**ABOUT, **about}
    path.write_bytes(save(kept, {"iddm": json.dumps(words)}))
    return path


def test_a_sound_policy_acts(tmp_path: Path) -> None:
    policy = load_policy(write(tmp_path / "p"))
    assert policy.predict(np.zeros((5, 3)), np.random.default_rng(0)).shape == (5, 2)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no environment": ({"about": {"config": {}}}, "which environment it was learned in"),
    "an environment that is no name": ({"about": {"config": {"env": 3}}}, "which environment it was learned in"),
    "no settings": ({"about": {"config": None}}, "which environment it was learned in"),
    "no config": ({"about": {"config": []}}, "which environment it was learned in"),
    "a time limit of text": ({"about": {"config": {"env": "x", "max_episode_steps": "9"}}}, "time limit"),
    "options that are a list": ({"about": {"config": {"env": "x", "env_kwargs": [1]}}}, "options of its environment"),
    "a clip of text": ({"about": {"clip": "many"}}, "ValueError"),
    "a clip without end": ({"about": {"clip": 1e999}}, "clip"),
    "another format": ({"about": {"format": "2"}}, "this version reads"),
    "no action space": ({"about": {"action_space": None}}, "TypeError"),
    "layers that do not fit": ({"tensors": {"layer1.weight": zeros(5, 2)}}, "layers do not fit"),
    "a first layer that does not fit": ({"tensors": {"layer0.weight": zeros(2, 4)}}, "layers do not fit"),
    "a bias that does not fit": ({"tensors": {"layer0.bias": zeros(3)}}, "layers do not fit"),
    "a flat layer": ({"tensors": {"layer0.weight": zeros(12)}}, "layers do not fit"),
    "a layer left out": ({"tensors": {"layer0.weight": None, "layer0.bias": None}}, "'layer0.weight' is missing"),
    "no layer": ({"tensors": dict.fromkeys(list(TENSORS)[2:6])}, "no network"),
    "no mean": ({"tensors": {"obs.mean": None}}, "'obs.mean' is missing"),
    "a mean of numbers for a row": ({"tensors": {"obs.mean": zeros(3, 1)}}, "normalisation"),
    "deviations of zero": ({"tensors": {"obs.std": zeros(3)}}, "normalisation"),
    "NaN": ({"tensors": {"layer0.bias": np.full(4, np.nan, np.float32)}}, "not finite"),
    "integers": ({"tensors": {"layer0.bias": np.zeros(4, np.int64)}}, "not float32"),
    "too many deviations": ({"tensors": {"log_std": zeros(3)}}, "deviations do not fit"),
    "too many actions": ({"space": {"size": 3}}, "action space is not one"),
    "an action space of other sizes": ({"space": {"size": 1, "low": ["0"], "high": ["1"], "shape": [1]}}, "last layer"),
    "limits the wrong way round": ({"space": {"low": ["1", "1"], "high": ["0", "0"]}}, "action space is not one"),
    "limits of NaN": ({"space": {"low": ["nan", "0"]}}, "action space is not one"),
    "a size without end": ({"space": {"size": 1e999}}, "OverflowError"),
    "choices without end": ({"space": {"size": 10**9, "discrete": True}}, "action space is not one"),
    "a start without end": ({"space": {"start": 10**40, "discrete": True}}, "action space is not one"),
    "a shape without end": ({"space": {"shape": [2, 0]}}, "action space is not one"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_policy_that_could_not_act_is_refused_when_it_is_read(name: str, tmp_path: Path) -> None:
    changes, words = WRONG[name]
    with pytest.raises(UserError, match=words) as caught:
        load_policy(write(tmp_path / "p", **changes))
    assert str(caught.value).startswith(f"{tmp_path / 'p'}: ")
    assert "\n" not in str(caught.value)


def test_nesting_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(save(TENSORS, {"iddm": "[" * 100_000}))
    with pytest.raises(UserError, match="not a policy file"):
        load_policy(tmp_path / "p")
