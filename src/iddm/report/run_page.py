"""A run set beside random actions and the expert: a table for the terminal, and one self-contained page."""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from iddm.bundled import bundled_expert
from iddm.errors import UserError
from iddm.evaluation import Evaluation, evaluate
from iddm.expert import find_demos
from iddm.files import write_whole
from iddm.report.markup import Markup, fill
from iddm.runs import Run


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    who: str
    mean: float
    std: float
    episodes: int
    share: float | None
    """Of the expert's mean return."""


def report_run(path: str | Path, out: str | Path, episodes: int, console: Console) -> list[Row]:
    """Evaluate a run beside random actions and its expert, print the table, and write the page."""
    run = Run.open(path)
    if not run.finished:
        raise UserError(f"{path}: the run is not finished; continue it with: iddm train --resume {path}")
    rows = compare(run, episodes)
    console.print(_table(run, rows))
    write_whole(Path(out), page(run, rows))
    console.print(f"Page: {out}", highlight=False)
    return rows


def compare(run: Run, episodes: int) -> list[Row]:
    """Random actions, the learned policy, and the expert: our own where one is bundled, else its recorded returns."""
    policy = run.policy
    random = evaluate("random", env=policy.config["env"], episodes=episodes)
    imitator = evaluate(policy, episodes=episodes)
    expert = _expert(run, episodes)
    rows = [("random actions", random), (run.config.method, imitator), ("expert", expert)]
    return [Row(who, e.mean, e.std, len(e.returns), e.mean / expert.mean if expert else None) for who, e in rows if e is not None]


def _expert(run: Run, episodes: int) -> Evaluation | None:
    config = run.config
    if config.demos is None:
        return evaluate(bundled_expert(config.env), episodes=episodes)
    returns = find_demos(config).episode_returns
    return None if returns is None else Evaluation(config.env, returns)


def _table(run: Run, rows: list[Row]) -> Table:
    table = Table(title=f"{run.config.env}: the environment's own return", title_justify="left")
    for column in ("", "mean", "± std", "episodes", "of the expert"):
        table.add_column(column, justify="left" if not column else "right")
    for cells in _cells(rows):
        table.add_row(*cells)
    return table


def _cells(rows: list[Row]) -> list[list[str]]:
    return [
        [r.who, f"{r.mean:,.1f}", f"{r.std:,.1f}", str(r.episodes), "–" if r.share is None else f"{100 * r.share:.1f} %"]
        for r in rows
    ]


def learning_curve(run: Run, rows: list[Row]) -> Markup:
    """Episode returns over the run, as an SVG picture."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    metrics = [m for m in run.metrics() if m["episodes"] > 0]
    figure = Figure(figsize=(8, 4), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    steps, returns = np.array([m["steps"] for m in metrics]), np.array([m["episode_return"] for m in metrics])
    if len(metrics):
        axes.plot(steps / 1e3, returns, color="#9db8d9", linewidth=0.8, label="episodes of an iteration (noisy policy)")
        window = min(len(returns), 9)
        smooth = np.convolve(returns, np.ones(window) / window, mode="valid")
        axes.plot(
            steps[window // 2 :][: len(smooth)] / 1e3,
            smooth,
            color="#1f4e8c",
            linewidth=1.8,
            label=f"mean of {window} iterations",
        )
    for row, colour in zip([r for r in rows if r.who in ("expert", "random actions")], ("#a33", "#393"), strict=False):
        axes.axhline(row.mean, color=colour, linestyle="--", linewidth=1, label=f"{row.who}: {row.mean:,.0f}")
    axes.set(xlabel="environment steps (thousands)", ylabel="return (environment's own)")
    axes.legend(frameon=False, fontsize=8, loc="center right")
    axes.spines[["top", "right"]].set_visible(False)
    text = io.StringIO()
    figure.savefig(text, format="svg")
    return Markup(text.getvalue()[text.getvalue().index("<svg") :])  # matplotlib escapes what it writes


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{title}}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; } th, td { padding: .3rem .9rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; } svg { width: 100%; height: auto; }
pre { background: #f6f6f6; padding: 1rem; overflow-x: auto; font-size: 13px; }
</style></head><body>
<h1>{{title}}</h1>
<p>Returns are the environment's own, with the most likely action, over fresh seeds.
Training: {{took}}, seed {{seed}}.</p>
<table><thead><tr>{{head}}</tr></thead><tbody>{{body}}</tbody></table>
<h2>Learning curve</h2>
{{curve}}
<h2>Settings</h2>
<details><summary>all settings of the run</summary><pre>{{settings}}</pre></details>
</body></html>
"""


def page(run: Run, rows: list[Row]) -> str:
    """The page: opens from disk without a network; everything from the run is escaped."""
    config, metrics = run.config, run.metrics()
    return fill(
        _PAGE,
        title=f"{config.method} on {config.env}",
        took=f"{metrics[-1]['steps']:,.0f} steps in {metrics[-1]['seconds']:,.0f} s" if metrics else "",
        seed=config.seed,
        head=[fill("<th>{{name}}</th>", name=name) for name in ("", "mean return", "± std", "episodes", "of the expert")],
        body=[fill("<tr>{{cells}}</tr>", cells=[fill("<td>{{cell}}</td>", cell=c) for c in cells]) for cells in _cells(rows)],
        curve=learning_curve(run, rows),
        settings=config.to_json(),
    )
