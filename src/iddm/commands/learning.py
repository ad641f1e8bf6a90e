"""`iddm train`, `expert` and `eval`: policies."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import tyro

from iddm.commands.console import OUT


def train_command(args: list[str]) -> int:
    """Learn a policy from demonstrations."""
    if any(arg.split("=")[0] == "--resume" for arg in args):
        from iddm.runs import Run

        run = Run.open(tyro.cli(_Resume, args=args, prog="iddm train").resume)
        return _learn(run.config, run)
    return _learn(*train_flags(args))


def _learn(config: Any, where: Any) -> int:
    """Train with a display, in a new directory or on from a run's checkpoint."""
    from iddm.display import TrainingDisplay
    from iddm.runs import Run
    from iddm.training import Interrupted, resume, start

    try:
        display = TrainingDisplay(f"{config.method} on {config.env}", *config.length)
        run = resume(where.path, display) if isinstance(where, Run) else start(config, where, display)
    except Interrupted as stopped:
        OUT.print(str(stopped), highlight=False)
        return 130
    OUT.print(f"Policy: {run.path / 'policy.safetensors'}\nEvaluate it with: iddm eval {run.path}", highlight=False)
    return 0


@dataclasses.dataclass(frozen=True)
class _Resume:
    resume: Path
    """Directory of the run to continue."""


def _peek(args: list[str], flag: str, default: str) -> str:
    """The value of a flag that decides which other flags there are."""
    for i, arg in enumerate(args):
        if arg == flag and i + 1 < len(args):
            return args[i + 1]
        if arg.startswith(f"{flag}="):
            return arg.partition("=")[2]
    return default


def train_flags(args: list[str], expert: bool = False, task: str | None = None) -> tuple[Any, Path | None]:
    """Parse a config whose defaults, and whose parts' flags, are those of the chosen method, preset and task."""
    from iddm.config import Config, default_config, expert_config
    from iddm.envs.tasks import find_task

    if task is None:
        task = next((arg for arg in args if find_task(arg)), "")
    preset = _peek(args, "--preset", "tuned")
    default = expert_config(task, preset) if expert else default_config(task, _peek(args, "--method", "iddm"), preset)
    default = dataclasses.replace(default, env=tyro.MISSING)  # pyright: ignore[reportArgumentType]
    out = Annotated[Path | None, tyro.conf.arg(help="Directory of the run; without it, one under runs/.")]
    fields = [("config", Annotated[Config, tyro.conf.arg(name="")]), ("out", out)]
    flags = dataclasses.make_dataclass("Flags", fields + [(name, type(part)) for name, part in default.parts.items()])
    given = tyro.cli(
        flags,
        default=flags(default, None, *default.parts.values()),
        args=args,
        prog="iddm expert" if expert else "iddm train",
        description=f"Settings of {default.method}. Each method has its own: --method M --help. Continue a run: --resume DIR.",
    )
    if find_task(given.config.env) != find_task(task):  # the word that named a task was a flag's value, as in --out Ant
        return train_flags(args, expert, given.config.env)
    parts = {name: getattr(given, name) for name in default.parts}
    return dataclasses.replace(given.config, terms=default.terms).with_parts(parts), given.out


def expert_command(args: list[str]) -> int:
    """Train an expert with PPO on the environment's own reward."""
    return _learn(*train_flags(args, expert=True))


@dataclasses.dataclass(frozen=True)
class _Eval:
    policy: tyro.conf.Positional[str]
    """Directory of a run, a policy file, the name of a task with a bundled expert, or 'random' with --env."""
    episodes: int = 50
    """Episodes to run."""
    env: str | None = None
    """Environment, if not the policy's own."""
    seed: int | None = None
    """Seed of the first episode."""
    stochastic: bool = False
    """Sample actions instead of taking the most likely."""
    max_episode_steps: int | None = None
    """Time limit of an episode; without it, the one that the policy was learned with, or the environment's own."""
    json: bool = False
    """Print one JSON object."""


def eval_command(args: list[str]) -> None:
    """Evaluate a policy by the environment's own return."""
    from iddm.evaluation import EVALUATION_SEED, evaluate

    given = tyro.cli(_Eval, args=args, prog="iddm eval")
    policy = "random" if given.policy == "random" else find_policy(given.policy)
    seed = EVALUATION_SEED if given.seed is None else given.seed
    result = evaluate(policy, given.env, given.episodes, seed, given.stochastic, given.max_episode_steps)
    if given.json:
        print(json.dumps(result.to_json()))
    else:
        OUT.print(f"{result.env}: {result.mean:.1f} ± {result.std:.1f} over {given.episodes} episodes", highlight=False)


def find_policy(name: str) -> Any:
    """A run's policy, a policy file, or the bundled expert of a task."""
    from iddm.bundled import bundled_expert
    from iddm.envs.tasks import find_task
    from iddm.policy import load_policy

    return bundled_expert(name) if not Path(name).exists() and find_task(name) else load_policy(name)
