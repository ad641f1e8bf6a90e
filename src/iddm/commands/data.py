"""`iddm demos`, `inspect`, `convert` and `export`: demonstrations in, policies out."""

import dataclasses
from pathlib import Path
from typing import Literal

import tyro

from iddm.commands.console import OUT
from iddm.commands.learning import find_policy
from iddm.errors import UserError


@dataclasses.dataclass(frozen=True)
class _Demos:
    out: Path
    """File to write (.npz)."""
    policy: tyro.conf.Positional[str | None] = None
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


def demos_command(args: list[str]) -> None:
    """Record demonstrations from a policy."""
    from iddm.bundled import bundled_expert
    from iddm.demos import save_demos
    from iddm.evaluation import record_demos, record_sb3

    given = tyro.cli(_Demos, args=args, prog="iddm demos")
    if (given.policy is None) == (given.expert is None) or (given.sb3 and given.expert):
        raise UserError(
            "Say who acts: a run's directory, a policy file, --expert TASK, or --sb3 MODEL ENV, and only one of them."
        )
    if given.sb3 is not None and given.policy is not None:
        demos = record_sb3(given.sb3, given.policy, given.episodes, given.with_actions, given.seed)
    else:
        policy = bundled_expert(given.expert) if given.expert else find_policy(given.policy or "")
        demos = record_demos(policy, given.episodes, given.with_actions, given.stochastic, given.seed)
    save_demos(demos, given.out)
    assert demos.episode_returns is not None
    OUT.print(
        f"{given.out}: {demos.num_episodes} episodes, {demos.num_transitions} transitions, "
        f"{'with' if given.with_actions else 'without'} actions, mean return {demos.episode_returns.mean():.1f}",
        highlight=False,
    )


@dataclasses.dataclass(frozen=True)
class _Inspect:
    file: tyro.conf.Positional[Path]
    """File of demonstrations."""
    env: str | None = None
    """Environment that they are for."""
    env_kwargs: str = "{}"
    """Options of the environment, as a JSON object."""
    columns: str | None = None
    """Columns of the environment's state to compare, as in `iddm train`."""
    demo_columns: str | None = None
    """Columns of the demonstrations to use, as in `iddm train`."""


def inspect_command(args: list[str]) -> int:
    """Show what a file of demonstrations holds, what is wrong with it, and whether it fits an environment."""
    from iddm.demos import inspect_demos, load_demos, print_inspection

    given = tyro.cli(_Inspect, args=args, prog="iddm inspect")
    demos = load_demos(given.file)
    sizes = sample = None
    if given.env is not None:
        from iddm.envs.spec import parse_kwargs, resolve, shape_of
        from iddm.evaluation import sample_env
        from iddm.expert import choose_columns

        spec = resolve(given.env, None, parse_kwargs(given.env_kwargs))
        shape, sample = shape_of(spec), sample_env(spec)
        demos, columns = choose_columns(demos, shape, given.columns, given.demo_columns, str(given.file))
        sizes = shape.sizes
        if columns is not None:
            sizes = dataclasses.replace(sizes, obs_size=len(columns))
            sample = sample._replace(rows=sample.rows[:, list(columns)])
    inspection = inspect_demos(demos, sizes, sample)
    print_inspection(inspection, str(given.file), OUT)
    return 0 if inspection.usable else 2


@dataclasses.dataclass(frozen=True)
class _Convert:
    source: tyro.conf.Positional[Path]
    """Demonstrations in any format that is read."""
    out: tyro.conf.Positional[Path]
    """A name that ends in .npz, or a folder for a Minari dataset."""


def convert_command(args: list[str]) -> None:
    """Write demonstrations of any format as our npz or as a Minari dataset."""
    from iddm.demos import convert_demos

    given = tyro.cli(_Convert, args=args, prog="iddm convert")
    demos = convert_demos(given.source, given.out)
    OUT.print(f"{given.out}: {demos.num_episodes} episodes, {demos.num_transitions} transitions", highlight=False)
    if "note_rows" in demos.metadata:
        OUT.print(f"note: {demos.metadata['note_rows']}", highlight=False)


@dataclasses.dataclass(frozen=True)
class _Export:
    policy: tyro.conf.Positional[str]
    """Directory of a run, a policy file, or the name of a task with a bundled expert."""
    to: Literal["npz", "onnx", "sb3"]
    """npz (plain arrays), onnx, or sb3 (a PPO model of Stable-Baselines3)."""
    out: Path
    """File to write (.npz, .onnx or .zip)."""


def export_command(args: list[str]) -> None:
    """Write a policy for other stacks: NumPy, ONNX Runtime or Stable-Baselines3."""
    from iddm.export import export_policy

    given = tyro.cli(_Export, args=args, prog="iddm export")
    export_policy(find_policy(given.policy), given.to, given.out)
    OUT.print(f"Policy for {given.to}: {given.out}", highlight=False)
