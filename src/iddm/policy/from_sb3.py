"""Actions of a saved Stable-Baselines3 model, from its weights and its settings' printed form; its pickled objects stay closed.

The weights are torch's own file, a pickle inside: torch's weights-only loader reads it, which builds tensors and nothing else.
"""

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from iddm.envs.spaces import ActionSpace
from iddm.errors import UserError
from iddm.utils.extras import need

Act = Callable[[np.ndarray], np.ndarray]
Layers = list[tuple[np.ndarray, np.ndarray]]
ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Tanh": np.tanh,
    "ReLU": lambda x: np.maximum(x, 0),
    "ELU": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "LeakyReLU": lambda x: np.where(x > 0, x, 0.01 * x),
}
MAX_BYTES = 1 << 30


def load_sb3(path: Path, space: ActionSpace, obs_size: int) -> Act:
    """The most likely action of an MlpPolicy of PPO, A2C, SAC, TD3, DDPG or DQN, for observations [n, columns]."""
    weights, activation = _read(path)
    clip = None
    if "features_extractor.mean" in weights:  # one that `iddm export` made
        clip = (weights["features_extractor.mean"], weights["features_extractor.std"])
    elif any("features_extractor" in name for name in weights):
        raise UserError(f"{path}: the model has a features extractor of its own; only plain MlpPolicy models are read.")
    layers, kind = _layers(weights, path)
    if layers[0][0].shape[1] != obs_size:
        raise UserError(f"{path}: the model takes {layers[0][0].shape[1]} columns, and the environment gives {obs_size}.")
    if (
        layers[-1][0].shape[0] != space.size
        or (kind in ("sac", "td3") and space.discrete)
        or (kind == "dqn" and not space.discrete)
    ):
        raise UserError(f"{path}: the model's actions do not fit the environment's.")
    nonlinear = ACTIVATIONS[activation or ("Tanh" if kind == "ppo" else "ReLU")]

    def act(obs: np.ndarray) -> np.ndarray:
        x = np.asarray(obs, np.float32)
        if clip is not None:
            x = np.clip((x - clip[0]) / clip[1], -10, 10)
        for weight, bias in layers[:-1]:
            x = nonlinear(x @ weight.T + bias)
        x = x @ layers[-1][0].T + layers[-1][1]
        if space.discrete:
            return np.argmax(x, axis=-1) + space.start
        low, high = np.array(space.low), np.array(space.high)
        x = low + 0.5 * (np.tanh(x) + 1) * (high - low) if kind in ("sac", "td3") else np.clip(x, low, high)
        return x.astype(np.float32).reshape(len(x), *space.shape)

    return act


def _read(path: Path) -> tuple[dict[str, np.ndarray], str | None]:
    """The policy's weights, and the activation's name where the settings give one."""
    torch = need("torch", "sb3", "Stable-Baselines3 models")
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(info.file_size for info in archive.infolist()) > MAX_BYTES:
                raise UserError(f"{path}: the model unpacks to more than {MAX_BYTES:,} bytes.")
            settings: Any = json.loads(archive.read("data"))
            with archive.open("policy.pth") as file:
                state = torch.load(file, map_location="cpu", weights_only=True)
        weights = {name: tensor.numpy() for name, tensor in state.items()}
        named = re.search(r"activation\.(\w+)'", str((settings.get("policy_kwargs") or {}).get("activation_fn", "")))
    except UserError:
        raise
    except Exception as error:  # zip, JSON and torch each raise their own
        reason = (str(error) or type(error).__name__).splitlines()[0][:100]
        raise UserError(f"{path}: not a model of Stable-Baselines3 ({reason}).") from error
    if named and named[1] not in ACTIVATIONS:
        raise UserError(f"{path}: the model's activation {named[1]} is not known here; there are {', '.join(ACTIVATIONS)}.")
    return weights, named[1] if named else None


def _layers(weights: dict[str, np.ndarray], path: Path) -> tuple[Layers, str]:
    kinds = {
        "ppo": (r"mlp_extractor\.policy_net\.(\d+)", "action_net"),
        "sac": (r"actor\.latent_pi\.(\d+)", "actor.mu"),
        "td3": (r"actor\.mu\.(\d+)", None),
        "dqn": (r"q_net\.q_net\.(\d+)", None),
    }
    for kind, (hidden, last) in kinds.items():
        if last is not None and f"{last}.weight" not in weights:
            continue
        numbers = sorted({int(m[1]) for name in weights if (m := re.fullmatch(hidden + r"\.weight", name))})
        prefix = hidden.replace(r"(\d+)", "{}").replace("\\", "")
        names = [prefix.format(i) for i in numbers] + ([last] if last else [])
        if names:
            return [(weights[f"{name}.weight"], weights[f"{name}.bias"]) for name in names], kind
    raise UserError(f"{path}: the model is not an MlpPolicy of PPO, A2C, SAC, TD3, DDPG or DQN.")
