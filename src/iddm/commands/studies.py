"""`iddm theory`, `toy` and `study`: the paper's theorems and studies."""

import dataclasses
from pathlib import Path

import tyro

from iddm.commands.console import OUT
from iddm.studies.options import Options


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
    """Number of equal choices per move."""
    steps: int | None = None
    """Environment steps of every run, for a quick look; without it, the study's own."""
    workers: int | None = None
    """Number of processes in parallel; without it, one per core."""
    out: Path = Path("results/toy")
    """Directory of the table and the figures."""
    runs: Path = Path("runs/toy")
    """Directory of the runs; finished ones are not repeated."""


def toy_command(args: list[str]) -> None:
    """The paper's Gridworld study: who reaches the target, and how far each is from the expert, exactly."""
    given = tyro.cli(_Toy, args=args, prog="iddm toy")
    from iddm.studies.catalogue.gridworld import run_toy

    run_toy(given.seeds, given.out, given.runs, OUT, given.choices, given.steps, given.workers)


def study_command(args: list[str]) -> int:
    """Run one of the paper's studies, or list them; finished runs are not repeated."""
    given = tyro.cli(Options, args=args, prog="iddm study")
    from iddm.studies.catalogue import STUDIES, find_study

    if given.study is not None:
        return find_study(given.study).launch(given, OUT)
    for study in STUDIES.values():
        OUT.print(f"{study.name:<10}{study.heading}", highlight=False)
    return 0
