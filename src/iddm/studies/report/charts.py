"""What the studies' page draws: learning curves, demonstrations needed, the two weights, and all tasks at once."""

import html
from collections.abc import Iterable, Sequence
from itertools import groupby
from math import isfinite
from typing import Any

import numpy as np

from iddm.report.table import NAMES, figure, name_of, share
from iddm.studies.report.tables import amount, by_amount, weights_of
from iddm.studies.results import Results
from iddm.studies.spec import CONTROLS, EXPERT, LAMBDA_P, LAMBDA_S, UNTRAINED
from iddm.studies.statistics import aggregate_iqm
from iddm.studies.study_results import Answer, Cell

Points = Sequence[tuple[float, float]]


def line(method: str, seeds: Sequence[Points]) -> dict[str, Any] | None:
    """A method's line: mean and range over seeds where all seeds have points, and each seed."""
    seeds = [known for points in seeds if (known := sorted((x, y) for x, y in points if isfinite(y)))]
    if not seeds:
        return None
    first, last = max(points[0][0] for points in seeds), min(points[-1][0] for points in seeds)
    x = sorted({step for points in seeds for step, _ in points if first <= step <= last})
    y = np.array([np.interp(x, [step for step, _ in points], [value for _, value in points]) for points in seeds])
    return _drawn(method, x, y.T, seeds)


def _drawn(
    method: str, x: Sequence[float], values: Sequence[Sequence[float]] | np.ndarray, seeds: Sequence[Points]
) -> dict[str, Any]:
    """Mean and range of the values at each x."""
    mean, low, high = ([round(float(some(each)), 3) for each in values] for some in (np.mean, np.min, np.max))
    return {"method": method, "x": x, "mean": mean, "low": low, "high": high, "seeds": seeds}


def methods_of(charts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The methods of all charts, each once: IDDM first, controls last."""
    keys = {each["method"] for chart in charts for each in chart["lines"]}
    order = sorted(keys, key=lambda key: (key != "iddm", key in CONTROLS, [*NAMES, key].index(key)))
    return [{"key": key, "name": NAMES.get(key, key), "control": key in CONTROLS} for key in order]


def curves(known: Answer, results: Results) -> list[dict[str, Any]]:
    """A chart a task: returns of the training episodes over environment steps."""
    charts = []
    for task in known.tasks:
        cells = [c for c in known.cells if c.spec.task == task and c.spec.method not in UNTRAINED]
        lines = [line(c.spec.method, [results.outcomes[r.name].curve for r in c.results]) for c in cells]
        marks = [
            {"label": "expert" if method == EXPERT else "random", "value": round(cell.spread.mean, 3)}
            for method in (EXPERT, "random")
            if (cell := known.find(task, method)) and isfinite(cell.spread.mean)
        ]
        if any(lines):
            charts.append({"title": task, "lines": [each for each in lines if each], "marks": marks, "percent": False})
    return charts


def by_weight(known: Answer, results: Results) -> list[dict[str, Any]]:
    """Learning curves for each value of the weight that the study varies, the higher the stronger in colour."""
    varied = [len(set(values)) > 1 for values in zip(*map(weights_of, known.cells), strict=True)].index(True)
    lines = []
    for shade, cell in enumerate(sorted(known.cells, key=lambda cell: weights_of(cell)[varied])):
        name = f"λ{'ₚₛ'[varied]} {weights_of(cell)[varied]:g}"
        if drawn := line(name, [results.outcomes[r.name].curve for r in cell.results]):
            lines.append({**drawn, "shade": shade})
    return [{"title": known.tasks[0], "lines": lines, "marks": [], "percent": False}] if lines else []


def demos(known: Answer) -> list[dict[str, Any]]:
    """A chart a task: normalised scores over the number of demonstrations."""
    charts = []
    for task, cells in by_amount(known).items():
        amounts = list(dict.fromkeys(map(amount, cells)))
        by_method = groupby(sorted(cells, key=lambda cell: cell.spec.method), key=lambda cell: cell.spec.method)
        lines = [_over_amounts(method, known, list(some), amounts) for method, some in by_method]
        if any(lines):
            marks = [{"label": "expert", "value": 100}, {"label": "random", "value": 0}]
            lines = [each for each in lines if each]
            charts.append({"title": task, "lines": lines, "marks": marks, "percent": True, "ticks": amounts})
    return charts


def _over_amounts(method: str, known: Answer, cells: list[Cell], amounts: list[str]) -> dict[str, Any] | None:
    """A method's normalised scores in percent over the places of the amounts, which may have different seeds."""
    seeds: dict[int, list[tuple[float, float]]] = {}
    for cell in sorted(cells, key=lambda cell: amounts.index(amount(cell))):
        scores = known.normalised({cell.spec.task: cell}).get(cell.spec.task, [])
        for result, score in zip(cell.results, scores, strict=False):
            if isfinite(score):
                seeds.setdefault(result.seed, []).append((amounts.index(amount(cell)), round(100 * score, 2)))
    points = list(seeds.values())
    x = sorted({place for some in points for place, _ in some})
    values = [[score for some in points for place, score in some if place == at] for at in x]
    return _drawn(method, x, values, points) if x else None


def heat_map(known: Answer) -> str:
    """Returns by λ_p (down) and λ_s (across), the higher the stronger the colour."""
    found = {weights_of(cell): cell.spread.mean for cell in known.cells}
    low, high = min(found.values()), max(found.values())
    head = "".join(f'<th scope="col">{s:g}</th>' for s in LAMBDA_S)
    rows = ""
    for p in LAMBDA_P:
        cells = ""
        for pair in ((p, s) for s in LAMBDA_S):
            if pair not in found:
                cells += "<td>–</td>"
                continue
            strength = (found[pair] - low) / (high - low) if high > low else 0.5
            strong = ' class="strong"' if strength > 0.5 else ""
            cells += f'<td{strong} style="--heat:{100 * strength:.0f}%">{figure(found[pair])}</td>'
        rows += f'<tr><th scope="row">{p:g}</th>{cells}</tr>'
    caption = "<caption>return by λ<sub>p</sub> (down) and λ<sub>s</sub> (across), HalfCheetah</caption>"
    table = f'<table class="heat">{caption}<thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<div class="scroll" tabindex="0" role="region" aria-label="heat map">{table}</div>'


def forest(known: Answer) -> str:
    """Every method's IQM over all tasks with its interval, on one scale from random actions to the expert."""
    scores = {method: by_task for method, by_task in known.scores.items() if by_task and method not in UNTRAINED}
    estimates = {method: aggregate_iqm(by_task) for method, by_task in scores.items()}
    ends = [end for e in estimates.values() for end in (e.value, e.low, e.high) if end == end] + [0.0, 1.0]
    bottom, top = min(ends), max(ends)
    place = lambda value: f"{100 * (value - bottom) / (top - bottom):.2f}%"  # noqa: E731
    rows = ""
    for method, e in sorted(estimates.items(), key=lambda item: -item[1].value):
        interval = f'<i style="left:{place(e.low)};right:calc(100% - {place(e.high)})"></i>' if e.low == e.low else ""
        kind = ' class="ours"' if method == "iddm" else ""
        bar = f'<span class="track">{interval}<b style="left:{place(e.value)}"></b></span>'
        rows += f"<li{kind}><span>{html.escape(name_of(method))}</span>{bar}<span>{html.escape(share(e))}</span></li>"
    ends_named = f'<s style="left:{place(0)}">random</s><s style="left:{place(1)}">expert</s>'
    scale = f'<li aria-hidden="true"><span></span><span class="scale">{ends_named}</span><span></span></li>'
    return f'<ul class="forest">{rows}{scale}</ul>'
