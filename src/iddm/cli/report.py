"""`iddm report`."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from iddm.cli.console import OUT
from iddm.cli.flags import parse_flags
from iddm.cli.given_env import given_kwargs
from iddm.errors import UserError


@dataclasses.dataclass(frozen=True)
class _Report:
    directory: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR")]
    """Directory of a finished run, or of the results of studies (runs.csv)."""
    out: Path = Path("report.html")
    """Page to write."""
    episodes: int = 50
    """For a run: episodes per evaluation."""
    docs: bool = False
    """For studies: also write their tables into docs/results.md and README.md of the current directory."""
    film: bool = False
    """For studies: also show pictures of the experts and of what IDDM learned (takes time)."""
    runs: Path = Path("runs/studies")
    """For studies: directory of the runs, for --film."""
    env: str | None = None
    """For a run: its own environment again, where it is module:function, because a file cannot name code."""
    env_kwargs: str | None = None
    """For a run: the options of that environment again, as a JSON object."""


def report_command(args: list[str]) -> None:
    """Write a page: a run beside random actions and the expert, or the results of studies beside the paper's."""
    given = parse_flags(_Report, args, "iddm report")
    if (given.directory / "runs.csv").is_file():
        from iddm.studies.report.page import report_studies

        report_studies(given.directory, given.out, OUT, given.docs, given.film, given.runs)
        return
    if not (given.directory / "config.json").is_file():
        raise UserError(f"{given.directory}: there is no run here (no config.json), and no results of studies (no runs.csv).")
    if given.docs or given.film:
        raise UserError(f"{given.directory} is a run; --docs and --film are for results of studies.")
    from iddm.report.run_page import report_run

    report_run(given.directory, given.out, given.episodes, OUT, given.env, given_kwargs(given.env_kwargs))
