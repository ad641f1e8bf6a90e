"""The results of the studies as one self-contained page that opens without a network."""

import base64
import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich.console import Console

from iddm.errors import UserError
from iddm.files import write_whole
from iddm.report.table import Sheet, marked_up, name_of, to_html
from iddm.studies.report import charts as study_charts
from iddm.studies.report.docs import write_docs
from iddm.studies.report.film import Strip, film_strips, strips_html
from iddm.studies.report.tables import QUICK, every_cell, tables
from iddm.studies.report.toy import HEADINGS, summary
from iddm.studies.results import Results
from iddm.studies.spec import EXPERT, STUDIES
from iddm.studies.statistics import aggregate_iqm
from iddm.studies.study_results import Answer, answer
from iddm.studies.toy import read_rows

WEIGHTS = ("lambda_p", "lambda_s")
"""Studies of one weight, whose curves are drawn."""

_FILES = files("iddm") / "report" / "page"


def report_studies(
    directory: Path, out: Path, console: Console, docs: bool = False, film: bool = False, runs: Path | None = None
) -> None:
    """Write the page of the studies' results, and on request the tables of the docs in the current directory."""
    results = Results.load(directory)
    if not results.outcomes:
        raise UserError(f"{directory}: there are no results of studies here yet.")
    if docs:
        for path in write_docs(results, Path()):
            console.print(f"Tables: {path}", highlight=False)
    strips = film_strips(results, runs) if film else []
    write_whole(out, study_page(results, toy=directory.parent / "toy", strips=strips))
    console.print(f"Page: {out} ({len(results.outcomes)} runs)", highlight=False)


def study_page(results: Results, toy: Path | None = None, strips: Sequence[Strip] = ()) -> str:
    """The page; everything from the results is escaped."""
    known = {name: answer(results, study) for name, study in STUDIES.items()}
    headline, lead = _headline(known["table2"])
    by_method = {"curves": study_charts.curves(known["curves"], results)}
    if known["demos"].says_something:
        by_method["demos"] = study_charts.demos(known["demos"])
    by_weight = {name: study_charts.by_weight(known[name], results) for name in WEIGHTS if known[name].says_something}
    charts = {name: some for name, some in (by_method | by_weight).items() if some}
    sections = [
        *_study_sections(results, known, charts),
        _toy(toy),
        strips_html(strips),
        _section("Every run", "", _runs(results)),
    ]
    drawn = {"methods": study_charts.methods_of(chart for some in by_method.values() for chart in some), "charts": charts}
    return _fill(
        (_FILES / "page.html").read_text(),
        style=(_FILES / "style.css").read_text(),
        script="".join((_FILES / name).read_text() for name in ("readout.js", "charts.js")),
        headline=html.escape(headline),
        lead=html.escape(lead),
        facts=html.escape(_facts(results)),
        sections="\n".join(filter(None, sections)),
        data=json.dumps(drawn).replace("<", "\\u003c"),  # no text can end the script
    )


def _fill(template: str, **parts: str) -> str:
    """Put the parts in, all in one pass: a part that looks like a place is left alone."""
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], template)


def _headline(known: Answer) -> tuple[str, str]:
    """What came out, in a sentence, and what it rests on."""
    scores = known.scores.get("iddm", {})
    if not scores:
        return "No headline yet", "It needs runs of IDDM, of random actions and of the expert on the same task."
    estimate = aggregate_iqm(scores)
    over = f"{len(scores)} of 6 tasks" if len(scores) < 6 else "6 tasks"
    sure = f"95 % interval {100 * estimate.low:.0f} to {100 * estimate.high:.0f} %"
    interval = sure if estimate.low == estimate.low else "too few seeds for an interval"
    lead = (
        f"Interquartile mean over {_many(sum(map(len, scores.values())), 'run')} of IDDM, {interval}. "
        "Scores are normalised for each task: random actions are 0 %, the expert is 100 %."
    )
    if known.quick:
        return f"A quick look: IDDM at {100 * estimate.value:.0f} % of the expert on {over}", f"{QUICK} {lead}"
    return f"IDDM reaches {100 * estimate.value:.0f} % of the expert over {over}", lead


def _facts(results: Results) -> str:
    rows = results.rows
    seeds: dict[tuple[str, str, str], set[int]] = {}
    for row in rows:
        if row.method != EXPERT:
            seeds.setdefault((row.task, row.method, row.settings), set()).add(row.seed)
    counts = [len(some) for some in seeds.values()] or [0]
    several = f"{min(counts)} to " if min(counts) < max(counts) else ""
    seconds = [o.about.get("seconds") for o in results.outcomes.values()]
    minutes = sum(some for some in seconds if isinstance(some, int | float)) / 60
    parts = (
        _many(len(rows), "run"),
        _many(len({row.task for row in rows}), "task"),
        _many(len({row.method for row in rows}), "method"),
        f"{several}{_many(max(counts), 'seed')} a cell",
        f"{minutes / 60:,.1f} hours of computing" if minutes >= 60 else f"{minutes:.0f} minutes of computing",
    )
    return " · ".join(parts)


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _section(title: str, words: str, *parts: str) -> str:
    said = f"<p>{html.escape(words)}</p>" if words else ""
    return f"<section><h2>{marked_up(title)}</h2>{said}{''.join(parts)}</section>"


def _fold(title: str, inside: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary>{inside}</details>"


_SWITCHES = '<fieldset class="switches" aria-label="lines to show"></fieldset><noscript>The charts need JavaScript.</noscript>'


def _study_sections(results: Results, known: dict[str, Answer], charts: dict[str, Any]) -> list[str]:
    sheets = {name: to_html(sheet) for name, sheet in tables(results).items()}
    title = {name: study.title for name, study in STUDIES.items()}
    parts = []
    if "aggregate" in sheets:
        parts.append(
            _section("Over all tasks", "", study_charts.forest(known["table2"]), _fold("the figures", sheets["aggregate"]))
        )
    if "table2" in sheets:
        cells = _fold("interquartile means, cell by cell", to_html(every_cell(known["table2"])))
        failed = _fold("discriminators that failed", sheets["discriminators"]) if "discriminators" in sheets else ""
        parts.append(_section(title["table2"], "", sheets["table2"], cells, failed))
    if "curves" in charts:
        words = (
            "Return of the training episodes (the policy's own noise included) over environment steps: mean over seeds, with "
            "their range as a band. Dashed: the expert and random actions, evaluated."
        )
        parts.append(_section(title["curves"], words, _SWITCHES, '<div class="charts" id="curves"></div>'))
    if "demos" in charts:
        drawn = '<div class="charts" id="demos"></div>'
        switches = "" if "curves" in charts else _SWITCHES
        words = "Normalised score over the number of demonstrations: mean over seeds, with their range as a band."
        parts.append(_section(title["demos"], words, switches, drawn, _fold("the figures", sheets["demos"])))
    words = "Curve: the training episodes, with the policy's own noise. Table: the final policy, most likely action."
    weights = [
        _section(title[name], words, f'<div class="charts" id="{name}"></div>' if name in charts else "", sheets[name])
        for name in WEIGHTS
        if name in sheets
    ]
    parts.append(f'<div class="pair">{"".join(weights)}</div>' if weights else "")
    if "grid" in sheets:
        shown = study_charts.heat_map(known["grid"]), _fold("beside the paper's figures", sheets["grid"])
        parts.append(_section(title["grid"], "", *shown))
    parts += [_section(title[name], "", sheets[name]) for name in ("ant", "absorbing") if name in sheets]
    return parts


def _toy(directory: Path | None) -> str:
    """The Gridworld study, where it lies beside."""
    if directory is None or not (directory / "toy.csv").is_file():
        return ""
    sheet = Sheet(HEADINGS, tuple(tuple(row) for row in summary(read_rows(directory / "toy.csv"))), 2)
    drawn = ""
    if (directory / "fig1c.svg").is_file():
        picture = base64.b64encode((directory / "fig1c.svg").read_bytes()).decode()
        image = f'<img alt="return, disagreement and divergence by n" src="data:image/svg+xml;base64,{picture}">'
        drawn = f'<div class="scroll plate" tabindex="0" role="region" aria-label="figure">{image}</div>'
    words = (
        "n equal choices for each move, of which states show nothing; measured exactly. "
        "Mean ± deviation over seeds, [95 % interval]."
    )
    return _section(
        "Where actions are redundant: the Gridworld (the paper's Fig. 1)", words, drawn, _fold("the figures", to_html(sheet))
    )


def _runs(results: Results) -> str:
    """Where every figure comes from."""
    columns = ("task", "method", "seed", "steps", "return", "settings", "commit", "seconds", "command")
    rows = tuple(
        (
            r.task,
            name_of(r.method),
            str(r.seed),
            f"{r.steps:,}",
            f"{r.mean:,.1f} ± {r.std:,.1f}\nover {r.episodes} episodes",
            r.settings,
            str(o.about.get("commit", "–")),
            str(o.about.get("seconds", "–")),
            r.command,
        )
        for o in results.outcomes.values()
        for r in [o.result]
    )
    table = to_html(Sheet(columns, rows, len(columns)), mark="")
    return _fold(f"{len(rows)} runs: command, commit, seconds and settings", f'<div class="runs">{table}</div>')
