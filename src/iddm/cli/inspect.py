"""`iddm inspect`."""

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from iddm.cli.console import OUT
from iddm.cli.flags import parse_flags

if TYPE_CHECKING:
    from iddm.demos import Demos, Inspection


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
    stride: str = "1"
    """Environment steps between two rows of the demonstrations, as in `iddm train`."""
    episode_column: str | None = None
    """Columns of a table that tell episodes apart, as in `iddm train`."""
    scale: str | None = None
    """Units of the demonstrations' columns, as in `iddm train`."""


def inspect_command(args: list[str]) -> int:
    """Show what a file of demonstrations holds, what is wrong with it, and whether it fits an environment."""
    from iddm.demos import inspect_demos, load_demos, print_inspection
    from iddm.demos.align import choose_columns, parse_stride
    from iddm.demos.units import scale_columns

    given = parse_flags(_Inspect, args, "iddm inspect")
    where, stride = str(given.file), parse_stride(given.stride)
    demos = scale_columns(load_demos(given.file, given.episode_column), given.scale, where)
    if given.env is None:
        inspection = inspect_demos(demos)
    else:
        from iddm.envs.spec import parse_kwargs, resolve, shape_of

        spec = resolve(given.env, None, parse_kwargs(given.env_kwargs))
        shape = shape_of(spec)
        demos, columns = choose_columns(demos, shape.sizes, given.columns, given.demo_columns, where)
        inspection = inspect_beside(demos, spec, shape, columns or range(shape.obs_size), stride)
    print_inspection(inspection, where, OUT)
    return 0 if inspection.usable else 2


def inspect_beside(demos: "Demos", spec: Any, shape: Any, columns: Sequence[int], stride: Fraction) -> "Inspection":
    """Demonstrations of some columns of an environment's state beside short episodes of that environment."""
    from iddm.demos import inspect_demos
    from iddm.evaluation import sample_env

    sample, names = sample_env(spec), shape.sizes.columns
    sizes = dataclasses.replace(shape.sizes, obs_size=len(columns), columns=tuple(names[i] for i in columns) if names else ())
    return inspect_demos(demos, sizes, sample._replace(rows=sample.rows[:, list(columns)]), stride)
