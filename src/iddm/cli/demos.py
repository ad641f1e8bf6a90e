"""`iddm demos`."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from iddm.cli.console import OUT
from iddm.cli.flags import parse_flags
from iddm.cli.given_env import given_kwargs
from iddm.cli.policies import find_policy
from iddm.errors import UserError


@dataclasses.dataclass(frozen=True)
class _Demos:
    out: Path
    """File to write (.npz)."""
    policy: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="POLICY")] = None
    """Directory of a run, a policy file, or the name of a task with a bundled expert; with --sb3, the environment."""
    expert: str | None = None
    """Task whose bundled expert acts, instead of a policy: Hopper, or Hopper-v5."""
    sb3: Path | None = None
    """Record a saved Stable-Baselines3 model instead (its zip; only the weights are read)."""
    episodes: int = 50
    """Episodes to record."""
    with_actions: bool = False
    """Keep the actions too."""
    stochastic: bool = False
    """Sample actions instead of taking the most likely."""
    seed: int = 500_000
    """Seed of the first episode."""
    env: str | None = None
    """The policy's own environment again, where it is module:function: a file cannot name code."""
    env_kwargs: str | None = None
    """The options of that environment again, as a JSON object."""


def demos_command(args: list[str]) -> None:
    """Record demonstrations from a policy."""
    from iddm.bundled import bundled_expert
    from iddm.demos import save_demos
    from iddm.evaluation import record_demos, record_sb3

    given = parse_flags(_Demos, args, "iddm demos")
    if (given.policy is None) == (given.expert is None) or (given.sb3 and given.expert):
        raise UserError("Name one policy to record: a run's directory, a policy file, --expert TASK, or ENV with --sb3 MODEL.")
    if given.sb3 is not None and (given.env or given.env_kwargs):
        raise UserError("With --sb3 the environment is named in place of a policy: iddm demos ENV --sb3 MODEL.")
    if given.sb3 is not None and given.policy is not None:
        demos = record_sb3(given.sb3, given.policy, given.episodes, given.with_actions, given.seed)
    else:
        policy = bundled_expert(given.expert) if given.expert else find_policy(given.policy or "")
        kwargs = given_kwargs(given.env_kwargs)
        demos = record_demos(policy, given.episodes, given.with_actions, given.stochastic, given.seed, given.env, kwargs)
    save_demos(demos, given.out)
    assert demos.episode_returns is not None
    OUT.print(
        f"{given.out}: {demos.num_episodes} episodes, {demos.num_transitions} transitions, "
        f"{'with' if given.with_actions else 'without'} actions, mean return {demos.episode_returns.mean():.1f}",
        highlight=False,
    )
