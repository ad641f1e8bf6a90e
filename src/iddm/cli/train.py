"""`iddm train`."""

import dataclasses
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from iddm.cli.console import OUT
from iddm.cli.flags import parse_flags, with_values
from iddm.cli.given_env import given_kwargs, said_again


def train_command(args: list[str]) -> int:
    """Learn a policy from demonstrations."""
    if any(arg.split("=")[0] == "--resume" for arg in args):
        from iddm.training.run_dir import Run

        given = parse_flags(_Resume, args, "iddm train")
        run = Run.open(given.resume)
        return learn(run.config, run, given.env, given_kwargs(given.env_kwargs), given.steps)
    return learn(*train_flags(args))


@dataclasses.dataclass(frozen=True)
class _Resume:
    resume: Path
    """Directory of the run to continue."""
    steps: int | None = None
    """Go on to this many environment steps, also where the run was finished."""
    env: str | None = None
    """The run's own environment again, where it is module:function: a file cannot name code."""
    env_kwargs: str | None = None
    """The options of that environment again, as a JSON object."""


def learn(
    config: Any, where: Any, env: str | None = None, env_kwargs: dict[str, Any] | None = None, steps: int | None = None
) -> int:
    """Train with a display, in a new directory or on from a run's checkpoint, in the environment that is said again."""
    from iddm.training.display import TrainingDisplay
    from iddm.training.loop import Interrupted
    from iddm.training.run_dir import Run
    from iddm.training.train import resume, start

    def show(setup: Any) -> TrainingDisplay:
        if not isinstance(where, Run):
            _warn_of_demos(setup)
        return TrainingDisplay(f"{config.method} on {config.env}", *setup.config.length, beside=_compared_with(setup))

    try:
        known = isinstance(where, Run)
        run = resume(where.path, show, make=env, env_kwargs=env_kwargs, steps=steps) if known else start(config, where, show)
    except Interrupted as stopped:
        OUT.print(" ".join([str(stopped), *said_again(config)]), highlight=False)
        return 130
    evaluation = " ".join(["iddm eval", shlex.quote(str(run.path)), *said_again(config)])
    OUT.print(f"Policy: {run.policy_path}\nEvaluate it with: {evaluation}", highlight=False)
    return 0


def _warn_of_demos(setup: Any) -> None:
    """What `iddm inspect` would warn of, a line each."""
    from iddm.cli.inspect import inspect_beside
    from iddm.demos.align import parse_stride

    if setup.demonstrations is None or not setup.config.demos:
        return
    given, stride = setup.demonstrations, parse_stride(setup.config.stride)
    for level, sentence in inspect_beside(given.demos, setup.spec, setup.shape, given.record.columns, stride).findings:
        if level == "warning":
            print(f"iddm: {sentence}", file=sys.stderr)


def _compared_with(setup: Any) -> str:
    """The expert's return, where the demonstrations have theirs, and that of random actions, where the task is a known one."""
    from iddm.tasks import find_task

    returns = setup.demos_record and setup.demos_record.returns
    task = None if setup.spec.kwargs else find_task(setup.config.env)
    known = {"expert": np.mean(returns) if returns else None, "random": task and task.random_return}
    return ", ".join(f"{who} {value:,.1f}" for who, value in known.items() if value is not None)


def _peek(args: list[str], flag: str, default: str) -> str:
    """The value of a flag that decides which other flags there are."""
    for i, arg in enumerate(args):
        if arg == flag and i + 1 < len(args):
            return args[i + 1]
        if arg.startswith(f"{flag}="):
            return arg.partition("=")[2]
    return default


def _env_among(args: list[str]) -> str:
    """The argument that names the environment, as far as one can tell before the flags are known."""
    import gymnasium as gym

    from iddm.tasks import find_task

    words = [arg for arg in args if not arg.startswith("-")]
    return next((word for word in words if find_task(word) or word in gym.registry), next(iter(words), ""))


def train_flags(args: list[str], expert: bool = False, env: str | None = None) -> tuple[Any, Path | None]:
    """Parse a config whose defaults, and whose flags, are those of the chosen method, preset and task.

    The learner's settings are plain flags, and may have its name in front (--ppo.epochs); a term's always have its name.
    """
    from iddm.config import Config, default_config, expert_config, named_learner, usual_learner

    env = _env_among(args) if env is None else env
    preset, method = _peek(args, "--preset", "tuned"), _peek(args, "--method", "iddm")
    chosen = _peek(args, "--learner", "") or named_learner(arg[2:].partition(".")[0] for arg in args if arg.startswith("--"))
    if expert:
        default = expert_config(env, preset, chosen)
    else:
        chosen = chosen or usual_learner(env, method, preset, given_kwargs(_peek(args, "--env-kwargs", "{}")))
        default = default_config(env, method, preset, chosen)
    learner, terms = default.learner, default.terms
    default = dataclasses.replace(default, env=tyro.MISSING)  # pyright: ignore[reportArgumentType]
    out = Annotated[Path | None, tyro.conf.arg(help="Directory of the run; without it, one under runs/.")]
    plain = tyro.conf.arg(name="")
    which = Annotated[
        str,
        tyro.conf.arg(name="learner", help="How the policy is learned: sac (few steps; continuous actions only) or ppo."),
    ]
    imports = Annotated[
        str | None,
        tyro.conf.arg(name="import", help="A module, or a file that ends in .py, to import first: it may register ENV."),
    ]  # only for the list of flags: `given_env.with_imports` has taken it off the command line
    own = Annotated[type(learner), plain]
    fields = [("config", Annotated[Config, plain]), ("out", out), ("imports", imports), ("which", which), ("own", own)]
    flags = dataclasses.make_dataclass("Flags", fields + [(name, type(term)) for name, term in terms.items()])
    unprefixed = [arg.replace(f"--{learner.name}.", "--", 1) if arg.startswith(f"--{learner.name}.") else arg for arg in args]
    given = parse_flags(
        flags,
        default=flags(default, None, None, learner.name, learner, *terms.values()),
        args=with_values(unprefixed, type(learner)),
        prog="iddm expert" if expert else "iddm train",
        description=f"Settings of {default.method}. Each method has its own: --method M --help. Continue a run: --resume DIR.",
    )
    if given.config.env != env:  # the word that was taken for it was a flag's value, as in --out Ant
        return train_flags(args, expert, given.config.env)
    terms = {name: getattr(given, name) for name in terms}
    return dataclasses.replace(given.config, learner=given.own, terms=terms), given.out
