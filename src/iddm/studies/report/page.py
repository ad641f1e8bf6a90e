"""The results of the studies as one self-contained page that opens without a network."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console

from iddm.errors import UserError
from iddm.report.html_page import fold, html_page, identity, refuse_other_page, section
from iddm.report.markup import Markup, fill
from iddm.report.table import Table, to_html
from iddm.studies.catalogue import STUDIES
from iddm.studies.catalogue.table2 import TABLE_2, where_it_counts
from iddm.studies.own_study import COPY, OwnStudy, read_study
from iddm.studies.report.charts import methods_of
from iddm.studies.report.docs import QUICK, made, write_docs
from iddm.studies.report.film import Strip, film_strips, kept_films, strips_html
from iddm.studies.report.formatting import NAMES, listed, name_of
from iddm.studies.results import Results
from iddm.studies.spec import EXPERT, SIX
from iddm.studies.statistics import Estimate, mean_interval, mean_over_tasks, paired_differences
from iddm.studies.study import Section, ShowChart, ShowTable, Study
from iddm.studies.study_results import StudyResults
from iddm.utils.files import write_whole

_SWITCHES = Markup(
    '<fieldset class="switches" aria-label="lines to show"></fieldset><noscript>The charts need JavaScript.</noscript>'
)


def report_studies(
    directory: Path, out: Path, console: Console, docs: bool = False, film: bool = False, runs: Path | None = None
) -> None:
    """Write the page of the studies' results, and on request the tables of the docs in the current directory."""
    results = Results.load(directory)
    if not results.outcomes:
        raise UserError(f"{directory}: there are no results of studies here yet.")
    own = read_study(directory / COPY) if (directory / COPY).is_file() else None
    if own is not None and docs:
        raise UserError(f"{directory} has the results of a study of your own; --docs is for those of the catalogue.")
    refuse_other_page(out, _identity(directory))
    if docs:
        for path in write_docs(results, Path(), directory):
            console.print(f"Tables: {path}", highlight=False)
    strips = film_strips(results, runs) if film and own is None else []
    write_whole(out, study_page(results, directory, strips, own))
    console.print(f"Page: {out} ({len(results.outcomes)} runs)", highlight=False)


def study_page(results: Results, directory: Path | None = None, strips: Sequence[Strip] = (), own: OwnStudy | None = None) -> str:
    """The page of the catalogue's studies, or of a user's own; everything from the results is escaped."""
    if own is None:
        title, studies = "IDDM: results of the studies", list(STUDIES.values())
        headline, lead = _headline(TABLE_2.results(results))
    else:
        title, studies, headline = own.title, [own], own.title
        lead = f"{QUICK} " if own.results(results).quick else ""
        lead += "Returns are the environment's own, with the most likely action, over fresh seeds."
    sections, charts, by_method = _sections(studies, results, directory)
    return html_page(
        title,
        headline,
        lead,
        _facts(results),
        [*sections[:1], kept_films(directory), *sections[1:], strips_html(strips), section("Every run", "", _runs(results))],
        {"methods": methods_of(by_method), "charts": charts},
        _identity(directory),
    )


def _identity(directory: Path | None) -> str:
    """Of the page of these results, which may grow."""
    return identity("studies", str((directory or Path()).resolve()))


def _headline(known: StudyResults) -> tuple[str, str]:
    """What came out, in a sentence with the lowest task, and what it rests on."""
    scores = known.scores.get("iddm", {})
    if not scores:
        return "No headline yet", "It needs runs of IDDM, of random actions and of the expert on the same task."
    over = f"{len(scores)} of {len(SIX)} tasks" if len(scores) < len(SIX) else f"{len(SIX)} tasks"
    overall = mean_over_tasks(scores)
    by_task = {task: mean_interval(values).value for task, values in scores.items()}
    lowest = min(by_task, key=lambda task: by_task[task])
    reached = f"{100 * overall.value:.0f} % of the expert over {over}"
    reached += f" ({100 * by_task[lowest]:.0f} % on {lowest}, the lowest)" if len(scores) > 1 else ""
    lead = (
        f"Mean over {_many(sum(map(len, scores.values())), 'run')} of IDDM, {_sure(overall)}. "
        f"Scores are normalised for each task: random actions are 0 %, the expert is 100 %.{_against_gaifo(known)}"
    )
    ceiling = [task for task in known.tasks_at_ceiling if task in scores]
    if ceiling and (rest := where_it_counts(known, scores)):
        lead += (
            f" A constant reward solves {listed(ceiling)}; on the other tasks, "
            f"IDDM reaches {100 * rest.value:.0f} % ({_sure(rest)})."
        )
    if known.quick:
        return f"A quick look: IDDM at {reached}", f"{QUICK} {lead}"
    return f"IDDM reaches {reached}", lead


def _against_gaifo(known: StudyResults) -> str:
    """IDDM minus GAIfO, which differs by IDDM's own terms alone: runs with the same seed, tasks of equal weight."""
    pairs = paired_differences(known.scores_by_seed("iddm"), known.scores_by_seed("gaifo"))
    if not pairs:
        return ""
    mean, count = mean_over_tasks(pairs), sum(map(len, pairs.values()))
    sure = (
        f"95 % interval {100 * mean.low:+.1f} to {100 * mean.high:+.1f}" if mean.has_interval else "too few seeds for an interval"
    )
    over = f"over {_many(count, 'pair')} of runs with the same seed"
    return f" IDDM minus GAIfO: {100 * mean.value:+.1f} percentage points {over} ({sure})."


def _sure(estimate: Estimate) -> str:
    interval = f"95 % interval {100 * estimate.low:.0f} to {100 * estimate.high:.0f} %"
    return interval if estimate.has_interval else "too few seeds for an interval"


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
        f"{several}{_many(max(counts), 'seed')} per cell",
        f"{minutes / 60:,.1f} hours of computing" if minutes >= 60 else f"{minutes:.0f} minutes of computing",
    )
    return " · ".join(parts)


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _sections(studies: Sequence[Study], results: Results, directory: Path | None) -> tuple[list[str], dict[str, Any], list[Any]]:
    """The studies' sections, their charts by the id of their place, and those charts whose lines are methods'."""
    charts: dict[str, list[Any]] = {}
    by_method: list[Any] = []

    def shown(study: Study, each: Section, known: Any) -> str:
        parts = []
        for part in each.parts:
            if isinstance(part, ShowTable):
                table = made(part, known)
                text = to_html(table, highlight=NAMES["iddm"]) if table.rows else ""
                parts.append(fold(part.fold, text) if part.fold and text else text)
            elif isinstance(part, ShowChart):
                if drawn := part.make(known):
                    name = study.name if study.name not in charts else f"{study.name}-{len(charts)}"
                    charts[name] = drawn
                    parts.append(_SWITCHES if part.by_method and not by_method else "")
                    parts.append(fill('<div class="charts" id="{{name}}"></div>', name=name))
                    by_method.extend(drawn if part.by_method else [])
            else:
                parts.append(part.make(known))
        return section(each.title or study.heading, each.words, *parts) if any(parts) else ""

    found = [
        (each.half, text)
        for study in studies
        if (known := study.to_show(results, directory))
        for each in study.sections
        if (text := shown(study, each, known))
    ]
    sections = []
    for half, some in groupby(found, key=lambda entry: entry[0]):
        texts = [text for _, text in some]
        sections += [fill('<div class="pair">{{texts}}</div>', texts=texts)] if half else texts
    return sections, charts, by_method


def _runs(results: Results) -> str:
    """Where every number comes from."""
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
    table = fill('<div class="runs">{{table}}</div>', table=to_html(Table(columns, rows, len(columns))))
    return fold(f"{len(rows)} runs: command, commit, seconds and settings", table)
