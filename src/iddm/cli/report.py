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
    out: Path | None = None
    """Page to write; without it, report.html in the run's directory, or studies.html here."""
    episodes: int = 50
    """For a run: episodes per evaluation."""
    docs: bool = False
    """For studies: also write their tables into docs/results.md and README.md of the current directory."""
    film: bool = True
    """Show the expert and what was learned in moving pictures (for studies: in strips)."""
    runs: Path = Path("runs/studies")
    """For studies: directory of the runs, for their pictures."""
    env: str | None = None
    """For a run: its own environment again, where it is module:function, because a file cannot name code."""
    env_kwargs: str | None = None
    """For a run: the options of that environment again, as a JSON object."""


def report_command(args: list[str]) -> None:
    """Write a page: a run beside random actions and the expert, or the results of studies beside the paper's."""
    given = parse_flags(_Report, args, "iddm report")
    if (given.directory / "runs.csv").is_file():
        from iddm.studies.report.page import report_studies

        report_studies(given.directory, given.out or Path("studies.html"), OUT, given.docs, given.film, given.runs)
        return
    if not (given.directory / "config.json").is_file():
        raise UserError(f"{given.directory}: there is no run here (no config.json), and no results of studies (no runs.csv).")
    if given.docs:
        raise UserError(f"{given.directory} is a run; --docs is for results of studies.")
    from iddm.report.run_page import report_run

    report_run(given.directory, given.out, given.episodes, OUT, given.env, given_kwargs(given.env_kwargs), given.film)
