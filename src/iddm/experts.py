"""The settings of each task's expert, as data: `iddm expert TASK` starts from them, and flags still change them.

What is not named is PPO's default (`iddm train --method ppo --help`).
"""

from typing import Any

EXPERT_SETTINGS: dict[str, dict[str, Any]] = {
    "CartPole": {"steps": 100_000},
    "InvertedPendulum": {"steps": 200_000},
    "InvertedDoublePendulum": {"steps": 1_000_000, "hidden": (64, 64)},
    "Hopper": {
        "steps": 4_000_000,
        "hidden": (256, 256),
        "num_envs": 32,
        "log_std_init": -0.5,
        "ppo": {"batch_size": 1024, "discount": 0.995},
    },
    "HalfCheetah": {"steps": 1_000_000, "hidden": (64, 64)},
    "Ant": {"steps": 9_000_000, "hidden": (128, 128), "num_envs": 32, "ppo": {"batch_size": 1024, "discount": 0.995}},
    # Not bundled: a try (docs/results.md).
    "Humanoid": {"steps": 2_000_000, "hidden": (128, 128), "num_envs": 32, "ppo": {"batch_size": 1024, "epochs": 5}},
}
