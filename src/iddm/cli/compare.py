"""`iddm compare`."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from iddm.cli.console import OUT
from iddm.cli.flags import parse_flags
from iddm.errors import UserError


@dataclasses.dataclass(frozen=True)
class _Compare:
    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="DIR…")]
    """Directories of runs, or directories that hold runs."""
    out: Path = Path("comparison")
    """Directory to write: curves.svg, curves.pdf, curves.csv and table.csv."""
    metric: str = "episode_return"
    """Column of metrics.csv to compare."""
    episodes: int | None = None
    """Evaluate the final policies over so many episodes for the table; without it, the table is of the end of training."""
    env: str | None = None
    """With --episodes: the runs' own environment again, where it is module:function, because a file cannot name code."""


def compare_command(args: list[str]) -> None:
    """Compare runs: a table, learning curves with intervals over seeds (SVG, PDF), and the numbers (CSV)."""
    given = parse_flags(_Compare, args, "iddm compare")
    if not given.runs:
        raise UserError("Name the runs to compare: iddm compare runs/a runs/b.")
    from iddm.studies.report.comparison import compare_runs

    compare_runs(given.runs, given.out, OUT, given.metric, given.episodes, given.env)
