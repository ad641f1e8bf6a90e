"""The command line. Bad input is one sentence on stderr and exit code 2."""

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from iddm.commands.studies import study_command
from iddm.errors import UserError

OUT = Console(soft_wrap=True)


def train_command(args: list[str]) -> int:
    """Learn a policy from demonstrations."""
    if any(arg.split("=")[0] == "--resume" for arg in args):
        from iddm.runs import Run

        run = Run.open(tyro.cli(_Resume, args=args, prog="iddm train").resume)
        return _learn(run.config, run)
    return _learn(*_train_flags(args))


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


def _train_flags(args: list[str], start: Any = None) -> tuple[Any, Path | None]:
    """Parse a config whose defaults, and whose parts' flags, are those of `start`, or of the chosen method and preset."""
    from iddm.config import Config, default_config

    chosen = _peek(args, "--method", "iddm")
    preset = _peek(args, "--preset", "tuned")
    default = start or default_config(tyro.MISSING, chosen, preset)  # pyright: ignore[reportArgumentType]
    out = Annotated[Path | None, tyro.conf.arg(help="Directory of the run; without it, one under runs/.")]
    fields = [("config", Annotated[Config, tyro.conf.arg(name="")]), ("out", out)]
    flags = dataclasses.make_dataclass("Flags", fields + [(name, type(part)) for name, part in default.parts.items()])
    given = tyro.cli(
        flags,
        default=flags(default, None, *default.parts.values()),
        args=args,
        prog="iddm expert" if start else "iddm train",
        description=f"Settings of {default.method}. Each method has its own: --method M --help. Continue a run: --resume DIR.",
    )
    parts = {name: getattr(given, name) for name in default.parts}
    return dataclasses.replace(given.config, terms=default.terms).with_parts(parts), given.out


def expert_command(args: list[str]) -> int:
    """Train an expert with PPO on the environment's own reward."""
    from iddm.config import expert_config
    from iddm.envs.tasks import find_task

    env = next((arg for arg in args if find_task(arg)), "")  # which task it is decides the defaults
    start = dataclasses.replace(expert_config(env, _peek(args, "--preset", "tuned")), env=tyro.MISSING)  # pyright: ignore[reportArgumentType]
    return _learn(*_train_flags(args, start))


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
    json: bool = False
    """Print one JSON object."""


def eval_command(args: list[str]) -> None:
    """Evaluate a policy by the environment's own return."""
    from iddm.evaluation import EVALUATION_SEED, evaluate

    given = tyro.cli(_Eval, args=args, prog="iddm eval")
    policy = "random" if given.policy == "random" else find_policy(given.policy)
    seed = EVALUATION_SEED if given.seed is None else given.seed
    result = evaluate(policy, given.env, given.episodes, seed, given.stochastic)
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


@dataclasses.dataclass(frozen=True)
class _Doctor:
    run: tyro.conf.Positional[Path]
    """Directory of a run, finished or not."""
    control: Path | None = None
    """Directory of a run that learned without demonstrations, to compare returns with."""


def doctor_command(args: list[str]) -> int:
    """Say what is wrong with a run, the evidence, and the setting to change; exit code 1 where something is."""
    from iddm.doctor import diagnose

    given = tyro.cli(_Doctor, args=args, prog="iddm doctor")
    findings = diagnose(given.run, given.control)
    for _, sentence in findings:
        OUT.print(f"• {sentence}", highlight=False, markup=False)
    if not findings:
        OUT.print("Nothing wrong found.", highlight=False)
    return 1 if findings else 0


@dataclasses.dataclass(frozen=True)
class _Report:
    directory: tyro.conf.Positional[Path]
    """Directory of a finished run, or of the results of studies (runs.csv)."""
    out: Path = Path("report.html")
    """Page to write."""
    episodes: int = 50
    """Of a run: episodes of each evaluation."""
    docs: bool = False
    """Of studies: also write their tables into docs/results.md and README.md of the current directory."""
    film: bool = False
    """Of studies: also show pictures of the experts and of what IDDM learned (takes time)."""
    runs: Path = Path("runs/studies")
    """Of studies: where the runs are, for --film."""


def report_command(args: list[str]) -> None:
    """Write a page: a run beside random actions and the expert, or the results of studies beside the paper's."""
    given = tyro.cli(_Report, args=args, prog="iddm report")
    if (given.directory / "runs.csv").is_file():
        from iddm.report.study_page import report_studies

        report_studies(given.directory, given.out, OUT, given.docs, given.film, given.runs)
        return
    if not (given.directory / "config.json").is_file():
        raise UserError(f"{given.directory}: there is no run here (no config.json), nor results of studies (no runs.csv).")
    if given.docs or given.film:
        raise UserError(f"{given.directory} is a run; --docs and --film are for results of studies.")
    from iddm.report.run_page import report_run

    report_run(given.directory, given.out, given.episodes, OUT)


def theory_command(args: list[str]) -> None:
    """Check the paper's theorems on finite examples, exactly."""
    from iddm.theory.report import print_theory, theory_report

    given = tyro.cli(_Theory, args=args, prog="iddm theory")
    print_theory(theory_report(given.seed), OUT)


@dataclasses.dataclass(frozen=True)
class _Theory:
    seed: int = 0
    """Seed of the random examples."""


@dataclasses.dataclass(frozen=True)
class _Toy:
    seeds: int = 5
    """Number of seeds, counted from 0; each has an expert of its own."""
    choices: tuple[int, ...] = (1, 2, 4, 11)
    """How many equal choices each move has."""
    steps: int | None = None
    """Environment steps of every run, for a quick look; without it, the study's own."""
    workers: int | None = None
    """Processes side by side; without it, one for each core."""
    out: Path = Path("results/toy")
    """Directory of the table and the figures."""
    runs: Path = Path("runs/toy")
    """Directory of the runs; those that are there are not done again."""


def toy_command(args: list[str]) -> None:
    """The paper's Gridworld study: who reaches the target, and how far each is from the expert, exactly."""
    given = tyro.cli(_Toy, args=args, prog="iddm toy")
    from iddm.experiments.toy import ToyRow, toy_study
    from iddm.report.toy_study import report_toy

    def show(cell: list[ToyRow]) -> None:
        for row in cell:
            OUT.print(
                f"n = {row.num_choices:>2}  seed {row.seed}  {row.method:<6}  return {row.expected_return:7.1f}  "
                f"reaches the target {100 * row.success:5.1f} %  disagreement {row.disagreement:.3f}",
                highlight=False,
            )

    report_toy(toy_study(given.seeds, given.choices, given.out, given.runs, given.steps, given.workers, show), given.out, OUT)


COMMANDS: dict[str, Callable[[list[str]], int | None]] = {
    "train": train_command,
    "eval": eval_command,
    "expert": expert_command,
    "demos": demos_command,
    "inspect": inspect_command,
    "convert": convert_command,
    "export": export_command,
    "doctor": doctor_command,
    "report": report_command,
    "theory": theory_command,
    "toy": toy_command,
    "study": study_command,
}


def _with_imports(args: list[str]) -> list[str]:
    """Import what `--import` names, for every command, and return the other arguments. Only a command line can ask for it."""
    if not any(arg.split("=")[0] == "--import" for arg in args):
        return args
    from iddm.envs.spec import import_module

    rest, waiting = [], list(args)
    while waiting:
        arg = waiting.pop(0)
        if arg == "--import" and not waiting:
            raise UserError("--import needs the name of a module or a file that ends in .py.")
        if arg == "--import" or arg.startswith("--import="):
            import_module(arg.partition("=")[2] or waiting.pop(0))
        else:
            rest.append(arg)
    return rest


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    args = sys.argv[1:] if argv is None else argv
    if not args or args[0] in ("-h", "--help"):
        OUT.print("iddm: a policy from demonstrations without actions\n", highlight=False)
        for name, command in COMMANDS.items():
            OUT.print(f"  iddm {name:<8} {(command.__doc__ or '').strip()}", highlight=False)
        OUT.print("\n`iddm COMMAND --help` explains each setting.", highlight=False)
        OUT.print(
            "`--import MODULE` (or FILE.py), with any command, first imports what registers your environment.", highlight=False
        )
        return 0 if args else 2
    if args[0] == "--version":
        from importlib.metadata import version

        print(version("iddm"))
        return 0
    try:
        if args[0] not in COMMANDS:
            raise UserError(f"there is no command '{args[0]}'; there are {', '.join(COMMANDS)}.")
        return COMMANDS[args[0]](_with_imports(args[1:])) or 0
    except UserError as error:
        print(f"iddm: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("iddm: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
