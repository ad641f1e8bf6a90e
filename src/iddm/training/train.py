"""Begin, continue or complete a run."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from iddm.config import Config, configure, default_config, named_learner, usual_learner
from iddm.demos import Demos
from iddm.envs.spec import MakeEnv, parse_kwargs, resolve
from iddm.errors import UserError
from iddm.training.display import TrainingDisplay
from iddm.training.loop import OnIteration, OnRow, learn
from iddm.training.run_dir import Run
from iddm.training.setup import Setup

Show = Callable[[Setup], AbstractContextManager[OnRow | None]]
"""Called with what is about to be trained, and entered when training begins; what it gives is called with each row of metrics."""


def _silent(setup: Setup) -> AbstractContextManager[OnRow | None]:
    return nullcontext(None)


def train(
    env: str | MakeEnv,
    demos: Demos | str | Path | None = None,
    method: str = "iddm",
    out: str | Path | None = None,
    preset: str = "tuned",
    learner: str | None = None,
    on_row: OnRow | None = None,
    on_iteration: OnIteration | None = None,
    progress: bool = False,
    **settings: Any,
) -> Run:
    """Learn a policy in `env` from `demos` (a file, `Demos`, or None for the bundled ones); returns the finished run.

    `progress` shows the display of the command line. `on_row(row)` is called with each row of metrics,
    `on_iteration(row, policy)` also with a function that gives the policy as it is then.

    `learner`: "sac" learns off-policy, from few environment steps, and is what continuous actions get unless "ppo" is asked for.

    `settings` are the fields of `Config` ("steps", "seed", …), of the method's learner ("hidden", …), and of its terms, as in
    `mi={"weight": 0.01}`.
    """
    name = env if isinstance(env, str) else resolve(env).id
    options = parse_kwargs(settings.get("env_kwargs", "{}"))
    learner = learner or named_learner(settings) or usual_learner(env, method, preset, options)
    config = configure(default_config(name, method, preset, learner), settings)
    given = demos if isinstance(demos, Demos) else None
    if demos is not None and given is None:
        config = dataclasses.replace(config, demos=str(demos))
    show = _displayed(TrainingDisplay(f"{method} on {name}", *config.length), on_row) if progress else nullcontext(on_row)
    return start(config, out, lambda setup: show, given, env if callable(env) else None, on_iteration)


@contextmanager
def _displayed(display: TrainingDisplay, on_row: OnRow | None) -> Iterator[OnRow]:
    """What shows each row, and calls `on_row` too."""

    def both(row: dict[str, float]) -> None:
        display(row)
        if on_row is not None:
            on_row(row)

    with display:
        yield both


def start(
    config: Config,
    out: str | Path | None = None,
    show: Show = _silent,
    demos: Demos | None = None,
    make: MakeEnv | None = None,
    on_iteration: OnIteration | None = None,
) -> Run:
    """Begin a run: everything that can be wrong is checked before anything is written or shown."""
    setup = Setup.prepare(config, demos, make)
    with Run.create(out or default_directory(config), config, setup.demos_record) as run, show(setup) as on_row:
        learn(setup, run, None, on_row, on_iteration)
    return run


def resume(
    path: str | Path,
    show: Show = _silent,
    demos: Demos | None = None,
    make: str | MakeEnv | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    steps: int | None = None,
) -> Run:
    """Continue a run from its last checkpoint, to the bit as if it had never stopped.

    `make` and `env_kwargs` say again what a file cannot: the function that makes the environment, and its options. With
    `steps`, a run, finished or not, goes on to so many environment steps; what changes with its progress follows the new end.
    """
    run = Run.open(path)
    if steps is not None and steps != run.config.steps:
        run = lengthened(run, steps)
    if run.finished:
        return run
    setup = Setup.prepare(run.config, demos, run.stored_env.own(make, env_kwargs))
    begun_with, found = run.demos, setup.demos_record
    if (begun_with and begun_with.sha256) != (found and found.sha256):
        raise UserError(f"{path}: the demonstrations ({found and found.source}) are not those that the run began with.")
    with run.locked(), show(setup) as on_row:
        run.remove_leftovers()
        learn(setup, run, run.checkpoints.load(), on_row)
    return run


def lengthened(run: Run, steps: int) -> Run:
    """The same run with another number of steps ahead of it."""
    config, old = dataclasses.replace(run.config, steps=steps), run.config.schedule
    rows = run.metrics()
    done = int(rows[-1]["iteration"]) if rows else 0
    if run.config.length[1] != "steps" or config.schedule.steps_after(done) != old.steps_after(done):
        raise UserError(f"{run.path}: a run of {run.config.method} cannot go on with more steps; start a new one.")
    if config.schedule.num_iterations < done:
        raise UserError(f"{run.path}: --steps {steps}, but {rows[-1]['steps']:.0f} steps are done.")
    with run.locked():
        return run.reopened(config)


def finish(config: Config, out: str | Path, demos: Demos | None = None) -> Run:
    """The finished run of this config in this directory: begun, continued, or left as it is, whichever is needed."""
    if not (Path(out) / "config.json").exists():
        return start(config, out, demos=demos)
    if Run.open(out).config != config:
        raise UserError(f"{out} holds a run with other settings; remove it, or choose another directory.")
    return resume(out, demos=demos, make=config.env, env_kwargs=parse_kwargs(config.env_kwargs))


def default_directory(config: Config) -> Path:
    name = config.env.replace("/", "-").replace(":", "-")
    return Path("runs") / f"{name}-{config.method}-seed{config.seed}"
