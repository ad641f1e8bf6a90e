"""`iddm inspect`."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from iddm.cli.console import OUT
from iddm.cli.flags import parse_flags


@dataclasses.dataclass(frozen=True)
class _Inspect:
    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """File of demonstrations."""
    env: str | None = None
    """Environment to compare them with."""
    env_kwargs: str = "{}"
    """Options of the environment, as a JSON object."""
    columns: str | None = None
    """Columns of the environment's state to compare, as in `iddm train`."""
    demo_columns: str | None = None
    """Columns of the demonstrations to use, as in `iddm train`."""


def inspect_command(args: list[str]) -> int:
    """Show what a file of demonstrations holds, what is wrong with it, and whether it fits an environment."""
    from iddm.demos import inspect_demos, load_demos, print_inspection
    from iddm.demos.align import choose_columns

    given = parse_flags(_Inspect, args, "iddm inspect")
    demos = load_demos(given.file)
    sizes = sample = None
    if given.env is not None:
        from iddm.envs.spec import parse_kwargs, resolve, shape_of
        from iddm.evaluation import sample_env

        spec = resolve(given.env, None, parse_kwargs(given.env_kwargs))
        shape, sample = shape_of(spec), sample_env(spec)
        demos, columns = choose_columns(demos, shape.sizes, given.columns, given.demo_columns, str(given.file))
        sizes = shape.sizes
        if columns is not None:
            sizes = dataclasses.replace(sizes, obs_size=len(columns))
            sample = sample._replace(rows=sample.rows[:, list(columns)])
    inspection = inspect_demos(demos, sizes, sample)
    print_inspection(inspection, str(given.file), OUT)
    return 0 if inspection.usable else 2
