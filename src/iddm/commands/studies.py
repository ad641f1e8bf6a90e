"""`iddm theory`, `toy` and `study`: the paper's theorems and studies."""

import dataclasses
from pathlib import Path
from typing import Any

import tyro

from iddm.commands.console import OUT
from iddm.errors import UserError


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
    from iddm.studies.report.toy import report_toy
    from iddm.studies.toy import ToyRow, toy_study

    def show(cell: list[ToyRow]) -> None:
        for row in cell:
            OUT.print(
                f"n = {row.num_choices:>2}  seed {row.seed}  {row.method:<6}  return {row.expected_return:7.1f}  "
                f"reaches the target {100 * row.success:5.1f} %  disagreement {row.disagreement:.3f}",
                highlight=False,
            )

    report_toy(toy_study(given.seeds, given.choices, given.out, given.runs, given.steps, given.workers, show), given.out, OUT)


@dataclasses.dataclass(frozen=True)
class _Study:
    study: tyro.conf.Positional[str]
    """table2, curves, demos, lambda_p, lambda_s, grid, ant, absorbing or toy."""
    only: str | None = None
    """Tasks and methods to run, as in hopper,iddm; without it, all."""
    seeds: int | None = None
    """Number of seeds, counted from 0; without it, the study's own."""
    on: str = "local"
    """local (a process for each core), ray (a cluster of this machine), or ray:ADDRESS."""
    workers: int | None = None
    """Runs side by side; without it, one for each core."""
    quick: bool = False
    """Two tasks, a few thousand steps, small networks: a look at the machinery, in minutes."""
    again: bool = False
    """Redo runs that have results."""
    out: Path | None = None
    """Directory of the results; without it, results/studies (with --quick, runs/quick-results)."""
    runs: Path | None = None
    """Directory of the runs, shared by all machines; without it, runs/studies (with --quick, runs/quick)."""
    list: bool = False
    """Only say which runs there are, and which have results."""


def study_command(args: list[str]) -> int:
    """Run one of the paper's studies; what is done is not done again."""
    given = tyro.cli(_Study, args=args, prog="iddm study")
    if given.study == "toy":
        return _toy(given)
    from iddm.studies.progress_table import shown, table
    from iddm.studies.runner import Progress, forget, run_study
    from iddm.studies.spec import STUDIES

    if given.study not in STUDIES:
        raise UserError(f"There is no study '{given.study}'; there are {', '.join(STUDIES)}, toy.")
    words = [word.strip() for word in (given.only or "").split(",") if word.strip()]
    specs = STUDIES[given.study].runs(given.seeds, words, given.quick)
    out = given.out or Path("runs/quick-results" if given.quick else "results/studies")
    progress = Progress(specs, given.runs or Path("runs/quick" if given.quick else "runs/studies"))
    pool = _pool(given.on)
    if given.list:
        progress.look(out)
        OUT.print(table(progress, rows=None))
        return 0
    if given.again:
        forget(progress, out)
    with shown(progress, OUT) as on_end:
        run_study(progress, out, pool, given.workers, on_end)
    for name, error in progress.failed.items():
        OUT.print(f"failed: {name}: {error}", highlight=False, markup=False)
    OUT.print(f"{len(progress.done)} of {len(specs)} runs have results: {out}", highlight=False)
    OUT.print(f"See them with: iddm report {out}", highlight=False)
    return 1 if progress.failed else 0


def _pool(where: str) -> Any:
    kind, _, address = where.partition(":")
    if where == "local":
        from iddm.studies.pool import in_parallel

        return in_parallel
    if kind == "ray":
        from iddm.studies.ray_pool import on_ray

        return on_ray(address or None)
    raise UserError(f"--on {where}: there are local, ray and ray:ADDRESS.")


def _toy(given: _Study) -> int:
    """The Gridworld study has its own measures, and its own command."""
    if given.only or given.again or given.list or given.on != "local":
        raise UserError("The toy study runs whole and on this machine: --only, --on, --again and --list are for the others.")
    flags = {
        "--seeds": given.seeds or (1 if given.quick else None),
        "--steps": 4_096 if given.quick else None,
        "--workers": given.workers,
        "--out": given.out or ("runs/quick-results/toy" if given.quick else None),
        "--runs": given.runs or ("runs/quick/toy" if given.quick else None),
    }
    toy_command([str(part) for flag, value in flags.items() if value is not None for part in (flag, value)])
    return 0
