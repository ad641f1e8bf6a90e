"""`iddm convert`."""

import dataclasses
from pathlib import Path

import tyro

from iddm.cli.console import OUT


@dataclasses.dataclass(frozen=True)
class _Convert:
    source: tyro.conf.Positional[Path]
    """Demonstrations in any supported format."""
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
