"""What tests share. Demonstrations are made here with a hand-written expert, so that no test needs a long training."""

import os
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Most of the tests' time is spent compiling programs that run for a moment: compile them fast, not well, and keep them, for the
# processes that tests start too. XLA ends a process at a flag that it does not know, so these are for versions that were tried.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
if version("jaxlib").startswith("0.10."):
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1")

import gymnasium as gym
import jax
import numpy as np
import pytest

from iddm import methods
from iddm.demos import Demos, save_demos
from iddm.envs.spec import resolve
from iddm.evaluation import run_episodes
from iddm.rewards import TERMS

SHARED = Path(__file__).parents[2] / "shared" / "demos"


@pytest.fixture(scope="session")
def shared_demos() -> Callable[[str], Path]:
    """Path of a file of others' demonstrations; the test is skipped where they are absent."""

    def find(name: str) -> Path:
        if not (SHARED / name).is_file():
            pytest.skip(f"../shared/demos/{name} is not here")
        return SHARED / name

    return find


@pytest.fixture(scope="module")
def well_compiled() -> Iterator[None]:
    """For tests that compute for longer than they compile: what users run."""
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture
def clean() -> Iterator[None]:
    """Without the methods and environments that a test registers."""
    registers = (methods.TUNED, methods.PAPER, TERMS, gym.registry)
    before = [dict(known) for known in registers]
    yield
    for known, old in zip(registers, before, strict=True):
        known.clear()
        known.update(old)


def balance_pole(obs: np.ndarray) -> np.ndarray:
    """A linear controller that keeps CartPole up."""
    return (obs @ np.array([0.1, 0.5, 3.0, 1.0]) > 0).astype(int)


@pytest.fixture(scope="session")
def cartpole_demos() -> Demos:
    episodes = run_episodes(balance_pole, resolve("CartPole"), 5, seed=0)
    return Demos(
        observations=tuple(e.observations for e in episodes),
        actions=tuple(e.actions for e in episodes),
        episode_returns=np.array([e.rewards.sum() for e in episodes]),
    )


@pytest.fixture(scope="session")
def hopper_demos() -> Demos:
    """A few short, bad episodes: enough to run on, not to learn from."""
    episodes = run_episodes(lambda obs: np.tanh(obs[:, 5:8]).astype(np.float32), resolve("Hopper-v5"), 4, seed=0)
    return Demos(observations=tuple(e.observations for e in episodes), actions=tuple(e.actions for e in episodes))


@pytest.fixture
def hopper_file(hopper_demos: Demos, tmp_path: Path) -> Path:
    save_demos(hopper_demos, tmp_path / "hopper.npz")
    return tmp_path / "hopper.npz"


TINY: dict[str, Any] = {
    "steps": 1024,
    "num_envs": 4,
    "rollout_length": 64,
    "hidden": (16, 16),
    "checkpoint_every": 2,
    "evaluations": 0,
}
"""Settings of a run of four small iterations."""
SMALL_DISCRIMINATOR = {"adversarial": {"hidden": (16, 16), "batch_size": 64}}
TINY_GAIFO: dict[str, Any] = TINY | SMALL_DISCRIMINATOR | {"learner": "ppo"}
TINY_IDDM: dict[str, Any] = TINY_GAIFO | {"mi": {"hidden": (16, 16), "batch_size": 64}}
