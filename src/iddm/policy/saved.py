"""The policy that a user keeps: one safetensors file, and NumPy to act. This module never imports JAX."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from iddm.envs.spaces import ActionSpace
from iddm.errors import UserError
from iddm.utils.files import write_whole

FORMAT = "iddm-policy-1"


@dataclass(frozen=True)
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

    @property
    def obs_size(self) -> int:
        return self.mean.shape[0]

    def network(self, obs: np.ndarray) -> np.ndarray:
        """Mean of a Gaussian, or logits of a categorical policy."""
        x = np.clip((np.asarray(obs, np.float32) - self.mean) / self.std, -self.clip, self.clip)
        *hidden, last = zip(self.weights, self.biases, strict=True)
        for weight, bias in hidden:
            x = np.tanh(x @ weight + bias)
        return x @ last[0] + last[1]

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
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {})["iddm"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if about["format"] != FORMAT:
            raise UserError(f"{path}: the policy's format is {about['format']!r}, and this version reads {FORMAT!r}.")
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
        )
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise UserError(f"{path}: not a policy file of iddm ({type(error).__name__}: {error}).") from error
