"""The tables and figures of the Gridworld study: the paper's Fig. 1a, 1b and 1c, and its table beside ours."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import rich.table
from rich.console import Console

from iddm.envs.gridworld import draw_maze
from iddm.report.svg import new_figure, to_svg
from iddm.report.table import NOTHING, Table, to_markdown
from iddm.studies.report.formatting import NAMES
from iddm.studies.report.tables import INTERVAL
from iddm.studies.statistics import Estimate, mean_interval, paired_differences, spread
from iddm.studies.toy import CHOICES, METHODS, PAPER, ToyRow
from iddm.theory.toy import approximate_disagreement
from iddm.utils.files import write_whole

COLOURS = {"gail": "#555555", "gaifo": "#c0504d", "iddm": "#1f4e8c"}


def column(rows: Sequence[ToyRow], num_choices: int, method: str, name: str) -> list[float]:
    """A measure by seed."""
    return [getattr(row, name) for row in rows if row.num_choices == num_choices and row.method == method]


def less_disagreement(rows: Sequence[ToyRow], num_choices: int, name: str = "disagreement") -> Estimate:
    """IDDM's disagreement minus GAIfO's of the same seed, whose expert is the same."""
    iddm, gaifo = (
        {"": {row.seed: getattr(row, name) for row in rows if (row.num_choices, row.method) == (num_choices, method)}}
        for method in ("iddm", "gaifo")
    )
    return mean_interval(paired_differences(iddm, gaifo)[""])


def _text(estimate: Estimate) -> str:
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


HEADINGS = ("n", "method", "return", "paper", "target", "disagreement", "KL(s,s')", "KL(s,a)")


def summary(rows: Sequence[ToyRow]) -> Table:
    """The paper's Table 5 with the exact measures beside it."""
    lines = []
    for n in sorted({row.num_choices for row in rows}):
        for method in ("expert", *METHODS):
            returns, success, disagreement, kl_ss, kl_sa = (
                column(rows, n, method, name) for name in ("expected_return", "success", "disagreement", "kl_ss", "kl_sa")
            )
            expert = method == "expert"
            paper = NOTHING if expert or n not in CHOICES else "{} ± {}".format(*PAPER[method][CHOICES.index(n)])
            lines.append(
                (
                    str(n),
                    NAMES.get(method, method),
                    f"{spread(returns).mean:.1f} ± {spread(returns).std:.1f}",
                    paper,
                    f"{100 * np.mean(success):.1f} %",
                    NOTHING if expert else _text(mean_interval(disagreement)),
                    NOTHING if expert else f"{np.mean(kl_ss):.3f}",
                    NOTHING if expert else f"{np.mean(kl_sa):.2f}",
                )
            )
    return Table(HEADINGS, tuple(lines), 2, f"Mean ± standard deviation over seeds. Disagreement: mean [{INTERVAL}].")


def comparison(rows: Sequence[ToyRow]) -> Table:
    """IDDM's disagreement against GAIfO's, seed by seed."""
    lines = tuple(
        (str(n), _text(less_disagreement(rows, n)), _text(less_disagreement(rows, n, "disagreement_relabelled")))
        for n in sorted({row.num_choices for row in rows})
    )
    caption = "Mean difference between runs with the same seed [95 % interval: Student's t]."
    return Table(("n", "IDDM − GAIfO, disagreement", "the same over all names of the choices"), lines, caption=caption)


def markdown(rows: Sequence[ToyRow]) -> str:
    """Both tables, as docs/theory.md shows them."""
    return f"{to_markdown(summary(rows))}\n\n{to_markdown(comparison(rows))}\n"


def report_toy(rows: Sequence[ToyRow], out: Path, console: Console) -> None:
    """Print the tables and write them with the figures."""
    title = "Gridworld with n choices per move: mean ± standard deviation over seeds, [95 % interval]"
    printed = rich.table.Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    shown = [i for i, heading in enumerate(HEADINGS) if heading != "target"]  # fits 80 columns
    for i in shown:
        printed.add_column(HEADINGS[i], justify="left" if HEADINGS[i] == "method" else "right", no_wrap=True)
    for cells in summary(rows).rows:
        printed.add_row(*(cells[i] for i in shown), end_section=cells[1] == NAMES[METHODS[-1]])
    console.print(printed)
    console.print(f"Every policy reaches the target in at least {100 * min(row.success for row in rows):.1f} % of its episodes.")
    for n, own, over_names in comparison(rows).rows:
        console.print(f"n = {n}: disagreement, IDDM − GAIfO: {own}; over all names of the choices: {over_names}", highlight=False)
    write_whole(out / "table.md", markdown(rows))
    write_whole(out / "fig1a.svg", _fig_1a())
    write_whole(out / "fig1b.png", _fig_1b())
    write_whole(out / "fig1c.svg", fig_1c(rows))
    console.print(f"Table and figures: {out}", highlight=False)


def _fig_1a() -> str:
    counts = range(1, 21)
    estimates = [approximate_disagreement(k) for k in counts]
    mean, half = np.array([e.mean for e in estimates]), 1.96 * np.array([e.standard_error for e in estimates])
    figure, (axes,) = new_figure(5, 3.4)
    axes.plot(counts, mean, color="#1f4e8c", marker="o", markersize=3)
    axes.fill_between(counts, mean - half, mean + half, color="#1f4e8c", alpha=0.25, linewidth=0)
    axes.axhline(0.5, color="#999", linestyle=":", linewidth=1)
    axes.text(20, 0.49, "limit ½", ha="right", va="top", color="#666", fontsize=8)
    axes.set(xlabel="number of action choices", ylabel="disagreement (nats)", xticks=[1, 5, 10, 15, 20])
    return to_svg(figure)


def _fig_1b() -> bytes:
    from matplotlib.image import imsave

    data = io.BytesIO()
    imsave(data, draw_maze(), format="png")
    return data.getvalue()


def fig_1c(rows: Sequence[ToyRow]) -> str:
    figure, panels = new_figure(11, 3.6, 3)
    choices = sorted({row.num_choices for row in rows})
    place = np.arange(len(choices))
    for i, method in enumerate(METHODS):
        x = place + 0.1 * (i - 1)
        for axes, name in zip(panels, ("expected_return", "disagreement", "kl_ss"), strict=True):
            by_choice = [column(rows, n, method, name) for n in choices]
            means = [mean_interval(values) for values in by_choice]
            error = [[m.value - m.low for m in means], [m.high - m.value for m in means]]
            if np.isnan(error).any():  # one seed has no interval
                error = None
            axes.errorbar(
                x, [m.value for m in means], error, color=COLOURS[method], marker="o", markersize=4, label=NAMES[method]
            )
            for position, values in zip(x, by_choice, strict=True):
                axes.scatter([position] * len(values), values, s=5, color=COLOURS[method], alpha=0.4, linewidths=0)
        if method != "gail":  # GAIL sees the choices' names
            over_names = [np.mean(column(rows, n, method, "disagreement_relabelled")) for n in choices]
            label = "over all names of the choices" if method == METHODS[-1] else None
            panels[1].plot(x, over_names, color=COLOURS[method], marker="D", markerfacecolor="none", linestyle="", label=label)
        known = [(p, PAPER[method][CHOICES.index(n)][0]) for p, n in zip(x, choices, strict=True) if n in CHOICES]
        label = "the paper's" if method == METHODS[-1] else None
        panels[0].plot(*zip(*known, strict=True), color=COLOURS[method], marker="x", markersize=4, linestyle=":", label=label)
    titles = ("return (exact expectation)", "inverse dynamics disagreement (nats)", "KL(ρ_π(s,s') ‖ ρ_E(s,s')) (nats)")
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("choices per move")
        axes.set_xticks(place, [str(n) for n in choices])
    panels[2].set_ylim(bottom=0)
    for axes in panels[:2]:
        axes.legend(frameon=False, fontsize=8)
    return to_svg(figure)
