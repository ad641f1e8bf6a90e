"""`iddm eval`."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from iddm.cli.console import OUT
from iddm.cli.flags import parse_flags
from iddm.cli.given_env import given_kwargs
from iddm.cli.policies import find_policy


@dataclasses.dataclass(frozen=True)
class _Eval:
    policy: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="POLICY")]
    """Directory of a run, a policy file, the name of a task with a bundled expert, or 'random' with --env."""
    episodes: int = 50
    """Episodes to run."""
    env: str | None = None
    """Environment, if not the policy's own, or if that is module:function: a file cannot name code."""
    env_kwargs: str | None = None
    """Options of the environment, as a JSON object, if not the policy's own."""
    seed: int | None = None
    """Seed of the first episode."""
    max_episode_steps: int | None = None
    """Time limit of an episode, where the environment has none of its own."""
    demos: Path | None = None
    """Demonstrations to measure closeness with, for a policy that is not in its run's directory."""
    stochastic: bool = False
    """Sample actions instead of taking the most likely."""
    json: bool = False
    """Print one JSON object."""


def eval_command(args: list[str]) -> None:
    """Evaluate a policy by the environment's own return, and by its closeness to held-out demonstrations."""
    from iddm.evaluation import EVALUATION_SEED, evaluate

    given = parse_flags(_Eval, args, "iddm eval")
    policy = "random" if given.policy == "random" else find_policy(given.policy)
    seed = EVALUATION_SEED if given.seed is None else given.seed
    result = evaluate(
        policy,
        given.env,
        given.episodes,
        seed,
        given.stochastic,
        given.max_episode_steps,
        given_kwargs(given.env_kwargs),
        _yardstick(given),
    )
    returns = _demonstrated_returns(given.policy)
    if given.json:
        print(json.dumps(result.to_json() | ({"demonstrations": returns} if returns else {})))
        return
    OUT.print(f"{result.env}: {result.mean:.1f} ± {result.std:.1f} over {given.episodes} episodes", highlight=False)
    if result.closeness is not None:
        OUT.print(f"Closeness to held-out demonstrations: {result.closeness:.2f} (theirs to each other: 1)", highlight=False)
    if returns:
        OUT.print(f"Its demonstrations: {np.mean(returns):.1f} ± {np.std(returns):.1f} over {len(returns)}", highlight=False)


def _yardstick(given: _Eval) -> Any:
    """Of the demonstrations that are given, or of those that a run learned from."""
    from iddm.closeness import Yardstick
    from iddm.demos import load_demos
    from iddm.training.run_dir import Run
    from iddm.training.setup import yardstick_of

    if given.demos is not None:
        return Yardstick.of(load_demos(given.demos))
    if not (Path(given.policy) / "demos.json").is_file():
        return None
    return yardstick_of(Run(Path(given.policy)), given.env, given_kwargs(given.env_kwargs))


def _demonstrated_returns(policy: str) -> list[float] | None:
    """The returns of the demonstrations that a run imitated, where `policy` is a run that knows them."""
    from iddm.training.run_dir import Run

    if not (Path(policy) / "demos.json").is_file():
        return None
    demos = Run(Path(policy)).demos
    return None if demos is None or demos.returns is None else list(demos.returns)
