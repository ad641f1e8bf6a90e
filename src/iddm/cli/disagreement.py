"""`iddm disagreement`."""

import dataclasses
import json
from math import isnan
from pathlib import Path
from typing import Annotated

import tyro

from iddm.cli.console import OUT
from iddm.cli.flags import parse_flags
from iddm.cli.given_env import given_kwargs
from iddm.cli.policies import find_policy


@dataclasses.dataclass(frozen=True)
class _Disagreement:
    policy: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="POLICY")]
    """Directory of a run, a policy file, or the name of a task with a bundled expert."""
    demos: Path | None = None
    """The expert's demonstrations with actions; without it, the bundled expert's."""
    episodes: int = 10
    """Episodes of the policy to record."""
    noise: float = 0.3
    """Deviation of the noise added to the actions of both sides (a bounded Box is [-1, 1]): without any, a deterministic
    expert's disagreement is infinite."""
    deterministic: bool = False
    """Record the most likely actions instead of sampling as in training."""
    seed: int = 1_000_000
    """Seed of the first episode."""
    env: str | None = None
    """The policy's own environment again, where it is module:function: a file cannot name code."""
    env_kwargs: str | None = None
    """The options of that environment again, as a JSON object."""
    json: bool = False
    """Print one JSON object."""


def disagreement_command(args: list[str]) -> None:
    """Estimate the inverse dynamics disagreement of a policy with its expert."""
    given = parse_flags(_Disagreement, args, "iddm disagreement")
    from iddm.disagreement.measure import expert_demos, measure

    policy = find_policy(given.policy)
    expert = expert_demos(given.policy, policy, given.demos)
    kwargs = given_kwargs(given.env_kwargs)
    found = measure(policy, expert, given.episodes, given.noise, not given.deterministic, given.seed, given.env, kwargs)
    if given.json:
        print(json.dumps(found.to_json()))
        return
    value = found.disagreement
    lines = [
        f"{found.env}: {found.num_episodes} episodes of the policy against {found.num_expert_episodes} of the expert, "
        f"actions blurred by {found.noise:g}",
        f"disagreement, all transitions     {_interval(*value.everywhere)}",
        f"disagreement, shared transitions  {_interval(*value.shared)}",
        f"transitions told apart            {100 * value.told_apart:.0f} % (50 %: matched)",
    ]
    if not isnan(found.null_energy):
        lines.append(f"null-space energy                 {found.null_energy:.4f}")
    if value.caution:
        lines.append(f"Mind: {value.caution}")
    for line in lines:
        OUT.print(line, highlight=False, markup=False)


def _interval(value: float, low: float, high: float) -> str:
    return "too few" if isnan(value) else f"{value:.3f} nats [{low:.3f}, {high:.3f}] (95 % interval)"
