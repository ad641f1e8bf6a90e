"""All runs of a study in one table, read from their directories: waiting, running with speed and time left, done, failed."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from iddm.errors import UserError
from iddm.studies.core import Run
from iddm.studies.runner import Progress
from iddm.studies.spec import RunSpec

ROWS = 30
"""Most rows of the live table: runs beyond these are counted, not listed."""


def state_of(spec: RunSpec, progress: Progress) -> tuple[str, str]:
    """A run's state, and a note on it."""
    if spec.name in progress.done:
        return "done", ""
    run = Run(progress.runs / spec.name)
    if run.in_use:
        return "running", _pace(run)
    if spec.name in progress.failed:
        return "failed", progress.failed[spec.name]
    return "waiting", "resumes from its checkpoint" if (run.path / "checkpoints").is_dir() else ""


def _pace(run: Run) -> str:
    try:
        rows = run.metrics()
        (length, unit) = run.config.length
    except UserError:  # being written
        return ""
    if len(rows) < 2:
        return "starting"
    first, last = rows[max(len(rows) - 50, 0)], rows[-1]
    speed = (last[unit] - first[unit]) / max(last["seconds"] - first["seconds"], 1e-9)
    left = (length - last[unit]) / max(speed, 1e-9)
    return f"{100 * last[unit] / length:.0f} %, {speed:,.0f} {unit}/s, {left / 60:.0f} min left"


def table(progress: Progress, rows: int | None = ROWS) -> Table:
    """Running runs first, then failed ones, then those that wait."""
    states = [(spec, *state_of(spec, progress)) for spec in progress.specs]
    counts = {kind: sum(state == kind for _, state, _ in states) for kind in ("done", "running", "waiting", "failed")}
    shown = Table(title=", ".join(f"{n} {kind}" for kind, n in counts.items()), title_justify="left", box=None)
    for name in ("task", "method", "seed", "settings", "", ""):
        shown.add_column(name, no_wrap=name != "settings")  # where space is short, settings give way
    shared = Counter(item for spec in progress.specs for item in spec.settings)
    order = ("running", "failed", "waiting", "done")
    for spec, state, note in sorted(states, key=lambda entry: order.index(entry[1]))[:rows]:
        rarest_first = tuple(sorted(spec.settings, key=lambda item: shared[item]))  # it is what tells this run from the others
        settings = Text(replace(spec, settings=rarest_first).flags, no_wrap=True, overflow="ellipsis")
        shown.add_row(spec.task, spec.method, str(spec.seed), settings, state, note)
    return shown


@contextmanager
def shown(progress: Progress, console: Console) -> Iterator[Callable[[RunSpec], None]]:
    """A live table on a terminal; elsewhere one line per run that ends. The function it yields is called as each run ends."""
    if console.is_terminal:
        with Live(get_renderable=lambda: table(progress), console=console, refresh_per_second=1):
            yield lambda spec: None
        return

    def line(spec: RunSpec) -> None:
        state = f"failed: {progress.failed[spec.name]}" if spec.name in progress.failed else "done"
        count = f"{len(progress.done)}/{len(progress.specs)}"
        console.print(f"{count}  {spec.command}  {state}", highlight=False, markup=False, soft_wrap=True)

    yield line
