"""Run a study from the command line: where, with which workers, and what is printed meanwhile."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from iddm.errors import UserError
from iddm.studies.options import Options
from iddm.studies.pool import in_parallel
from iddm.studies.progress_table import shown, table
from iddm.studies.runner import Pool, Progress, forget, run_study
from iddm.studies.spec import RunSpec


def launch(specs: Sequence[RunSpec], options: Options, console: Console) -> int:
    """Make the runs that have no result yet; returns the exit code: 1 where some failed."""
    out = options.out or Path("runs/quick-results" if options.quick else "results/studies")
    progress = Progress(specs, options.runs or Path("runs/quick" if options.quick else "runs/studies"))
    pool = _pool(options.on)
    if options.list:
        progress.look(out)
        console.print(table(progress, rows=None))
        return 0
    if options.again:
        forget(progress, out)
    with shown(progress, console) as on_end:
        run_study(progress, out, pool, options.workers, on_end, options.imports)
    for name, error in progress.failed.items():
        console.print(f"failed: {name}: {error}", highlight=False, markup=False)
    console.print(f"{len(progress.done)} of {len(specs)} runs have results: {out}", highlight=False)
    again = "".join(f" --import {shlex.quote(name)}" for name in options.imports)
    console.print(f"See them with: iddm report {shlex.quote(str(out))}{again}", highlight=False)
    return 1 if progress.failed else 0


def _pool(where: str) -> Pool:
    kind, _, address = where.partition(":")
    if where == "local":
        return in_parallel
    if kind == "ray":
        from iddm.studies.ray_pool import on_ray

        return on_ray(address or None)
    raise UserError(f"--on {where}: choose local, ray or ray:ADDRESS.")
