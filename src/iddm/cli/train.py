"""`iddm train`."""

import dataclasses
import shlex
from pathlib import Path
from typing import Annotated, Any

import tyro

from iddm.cli.console import OUT
from iddm.cli.given_env import given_kwargs, said_again


def train_command(args: list[str]) -> int:
    """Learn a policy from demonstrations."""
    if any(arg.split("=")[0] == "--resume" for arg in args):
        from iddm.training.run_dir import Run

        given = tyro.cli(_Resume, args=args, prog="iddm train")
        run = Run.open(given.resume)
        return learn(run.config, run, given.env, given_kwargs(given.env_kwargs))
    return learn(*train_flags(args))


@dataclasses.dataclass(frozen=True)
class _Resume:
    resume: Path
    """Directory of the run to continue."""
    env: str | None = None
    """The run's own environment again, where it is module:function: a file cannot name code."""
    env_kwargs: str | None = None
    """The options of that environment again, as a JSON object."""


def learn(config: Any, where: Any, env: str | None = None, env_kwargs: dict[str, Any] | None = None) -> int:
    """Train with a display, in a new directory or on from a run's checkpoint, in the environment that is said again."""
    from iddm.training.display import TrainingDisplay
    from iddm.training.loop import Interrupted
    from iddm.training.run_dir import Run
    from iddm.training.train import resume, start

    try:
        display = TrainingDisplay(f"{config.method} on {config.env}", *config.length)
        if isinstance(where, Run):
            run = resume(where.path, display, make=env, env_kwargs=env_kwargs)
        else:
            run = start(config, where, display)
    except Interrupted as stopped:
        OUT.print(" ".join([str(stopped), *said_again(config)]), highlight=False)
        return 130
    evaluation = " ".join(["iddm eval", shlex.quote(str(run.path)), *said_again(config)])
    OUT.print(f"Policy: {run.policy_path}\nEvaluate it with: {evaluation}", highlight=False)
    return 0


def _peek(args: list[str], flag: str, default: str) -> str:
    """The value of a flag that decides which other flags there are."""
    for i, arg in enumerate(args):
        if arg == flag and i + 1 < len(args):
            return args[i + 1]
        if arg.startswith(f"{flag}="):
            return arg.partition("=")[2]
    return default


def train_flags(args: list[str], expert: bool = False, task: str | None = None) -> tuple[Any, Path | None]:
    """Parse a config whose defaults, and whose flags, are those of the chosen method, preset and task.

    The learner's settings are plain flags, and may have its name in front (--ppo.epochs); a term's always have its name.
    """
    from iddm.config import Config, default_config, expert_config
    from iddm.tasks import find_task

    if task is None:
        task = next((arg for arg in args if find_task(arg)), "")
    preset, chosen = _peek(args, "--preset", "tuned"), _peek(args, "--learner", "") or None
    method = _peek(args, "--method", "iddm")
    default = expert_config(task, preset, chosen) if expert else default_config(task, method, preset, chosen)
    learner, terms = default.learner, default.terms
    default = dataclasses.replace(default, env=tyro.MISSING)  # pyright: ignore[reportArgumentType]
    out = Annotated[Path | None, tyro.conf.arg(help="Directory of the run; without it, one under runs/.")]
    plain = tyro.conf.arg(name="")
    which = Annotated[
        str, tyro.conf.arg(name="learner", help="How the policy is learned: ppo, or sac for fewer environment steps.")
    ]
    fields = [("config", Annotated[Config, plain]), ("out", out), ("which", which), ("own", Annotated[type(learner), plain])]
    flags = dataclasses.make_dataclass("Flags", fields + [(name, type(term)) for name, term in terms.items()])
    given = tyro.cli(
        flags,
        default=flags(default, None, learner.name, learner, *terms.values()),
        args=[arg.replace(f"--{learner.name}.", "--", 1) if arg.startswith(f"--{learner.name}.") else arg for arg in args],
        prog="iddm expert" if expert else "iddm train",
        description=f"Settings of {default.method}. Each method has its own: --method M --help. Continue a run: --resume DIR.",
    )
    if find_task(given.config.env) != find_task(task):  # the word that named a task was a flag's value, as in --out Ant
        return train_flags(args, expert, given.config.env)
    terms = {name: getattr(given, name) for name in terms}
    return dataclasses.replace(given.config, learner=given.own, terms=terms), given.out
