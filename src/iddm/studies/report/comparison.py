"""A comparison of runs for a paper: a table, learning curves as SVG and PDF, and the numbers as CSV."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from math import isfinite
from pathlib import Path
from typing import Any

from rich.console import Console

from iddm.errors import UserError
from iddm.report.charts import at_shared_steps
from iddm.report.svg import new_figure, to_pdf, to_svg
from iddm.report.table import NOTHING, Table, for_terminal
from iddm.studies.comparison import LAST, ComparedRun, Group, Line, find_runs, grouped, lines, tidy_rows
from iddm.studies.report.formatting import NAMES, number
from iddm.studies.statistics import mean_interval
from iddm.utils.files import to_csv, write_whole

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Those of Okabe and Ito, which colour-blind readers can tell apart."""
DASHES = ("-", "--", ":", "-.")
"""For the eighth group and those after it."""
WIDTH, HEIGHT = 3.3, 2.5
"""Inches of a panel; three stand side by side."""


def compare_runs(
    paths: Sequence[Path],
    out: Path,
    console: Console,
    metric: str = "episode_return",
    episodes: int | None = None,
    env: str | None = None,
) -> list[Line]:
    """Compare the runs in these directories, print the table, and write the figure and the numbers into `out`."""
    if (out / "config.json").exists():
        raise UserError(f"{out} is a run; choose another --out.")
    runs = find_runs(paths)
    _check_metric(runs, metric)
    groups = grouped(runs, NAMES)
    found = lines(groups, metric, episodes, env)
    console.print(for_terminal("", table(found, metric, episodes)))
    for run in runs:
        if not run.run.finished:
            console.print(f"{run.run.path} is not finished; bands end where its curve does.")
    figure = curves(groups, metric)
    write_whole(out / "table.csv", to_csv([asdict(line) for line in found], [f.name for f in fields(Line)], digits=7))
    write_whole(out / "curves.csv", to_csv(tidy_rows(groups, metric), digits=7))
    if figure is not None:
        write_whole(out / "curves.svg", to_svg(figure))
        write_whole(out / "curves.pdf", to_pdf(figure))
    console.print(f"Figure and numbers: {out}" if figure else f"Numbers (there is no curve to draw): {out}")
    return found


def _check_metric(runs: Sequence[ComparedRun], metric: str) -> None:
    known = {name for run in runs for row in run.rows[-1:] for name in row}
    if metric not in known:
        raise UserError(f"--metric {metric}: the runs have {', '.join(sorted(known)) or 'no metrics yet'}.")


def table(found: Sequence[Line], metric: str, episodes: int | None) -> Table:
    """One row per group."""

    def row(line: Line) -> tuple[str, ...]:
        interval = f"[{number(line.low)}, {number(line.high)}]" if isfinite(line.low) else NOTHING
        deviation = f" ± {number(line.std)}" if isfinite(line.std) else ""
        return line.task, line.group, str(line.seeds), f"{line.steps:,}", number(line.mean) + deviation, interval

    what = _label(metric)
    measured = (
        f"the {what} over the last {100 * LAST:.0f} % of training (with the policy's noise)"
        if episodes is None
        else f"the final policy's return over {episodes} fresh episodes (most likely action)"
    )
    caption = f"Mean ± standard deviation over seeds of {measured}, and the mean's 95 % interval (Student's t)."
    columns = ("task", "runs", "seeds", "steps", what if episodes is None else "return", "95 % interval")
    return Table(columns, tuple(map(row, found)), 2, caption)


def _label(metric: str) -> str:
    return "return" if metric == "episode_return" else metric


def curves(groups: Sequence[Group], metric: str) -> Any | None:
    """A panel per task: the mean over seeds with its 95 % interval as a band. None where no run has a curve."""
    drawn = [group for group in groups if group.points(metric)]
    if not drawn:
        return None
    tasks = list(dict.fromkeys(group.task for group in drawn))
    names = list(dict.fromkeys(group.name for group in drawn))
    styles = {
        name: {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i // len(COLOURS) % len(DASHES)]}
        for i, name in enumerate(names)
    }
    columns = min(len(tasks), 3)
    figure, panels = new_figure(max(WIDTH * columns, 4.5), HEIGHT * -(-len(tasks) // columns) + 0.4, len(tasks), columns)
    for task, axes in zip(tasks, panels, strict=True):
        _panel(axes, task, [group for group in drawn if group.task == task], metric, styles)
    handles = {label: h for axes in panels for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    across = max(1, int(45 * max(columns, 1.4)) // (max(map(len, handles)) + 6))  # names of legends in a row, by their longest
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=across, frameon=False, fontsize=8)
    return figure


def _panel(axes: Any, task: str, groups: Sequence[Group], metric: str, styles: dict[str, dict[str, str]]) -> None:
    from matplotlib.ticker import EngFormatter

    for group in groups:
        if group.method == "random":  # nothing is learned
            axes.axhline(mean_interval(group.values(metric)).value, label=group.name, linewidth=0.9, **styles[group.name])
            continue
        steps, values = at_shared_steps(group.points(metric))
        means = [mean_interval(list(some)) for some in values]
        dot = {"marker": "o", "markersize": 4} if len(means) == 1 else {}
        axes.plot(steps, [mean.value for mean in means], label=group.name, linewidth=1.4, **styles[group.name], **dot)
        if means and means[0].has_interval:
            low, high = [mean.low for mean in means], [mean.high for mean in means]
            axes.fill_between(steps, low, high, color=styles[group.name]["color"], alpha=0.18, linewidth=0)
    demonstrated = {group.demonstrated for group in groups if isfinite(group.demonstrated)}
    if metric == "episode_return" and len(demonstrated) == 1:
        axes.axhline(*demonstrated, color="#777777", linestyle=(0, (5, 4)), linewidth=0.9, label="demonstrations")
    axes.set_title(task, fontsize=9)
    axes.set_xlim(left=0)
    axes.set_xlabel("environment steps", fontsize=8)
    axes.set_ylabel(_label(metric), fontsize=8)
    axes.tick_params(labelsize=8)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
