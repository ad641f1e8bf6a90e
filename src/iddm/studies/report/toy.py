"""The toy study for people to look at: the paper's Fig. 1a, 1b and 1c, and its table beside ours."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from iddm.envs.gridworld import draw_maze
from iddm.files import write_whole
from iddm.studies.toy import CHOICES, METHODS, PAPER, ToyRow
from iddm.theory.toy import approximate_disagreement

COLOURS = {"gail": "#555555", "gaifo": "#c0504d", "iddm": "#1f4e8c"}
NAMES = {"gail": "GAIL", "gaifo": "GAIfO", "iddm": "IDDM", "expert": "expert"}


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with its 95 % interval (Student's t)."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}]"


def interval(values: Sequence[float]) -> Interval:
    mean = float(np.mean(values))
    if len(values) < 2:
        return Interval(mean, float("nan"), float("nan"))
    half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return Interval(mean, mean - half, mean + half)


def column(rows: Sequence[ToyRow], num_choices: int, method: str, name: str) -> list[float]:
    """A measure by seed."""
    return [getattr(row, name) for row in rows if row.num_choices == num_choices and row.method == method]


def less_disagreement(rows: Sequence[ToyRow], num_choices: int, name: str = "disagreement") -> Interval:
    """IDDM's disagreement minus GAIfO's of the same seed, whose expert is the same."""
    iddm, gaifo = (column(rows, num_choices, method, name) for method in ("iddm", "gaifo"))
    return interval([a - b for a, b in zip(iddm, gaifo, strict=True)])


HEADINGS = ("n", "method", "return", "paper", "target", "disagreement", "KL(s,s')", "KL(s,a)")


def summary(rows: Sequence[ToyRow]) -> list[list[str]]:
    """The paper's Table 5 with the exact measures beside it: mean ± deviation over seeds; intervals for the disagreement."""
    lines = []
    for n in sorted({row.num_choices for row in rows}):
        for method in ("expert", *METHODS):
            returns, success, disagreement, kl_ss, kl_sa = (
                column(rows, n, method, name) for name in ("expected_return", "success", "disagreement", "kl_ss", "kl_sa")
            )
            expert = method == "expert"
            paper = "–" if expert or n not in CHOICES else "{} ± {}".format(*PAPER[method][CHOICES.index(n)])
            spread = np.std(returns, ddof=1) if len(returns) > 1 else float("nan")
            lines.append(
                [
                    str(n),
                    NAMES[method],
                    f"{np.mean(returns):.1f} ± {spread:.1f}",
                    paper,
                    f"{100 * np.mean(success):.1f} %",
                    "–" if expert else str(interval(disagreement)),
                    "–" if expert else f"{np.mean(kl_ss):.3f}",
                    "–" if expert else f"{np.mean(kl_sa):.2f}",
                ]
            )
    return lines


def markdown(rows: Sequence[ToyRow]) -> str:
    """Both tables, as docs/theory.md shows them."""
    lines = [f"| {' | '.join(HEADINGS)} |", "|" + "---|" * len(HEADINGS)]
    lines += [f"| {' | '.join(cells)} |" for cells in summary(rows)]
    lines += ["", "| n | IDDM − GAIfO, disagreement | the same over all names of the choices |", "|---|---|---|"]
    for n in sorted({row.num_choices for row in rows}):
        lines.append(f"| {n} | {less_disagreement(rows, n)} | {less_disagreement(rows, n, 'disagreement_relabelled')} |")
    return "\n".join(lines) + "\n"


def report_toy(rows: Sequence[ToyRow], out: Path, console: Console) -> None:
    """Print the tables and write them with the figures."""
    title = "Gridworld with n choices for each move: mean ± deviation over seeds, [95 % interval]"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    shown = [i for i, heading in enumerate(HEADINGS) if heading != "target"]  # fits 80 columns
    for i in shown:
        table.add_column(HEADINGS[i], justify="left" if HEADINGS[i] == "method" else "right", no_wrap=True)
    for cells in summary(rows):
        table.add_row(*(cells[i] for i in shown), end_section=cells[1] == NAMES[METHODS[-1]])
    console.print(table)
    console.print(f"Every policy reaches the target in {100 * min(row.success for row in rows):.1f} % of its episodes, or more.")
    for n in sorted({row.num_choices for row in rows}):
        own, over_names = less_disagreement(rows, n), less_disagreement(rows, n, "disagreement_relabelled")
        console.print(f"n = {n}: disagreement, IDDM − GAIfO: {own}; over all names of the choices: {over_names}", highlight=False)
    write_whole(out / "table.md", markdown(rows))
    write_whole(out / "fig1a.svg", _fig_1a())
    write_whole(out / "fig1b.png", _fig_1b())
    write_whole(out / "fig1c.svg", _fig_1c(rows))
    console.print(f"Table and figures: {out}", highlight=False)


def _figure(width: float, height: float, panels: int = 1):
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots(1, panels, squeeze=False)[0]
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _svg(figure) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _fig_1a() -> str:
    counts = range(1, 21)
    estimates = [approximate_disagreement(k) for k in counts]
    mean, half = np.array([e.mean for e in estimates]), 1.96 * np.array([e.standard_error for e in estimates])
    figure, (axes,) = _figure(5, 3.4)
    axes.plot(counts, mean, color="#1f4e8c", marker="o", markersize=3)
    axes.fill_between(counts, mean - half, mean + half, color="#1f4e8c", alpha=0.25, linewidth=0)
    axes.axhline(0.5, color="#999", linestyle=":", linewidth=1)
    axes.text(20, 0.49, "limit ½", ha="right", va="top", color="#666", fontsize=8)
    axes.set(xlabel="number of action choices", ylabel="disagreement (nats)", xticks=[1, 5, 10, 15, 20])
    return _svg(figure)


def _fig_1b() -> bytes:
    from matplotlib.image import imsave

    data = io.BytesIO()
    imsave(data, draw_maze(), format="png")
    return data.getvalue()


def _fig_1c(rows: Sequence[ToyRow]) -> str:
    figure, panels = _figure(11, 3.6, 3)
    choices = sorted({row.num_choices for row in rows})
    place = np.arange(len(choices))
    for i, method in enumerate(METHODS):
        x = place + 0.1 * (i - 1)
        for axes, name in zip(panels, ("expected_return", "disagreement", "kl_ss"), strict=True):
            by_choice = [column(rows, n, method, name) for n in choices]
            means = [interval(values) for values in by_choice]
            error = [[m.mean - m.low for m in means], [m.high - m.mean for m in means]]
            if np.isnan(error).any():  # one seed has no interval
                error = None
            axes.errorbar(x, [m.mean for m in means], error, color=COLOURS[method], marker="o", markersize=4, label=NAMES[method])
            for position, values in zip(x, by_choice, strict=True):
                axes.scatter([position] * len(values), values, s=5, color=COLOURS[method], alpha=0.4, linewidths=0)
        if method != "gail":  # GAIL sees the choices' names
            over_names = [interval(column(rows, n, method, "disagreement_relabelled")).mean for n in choices]
            label = "over all names of the choices" if method == METHODS[-1] else None
            panels[1].plot(x, over_names, color=COLOURS[method], marker="D", markerfacecolor="none", linestyle="", label=label)
        known = [(p, PAPER[method][CHOICES.index(n)][0]) for p, n in zip(x, choices, strict=True) if n in CHOICES]
        label = "the paper's" if method == METHODS[-1] else None
        panels[0].plot(*zip(*known, strict=True), color=COLOURS[method], marker="x", markersize=4, linestyle=":", label=label)
    titles = ("return (exact expectation)", "inverse dynamics disagreement (nats)", "KL(ρ_π(s,s') ‖ ρ_E(s,s')) (nats)")
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("choices for each move")
        axes.set_xticks(place, [str(n) for n in choices])
    panels[2].set_ylim(bottom=0)
    for axes in panels[:2]:
        axes.legend(frameon=False, fontsize=8)
    return _svg(figure)
