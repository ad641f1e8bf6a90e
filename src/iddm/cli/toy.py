"""`iddm toy`."""

import dataclasses
from pathlib import Path

from iddm.cli.console import OUT
from iddm.cli.flags import parse_flags


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
    """Directory of the table and figures."""
    runs: Path = Path("runs/toy")
    """Directory of the runs; finished ones are not repeated."""


def toy_command(args: list[str]) -> None:
    """The paper's Gridworld study: who reaches the target, and how far each is from the expert, exactly."""
    given = parse_flags(_Toy, args, "iddm toy")
    from iddm.studies.catalogue.gridworld import run_toy

    run_toy(given.seeds, given.out, given.runs, OUT, given.choices, given.steps, given.workers)
