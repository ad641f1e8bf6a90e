"""`iddm export`."""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

import tyro

from iddm.cli.console import OUT
from iddm.cli.flags import parse_flags
from iddm.cli.policies import find_policy


@dataclasses.dataclass(frozen=True)
class _Export:
    policy: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="POLICY")]
    """Directory of a run, a policy file, or the name of a task with a bundled expert."""
    to: Literal["npz", "onnx", "sb3"]
    """npz (plain arrays), onnx, or sb3 (a PPO model of Stable-Baselines3)."""
    out: Path
    """File to write (.npz, .onnx or .zip)."""


def export_command(args: list[str]) -> None:
    """Write a policy for other stacks: NumPy, ONNX Runtime or Stable-Baselines3."""
    from iddm.policy.export import export_policy

    given = parse_flags(_Export, args, "iddm export")
    export_policy(find_policy(given.policy), given.to, given.out)
    OUT.print(f"Policy for {given.to}: {given.out}", highlight=False)
