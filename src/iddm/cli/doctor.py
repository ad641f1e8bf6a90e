"""`iddm doctor`."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from iddm.cli.console import OUT
from iddm.cli.flags import parse_flags
from iddm.cli.given_env import given_kwargs


@dataclasses.dataclass(frozen=True)
class _Doctor:
    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR")]
    """Directory of a run, finished or not."""
    control: Path | None = None
    """Directory of a run that learned without demonstrations, to compare returns with."""
    env: str | None = None
    """The run's own environment again, where it is module:function: a file cannot name code."""
    env_kwargs: str | None = None
    """The options of that environment again, as a JSON object."""


def doctor_command(args: list[str]) -> int:
    """Say what is wrong with a run, with the evidence and the setting to change; exit code 1 if anything is."""
    from iddm.doctor import diagnose

    given = parse_flags(_Doctor, args, "iddm doctor")
    findings = diagnose(given.run, given.control, given.env, given_kwargs(given.env_kwargs))
    for _, sentence in findings:
        OUT.print(f"• {sentence}", highlight=False, markup=False)
    if not findings:
        OUT.print("Nothing wrong found.", highlight=False)
    return 1 if findings else 0
