"""The policy that a user keeps: one safetensors file, and NumPy to act. This module never imports JAX."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from iddm.envs.spaces import ActionSpace
from iddm.errors import UserError
from iddm.utils.files import write_whole
from iddm.utils.tensors import Damaged, read_tensors

FORMAT, SQUASHED_FORMAT = "iddm-policy-1", "iddm-policy-2"
ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}
SQUASHED_LOG_STD = (-5.0, 2.0)
"""Limits of a squashed Gaussian's log deviation."""


@dataclass(frozen=True, repr=False)
class Policy:
    """A learned policy. `predict` takes observations as the environment gives them and returns its actions."""

    mean: np.ndarray
    std: np.ndarray
    clip: float
    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    log_std: np.ndarray | None
    action_space: ActionSpace
    config: dict[str, Any]
    """The settings of the run that learned it."""
    uniform: bool = False
    """Act uniformly at random, whatever the observation: the control `random`."""
    activation: str = "tanh"
    """Between the layers: tanh or relu."""
    squashed: bool = False
    """The last layer gives mean and log deviation of a Gaussian whose tanh is the action; else `log_std` is the deviation's."""

    def __repr__(self) -> str:
        layers = "uniform" if self.uniform else " × ".join(str(bias.size) for bias in self.biases[:-1]) or "linear"
        method = self.config.get("method", "policy")
        return f"Policy({method} on {self.config.get('env')}: {self.obs_size} → {self.action_space.size}, {layers})"

    @property
    def obs_size(self) -> int:
        return self.mean.shape[0]

    def network(self, obs: np.ndarray) -> np.ndarray:
        """Mean of a Gaussian (of a squashed one, also what its deviation is made of), or logits of a categorical policy."""
        x = np.clip((np.asarray(obs, np.float32) - self.mean) / self.std, -self.clip, self.clip)
        *hidden, last = zip(self.weights, self.biases, strict=True)
        for weight, bias in hidden:
            x = ACTIVATIONS[self.activation](x @ weight + bias)
        return x @ last[0] + last[1]

    def mode_layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Weights and biases of the layers that the most likely action needs."""
        layers = list(zip(self.weights, self.biases, strict=True))
        if self.squashed:
            weight, bias = layers[-1]
            layers[-1] = weight[:, : self.action_space.size], bias[: self.action_space.size]
        return layers

    def predict(self, obs: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
        """Actions for one observation [obs] or many [n, obs]: the most likely, or samples when `rng` is given."""
        obs = np.asarray(obs)
        if obs.shape[-1:] != (self.obs_size,):
            raise UserError(f"The policy takes observations of {self.obs_size} numbers, and got shape {obs.shape}.")
        if self.uniform:
            chosen = self.action_space.uniform(rng or np.random.default_rng(), obs.shape[:-1])
            return self.action_space.to_env(chosen)
        out = self.network(obs)
        if self.action_space.discrete:
            noise = rng.gumbel(size=out.shape) if rng else 0.0
            return self.action_space.to_env(np.argmax(out + noise, axis=-1))
        if self.squashed:
            mean, raw = np.split(out, 2, axis=-1)
            low, high = SQUASHED_LOG_STD
            noise = np.exp(low + 0.5 * (high - low) * (np.tanh(raw) + 1)) * rng.standard_normal(mean.shape) if rng else 0.0
            return self.action_space.to_env(np.tanh(mean + noise))
        if rng is not None and self.log_std is not None:
            out = out + np.exp(self.log_std) * rng.standard_normal(out.shape)
        return self.action_space.to_env(out)

    def probabilities(self, obs: np.ndarray) -> np.ndarray:
        """π(a|s) of a categorical policy, in float64: float32 would round rare choices to zero."""
        if not self.action_space.discrete:
            raise UserError("A continuous policy has no probabilities of single actions.")
        logits = self.network(obs).astype(np.float64)
        odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return odds / odds.sum(axis=-1, keepdims=True)

    def save(self, path: str | Path) -> None:
        tensors = {"obs.mean": self.mean, "obs.std": self.std}
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            tensors |= {f"layer{i}.weight": weight, f"layer{i}.bias": bias}
        if self.log_std is not None:
            tensors["log_std"] = self.log_std
        about = {
            "format": FORMAT,
            "clip": self.clip,
            "action_space": self.action_space.to_json(),
            "config": self.config,
        } | ({"uniform": True} if self.uniform else {})
        if self.squashed:
            about |= {"format": SQUASHED_FORMAT, "activation": self.activation}
        arrays = {name: np.ascontiguousarray(x, np.float32) for name, x in tensors.items()}
        write_whole(Path(path), save(arrays, {"iddm": json.dumps(about, sort_keys=True)}))


def uniform_policy(obs_size: int, action_space: ActionSpace, config: dict[str, Any]) -> Policy:
    """Uniformly random actions as a policy that can be saved: its network says nothing (all zero) and is not asked."""
    zero = np.zeros((obs_size, action_space.size), np.float32), np.zeros(action_space.size, np.float32)
    log_std = None if action_space.discrete else zero[1]
    unit = np.zeros(obs_size, np.float32), np.ones(obs_size, np.float32)
    return Policy(*unit, 10.0, (zero[0],), (zero[1],), log_std, action_space, config, uniform=True)


def load_policy(path: str | Path) -> Policy:
    """Read a policy file, or the final policy of a run directory."""
    path = Path(path)
    if path.is_dir():
        path = path / "policy.safetensors"
    if not path.is_file():
        raise UserError(f"{path}: there is no policy here; give a policy file or the directory of a finished run.")
    try:
        tensors, words = read_tensors(path)
        about = json.loads(words["iddm"])
        if about["format"] not in (FORMAT, SQUASHED_FORMAT):
            raise UserError(f"{path}: the policy's format is {about['format']!r}, and this version reads {FORMAT!r}.")
        policy = _from_parts(tensors, about)
    except (Damaged, KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise UserError(f"{path}: not a policy file of iddm ({_reason(error)}).") from error
    wrong = _what_is_wrong(policy)
    if wrong is not None:
        raise UserError(f"{path}: not a policy file of iddm: {wrong}.")
    return policy


def _from_parts(tensors: dict[str, np.ndarray], about: dict[str, Any]) -> Policy:
    num_layers = sum(name.endswith(".weight") for name in tensors)
    return Policy(
        tensors["obs.mean"],
        tensors["obs.std"],
        float(about["clip"]),
        tuple(tensors[f"layer{i}.weight"] for i in range(num_layers)),
        tuple(tensors[f"layer{i}.bias"] for i in range(num_layers)),
        tensors.get("log_std"),
        ActionSpace.from_json(about["action_space"]),
        about["config"],
        bool(about.get("uniform", False)),
        activation=str(about.get("activation", "tanh")),
        squashed=about["format"] == SQUASHED_FORMAT,
    )


def _what_is_wrong(policy: Policy) -> str | None:
    """The schema of a policy: what every file of one must hold, or the first thing that it does not."""
    space, config = policy.action_space, policy.config
    arrays = [policy.mean, policy.std, *policy.weights, *policy.biases, *([] if policy.log_std is None else [policy.log_std])]
    widths = [policy.mean.size, *(bias.size for bias in policy.biases)]
    steps = config.get("max_episode_steps") if isinstance(config, dict) else None
    checks = {
        "it has no network": bool(policy.weights),
        "its numbers are not float32": all(array.dtype == np.float32 for array in arrays),
        "its numbers are not finite": all(np.isfinite(array).all() for array in arrays if array.dtype == np.float32),
        "its normalisation is not a mean and a positive deviation for each column": (
            policy.mean.ndim == 1
            and policy.mean.size > 0
            and policy.std.shape == policy.mean.shape
            and bool((policy.std > 0).all())
        ),
        "its clip is not a positive number": 0 < policy.clip < np.inf,
        "its layers do not fit each other": (
            all(bias.ndim == 1 for bias in policy.biases)
            and [weight.shape for weight in policy.weights] == list(pairwise(widths))
        ),
        "its action space is not one": space.sound,
        "its last layer does not fit its action space": widths[-1] == (2 if policy.squashed else 1) * space.size,
        "its activation is unknown": policy.activation in ACTIVATIONS,
        "its squashed actions have no limits": not policy.squashed or not space.discrete,
        "its deviations do not fit its action space": policy.log_std is None or policy.log_std.shape == (space.size,),
        "it does not say which environment it was learned in": isinstance(config, dict) and isinstance(config.get("env"), str),
        "its time limit is not a number of steps": steps is None or (type(steps) is int and steps > 0),
        "the options of its environment are not a dictionary": (
            isinstance(config, dict) and isinstance(config.get("env_kwargs") or {}, dict)
        ),
    }
    return next((wrong for wrong, good in checks.items() if not good), None)


def _reason(error: Exception) -> str:
    if isinstance(error, Damaged):
        return str(error)
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
