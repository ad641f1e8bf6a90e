"""The weights of IDDM's own terms on HalfCheetah: the paper's Tables 6 and 7 and its Fig. 6."""

from typing import Any

from iddm.report.charts import chart
from iddm.report.markup import Markup
from iddm.report.table import Table
from iddm.studies import paper
from iddm.studies.catalogue.light import LIGHT, LIGHTLY, titled
from iddm.studies.core import Settings
from iddm.studies.report.charts import learning_curve
from iddm.studies.report.formatting import NOTHING, below_ours, interval, lines, number, published, returns
from iddm.studies.report.tables import INTERVAL, OVER_SEEDS
from iddm.studies.spec import Grid
from iddm.studies.study import Section, ShowChart, ShowHtml, ShowTable, Study
from iddm.studies.study_results import Cell, StudyResults

LAMBDAS_P = (0.0, 0.0005, 0.001, 0.01)
LAMBDAS_S = (0.0, 0.001, 0.01, 0.1)


def weights_of(cell: Cell) -> tuple[float, float]:
    """(λ_p, λ_s)"""
    return cell.setting("entropy.weight"), cell.setting("mi.weight")


def by_weights(known: StudyResults) -> Table:
    """One row per pair of weights."""
    rows = tuple(
        (f"{p:g}", f"{s:g}", lines(returns(cell), interval(cell)), published(paper.WEIGHTS.get((p, s))))
        for cell in known.cells
        for p, s in [weights_of(cell)]
    )
    return Table(("λ_p", "λ_s", "return", "paper"), rows, caption=f"HalfCheetah, {LIGHTLY}. {OVER_SEEDS} Below: [{INTERVAL}].")


def curves(known: StudyResults) -> list[dict[str, Any]]:
    """Learning curves for each value of the weight that the study varies, the higher the stronger in colour."""
    varied = [len(set(values)) > 1 for values in zip(*map(weights_of, known.cells), strict=True)].index(True)
    drawn = []
    for shade, cell in enumerate(sorted(known.cells, key=lambda cell: weights_of(cell)[varied])):
        if found := learning_curve(f"λ{'ₚₛ'[varied]} {weights_of(cell)[varied]:g}", cell):
            drawn.append({**found, "shade": shade})
    return chart(titled(known.tasks[0], list(known.cells)), drawn)


def grid(known: StudyResults) -> Table:
    """Returns with λ_p down and λ_s across."""
    found = {weights_of(cell): cell for cell in known.cells}

    def value(pair: tuple[float, float]) -> str:
        return lines(number(found[pair].spread.mean) if pair in found else NOTHING, below_ours(paper.WEIGHTS.get(pair)))

    rows = tuple((f"λ_p = {p:g}", *(value((p, s)) for s in LAMBDAS_S)) for p in LAMBDAS_P)
    seeds = sorted({cell.spread.seeds for cell in known.cells})
    count = f"{seeds[0]} per cell" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} per cell"
    caption = f"HalfCheetah, {LIGHTLY}. Mean over seeds ({count})."
    return Table(("", *(f"λ_s = {s:g}" for s in LAMBDAS_S)), rows, caption=caption)


def heat_map(known: StudyResults) -> str:
    """Returns by λ_p (down) and λ_s (across), the higher the stronger the colour, with the scale of the colours."""
    found = {weights_of(cell): cell.spread.mean for cell in known.cells}
    low, high = min(found.values()), max(found.values())
    head = "".join(f'<th scope="col">{s:g}</th>' for s in LAMBDAS_S)
    rows = ""
    for p in LAMBDAS_P:
        cells = ""
        for pair in ((p, s) for s in LAMBDAS_S):
            if pair not in found:
                cells += "<td>–</td>"
                continue
            strength = (found[pair] - low) / (high - low) if high > low else 0.5
            strong = ' class="strong"' if strength > 0.5 else ""
            cells += f'<td{strong} style="--heat:{100 * strength:.0f}%">{number(found[pair])}</td>'
        rows += f'<tr><th scope="row">{p:g}</th>{cells}</tr>'
    caption = "<caption>return by λ<sub>p</sub> (down) and λ<sub>s</sub> (across), HalfCheetah, lighter runs</caption>"
    table = f'<table class="heat">{caption}<thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table>'
    scale = f'<p class="heat-scale"><span>{number(low)}</span><i></i><span>{number(high)}</span></p>'
    return Markup(f'<div class="scroll" tabindex="0" role="region" aria-label="heat map">{table}{scale}</div>')


def _weights(lambda_p: float, lambda_s: float) -> Settings:
    return {"entropy.weight": lambda_p, "mi.weight": lambda_s, **LIGHT}


def _pairs(pairs: list[tuple[float, float]]) -> tuple[Grid, ...]:
    return (Grid(("HalfCheetah",), ("iddm",), tuple(_weights(p, s) for p, s in pairs)),)


def _section(name: str) -> tuple[Section, ...]:
    words = (
        f"Runs {LIGHTLY}. Curve: the training episodes, with the policy's own noise. Table: the final policy, most likely action."
    )
    return (Section((ShowChart(curves, by_method=False), ShowTable(name, by_weights)), words=words, half=True),)


LAMBDA_P = Study(
    "lambda_p",
    "Weight of the policy's entropy λ_p, with λ_s = 0.01",
    _pairs([(p, 0.01) for p in LAMBDAS_P]),
    in_paper="Table 6",
    sections=_section("lambda_p"),
)

LAMBDA_S = Study(
    "lambda_s",
    "Weight of the mutual information λ_s, with λ_p = 0.001",
    _pairs([(0.001, s) for s in LAMBDAS_S]),
    in_paper="Table 7",
    sections=_section("lambda_s"),
)

GRID = Study(
    "grid",
    "Both weights together",
    _pairs([(p, s) for p in LAMBDAS_P for s in LAMBDAS_S]),
    seeds=1,
    in_paper="Fig. 6",
    sections=(Section((ShowHtml(heat_map), ShowTable("grid", grid, fold="beside the paper's numbers"))),),
)
