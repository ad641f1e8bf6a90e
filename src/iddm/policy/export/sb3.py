"""Stable-Baselines3: a PPO model, for `PPO.load`. Its value function is untrained: ours stays in the run's checkpoint."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from iddm.errors import UserError
from iddm.policy import Policy
from iddm.utils.extras import need
from iddm.utils.files import write_whole


def export_sb3(policy: Policy, out: Path) -> None:
    """The action's scale goes into the last layer, the normaliser into a features extractor that the file carries with it."""
    space = policy.action_space
    if policy.squashed:
        raise UserError("Policies of the learner sac are exported to onnx or npz, not as a PPO model of Stable-Baselines3.")
    need("stable_baselines3", "sb3", "Stable-Baselines3 models")
    import cloudpickle  # pyright: ignore[reportMissingImports]
    import torch  # pyright: ignore[reportMissingImports]
    from stable_baselines3 import PPO  # pyright: ignore[reportMissingImports]

    from iddm.policy.export import sb3_extractor

    if space.discrete and space.start != 0:
        raise UserError(f"Stable-Baselines3 knows only choices that start at 0, and these start at {space.start}.")
    if not space.discrete and not np.isfinite([space.low, space.high]).all():
        raise UserError("Stable-Baselines3 knows only actions with limits, and some of these have none; export to onnx or npz.")
    hidden = [weight.shape[1] for weight in policy.weights[:-1]]
    about = {
        "features_extractor_class": sb3_extractor.NormalisedObservation,
        "features_extractor_kwargs": {"clip": float(policy.clip)},
        "net_arch": {"pi": hidden, "vf": hidden},
        "activation_fn": torch.nn.Tanh,
        "ortho_init": False,
    }
    model = PPO("MlpPolicy", _spaces(policy), policy_kwargs=about, device="cpu")
    centre, scale = (np.zeros(space.size), np.ones(space.size)) if space.discrete else space.centre_and_scale
    weights, biases = list(policy.weights), list(policy.biases)
    weights[-1], biases[-1] = weights[-1] * scale, biases[-1] * scale + centre
    names = [f"mlp_extractor.policy_net.{2 * i}" for i in range(len(hidden))] + ["action_net"]
    state = model.policy.state_dict()
    new = {"mean": policy.mean, "std": policy.std}
    for name in state:
        if name.rsplit(".", 1)[-1] in new and "features_extractor" in name:
            state[name] = torch.as_tensor(new[name.rsplit(".", 1)[-1]], dtype=torch.float32)
    for name, weight, bias in zip(names, weights, biases, strict=True):
        state[f"{name}.weight"] = torch.as_tensor(np.ascontiguousarray(weight.T), dtype=torch.float32)
        state[f"{name}.bias"] = torch.as_tensor(bias, dtype=torch.float32)
    if policy.log_std is not None:
        state["log_std"] = torch.as_tensor(policy.log_std + np.log(scale), dtype=torch.float32)
    model.policy.load_state_dict(state)
    cloudpickle.register_pickle_by_value(sb3_extractor)
    try:
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "model.zip")
            write_whole(out, (Path(folder) / "model.zip").read_bytes())
    finally:
        cloudpickle.unregister_pickle_by_value(sb3_extractor)


def _spaces(policy: Policy) -> Any:
    """An environment that has the spaces and nothing else."""
    import gymnasium as gym

    space = policy.action_space

    class Spaces(gym.Env):
        observation_space = gym.spaces.Box(-np.inf, np.inf, (policy.obs_size,), np.float32)
        action_space = (
            gym.spaces.Discrete(space.size)
            if space.discrete
            else gym.spaces.Box(
                np.array(space.low, np.float32).reshape(space.shape), np.array(space.high, np.float32).reshape(space.shape)
            )
        )

    return Spaces()
