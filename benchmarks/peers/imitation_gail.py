"""Measures the GAIL of `imitation`, which learns from demonstrations with actions.

Its own means of normalisation are used: a running one inside the policy and inside the reward network.
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

from common import BATCH_SIZE, HIDDEN, LEARNING_RATE, make_envs, make_ppo, measure, parser, pin

NUM_DISCRIMINATOR_UPDATES = 8


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--demos", required=True, help="npz with observations, actions, episode_lengths")
    run(options.parse_args())


def run(options: argparse.Namespace) -> None:
    pin(options)
    from imitation.algorithms.adversarial.gail import GAIL
    from imitation.policies.base import NormalizeFeaturesExtractor
    from imitation.rewards.reward_nets import BasicRewardNet
    from imitation.util import logger
    from imitation.util.networks import RunningNorm
    from torch import nn

    envs = make_envs(options)
    ppo = make_ppo(
        envs,
        options,
        features_extractor_class=NormalizeFeaturesExtractor,
        features_extractor_kwargs={"normalize_class": RunningNorm},
    )
    reward_net = BasicRewardNet(
        envs.observation_space,
        envs.action_space,
        hid_sizes=HIDDEN,
        activation=nn.Tanh,
        normalize_input_layer=RunningNorm,
    )
    with tempfile.TemporaryDirectory() as log_dir:
        gail = GAIL(
            demonstrations=load_transitions(options.demos, envs),
            demo_batch_size=BATCH_SIZE,
            venv=envs,
            gen_algo=ppo,
            reward_net=reward_net,
            n_disc_updates_per_round=NUM_DISCRIMINATOR_UPDATES,
            disc_opt_kwargs={"lr": LEARNING_RATE},
            custom_logger=logger.configure(log_dir, format_strs=[]),  # writes nothing: not what is measured
            allow_variable_horizon=True,  # Hopper and Ant end early
        )
        measure(
            "imitation_gail",
            train=gail.train,
            mean_action=lambda obs: ppo.predict(obs, deterministic=True)[0],
            options=options,
        )


def load_transitions(path: str, envs: Any) -> Any:
    """Every (s, a, s') of an npz with T or T+1 rows an episode; where s' is missing, the row is left out."""
    import numpy as np
    from imitation.data.types import Transitions

    with np.load(path, allow_pickle=False) as file:
        missing = {"observations", "actions", "episode_lengths"} - set(file.files)
        if missing:
            raise SystemExit(f"{path}: has no {', '.join(sorted(missing))}; GAIL needs states and actions")
        observations, actions = file["observations"], file["actions"]
        lengths = file["episode_lengths"].astype(int)
        rows = file["episode_rows"].astype(int) if "episode_rows" in file.files else lengths + 1
        terminated = file["terminated"] if "terminated" in file.files else np.zeros(len(lengths), bool)
    if observations.shape[1:] != envs.observation_space.shape or rows.sum() != len(observations):
        wanted = (rows.sum(), *envs.observation_space.shape)
        raise SystemExit(f"{path}: observations are {observations.shape}, expected {wanted}")
    if actions.shape != (lengths.sum(), *envs.action_space.shape):
        wanted = (lengths.sum(), *envs.action_space.shape)
        raise SystemExit(f"{path}: actions are {actions.shape}, expected {wanted}")

    # The agent's actions reach the discriminator clipped: unclipped ones would tell the expert by themselves.
    actions = np.clip(actions, envs.action_space.low, envs.action_space.high)
    obs, acts, next_obs, dones = [], [], [], []
    first_row = np.cumsum(rows) - rows
    first_action = np.cumsum(lengths) - lengths
    for episode, row in enumerate(first_row):
        num = min(lengths[episode], rows[episode] - 1)
        obs.append(observations[row : row + num])
        next_obs.append(observations[row + 1 : row + 1 + num])
        acts.append(actions[first_action[episode] : first_action[episode] + num])
        done = np.zeros(num, bool)
        done[-1:] = terminated[episode]
        dones.append(done)
    return Transitions(
        obs=np.concatenate(obs).astype(np.float32),
        acts=np.concatenate(acts).astype(np.float32),
        infos=np.array([{}] * sum(map(len, obs))),
        next_obs=np.concatenate(next_obs).astype(np.float32),
        dones=np.concatenate(dones),
    )


if __name__ == "__main__":
    main()
