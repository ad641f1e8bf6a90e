"""`iddm convert`."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from iddm.cli.console import OUT
from iddm.cli.flags import parse_flags


@dataclasses.dataclass(frozen=True)
class _Convert:
    source: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="IN")]
    """Demonstrations in any supported format."""
    out: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="OUT")]
    """A name that ends in .npz, or a folder for a Minari dataset."""
    episode_column: str | None = None
    """Columns of a table that tell episodes apart, as in `iddm train`."""
    scale: str | None = None
    """Units of the demonstrations' columns, as in `iddm train`."""


def convert_command(args: list[str]) -> None:
    """Write demonstrations of any format as our npz or as a Minari dataset."""
    from iddm.demos import convert_demos

    given = parse_flags(_Convert, args, "iddm convert")
    demos = convert_demos(given.source, given.out, given.episode_column, given.scale)
    OUT.print(f"{given.out}: {demos.num_episodes} episodes, {demos.num_transitions} transitions", highlight=False)
    if "note_rows" in demos.metadata:
        OUT.print(f"note: {demos.metadata['note_rows']}", highlight=False)
