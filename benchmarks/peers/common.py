"""What the peers share: the work that `make bench` measures, the command line, the clock.

Runs in the peers' environment (see `environment.py`), so it imports nothing of `iddm`; torch and numpy only
after the threads are pinned.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

NUM_ENVS = 8
STEPS_PER_ITERATION = 2048
HIDDEN = (300, 400)
BATCH_SIZE = 512
NUM_EPOCHS = 10
LEARNING_RATE = 3e-4
EVALUATION_EPISODES = 5


def parser(description: str) -> argparse.ArgumentParser:
    """The options that every peer takes."""
    options = argparse.ArgumentParser(description=description, allow_abbrev=False)
    options.add_argument("--env", default="HalfCheetah-v4", help="an id of Gymnasium 0.29")
    options.add_argument("--steps", type=int, default=40_960, help="timed, rounded up to whole iterations")
    options.add_argument("--warmup-steps", type=int, default=4096, help="trained before the clock starts")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--cores", help="cores to stay on, for example 0,1 (default: any)")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--log-std-init", type=float, default=0.0)
    options.add_argument("--evaluate-every", type=int, help="steps between evaluations of the mean action")
    options.add_argument("--stop-at", type=float, help="end when an evaluation reaches this mean return")
    return options


def pin(options: argparse.Namespace) -> None:
    """Hold the process to its threads and cores; call before anything imports numpy or torch."""
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = str(options.threads)
    if options.cores:
        os.sched_setaffinity(0, {int(core) for core in options.cores.split(",")})
    import torch

    torch.set_num_threads(options.threads)


def make_envs(options: argparse.Namespace) -> Any:
    """Eight environments in this process: SubprocVecEnv is slower here, its pipes cost more than a step."""
    import gymnasium
    from stable_baselines3.common.vec_env import DummyVecEnv

    envs = DummyVecEnv([lambda: gymnasium.make(options.env)] * NUM_ENVS)
    envs.seed(options.seed)
    return envs


def make_ppo(envs: Any, options: argparse.Namespace, **policy_kwargs: Any) -> Any:
    """Stable-Baselines3's PPO with the networks, batches and epochs of the measured work."""
    from stable_baselines3 import PPO
    from torch import nn

    return PPO(
        "MlpPolicy",
        envs,
        n_steps=STEPS_PER_ITERATION // NUM_ENVS,
        batch_size=BATCH_SIZE,
        n_epochs=NUM_EPOCHS,
        learning_rate=LEARNING_RATE,
        policy_kwargs={
            "net_arch": {"pi": list(HIDDEN), "vf": list(HIDDEN)},
            "activation_fn": nn.Tanh,
            "log_std_init": options.log_std_init,
            **policy_kwargs,
        },
        seed=options.seed,
        device="cpu",
    )


def measure(
    name: str,
    train: Callable[[int], object],
    mean_action: Callable[[Any], Any],
    options: argparse.Namespace,
) -> None:
    """Train on the clock and print the measurement as one line of JSON.

    `train(steps)` continues for that many steps; `mean_action(obs)` acts as trained so far. Evaluation is off
    the clock. The curve counts from the very first step: the warm-up is in its steps and seconds.
    """
    started = time.perf_counter()
    warmup_steps = whole_iterations(options.warmup_steps)
    if warmup_steps:
        train(warmup_steps)
    warmup_seconds = time.perf_counter() - started

    budget = whole_iterations(max(options.steps, 1))
    evaluate_every = whole_iterations(options.evaluate_every or options.steps)
    iteration_seconds: list[float] = []
    curve: list[dict[str, float]] = []
    while len(iteration_seconds) * STEPS_PER_ITERATION < budget:
        started = time.perf_counter()
        train(STEPS_PER_ITERATION)
        iteration_seconds.append(time.perf_counter() - started)
        steps, seconds = len(iteration_seconds) * STEPS_PER_ITERATION, sum(iteration_seconds)
        if options.evaluate_every and (steps % evaluate_every == 0 or steps == budget):
            mean_return = evaluate(mean_action, options)
            point = {"steps": warmup_steps + steps, "seconds": round(warmup_seconds + seconds, 3)}
            curve.append({**point, "mean_return": round(mean_return, 2)})
            print(curve[-1], file=sys.stderr, flush=True)
            if options.stop_at is not None and mean_return >= options.stop_at:
                break

    result: dict[str, Any] = {
        "name": name,
        "env": options.env,
        "threads": options.threads,
        "env_steps": steps,
        "seconds": round(seconds, 3),
        "steps_per_second": round(steps / seconds, 1),
        "iteration_seconds": [round(each, 4) for each in iteration_seconds],
        "versions": versions(),
    }
    print(json.dumps({**result, "curve": curve} if options.evaluate_every else result), flush=True)


def evaluate(mean_action: Callable[[Any], Any], options: argparse.Namespace) -> float:
    """Mean return of the environment's own reward over the same few fresh episodes each time."""
    import gymnasium

    env = gymnasium.make(options.env)
    total = 0.0
    for episode in range(EVALUATION_EPISODES):
        obs, _ = env.reset(seed=10_000 + episode)
        over = False
        while not over:
            obs, reward, terminated, truncated, _ = env.step(mean_action(obs))
            total += float(reward)
            over = terminated or truncated
    env.close()
    return total / EVALUATION_EPISODES


def whole_iterations(steps: int) -> int:
    """The least number of whole iterations' steps that is no smaller."""
    return -(-steps // STEPS_PER_ITERATION) * STEPS_PER_ITERATION


def versions() -> dict[str, str]:
    """Of everything that could change the measurement."""
    packages = ("imitation", "stable-baselines3", "torch", "gymnasium", "mujoco", "numpy")
    return {"python": sys.version.split()[0], **{package: version(package) for package in packages}}
