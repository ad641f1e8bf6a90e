"""A run set beside random actions and the expert: a table for the terminal, and one self-contained page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from iddm.bundled import bundled_expert
from iddm.config import changed_settings, command_of
from iddm.doctor import diagnose
from iddm.envs.spec import EnvSpec, MakeEnv
from iddm.errors import UserError
from iddm.evaluation import Evaluation, env_of, evaluate
from iddm.report.film import film_run
from iddm.report.html_page import fold, html_page, identity, refuse_other_page, section
from iddm.report.markup import Markup, fill
from iddm.report.pictures import Camera
from iddm.report.run_charts import run_charts
from iddm.report.table import NOTHING, Table, for_terminal, to_html
from iddm.training.run_dir import Run
from iddm.utils.files import write_whole

CAMERA = Camera(seconds=4.0, fps=12, width=280, height=210)
EXPERT, RANDOM = "expert", "random actions"


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    who: str
    mean: float
    std: float
    episodes: int
    share: float | None
    """Of the way from random actions to the expert."""
    length: float | None = None
    """Mean steps of an episode."""


def report_run(
    path: str | Path,
    out: str | Path | None,
    episodes: int,
    console: Console,
    env: str | MakeEnv | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    film: bool = True,
) -> list[Row]:
    """Evaluate a run beside random actions and its expert, print the table, and write the page (into the run, unless told)."""
    run = Run.open(path)
    out = run.path / "report.html" if out is None else Path(out)
    if not run.finished:
        raise UserError(f"{path}: the run is not finished; continue it with: iddm train --resume {path}")
    refuse_other_page(out, identity_of(run))
    rows = compare(run, episodes, env, env_kwargs)
    console.print(for_terminal(f"{run.config.env}: the environment's own return", _table(rows)))
    findings = [sentence for _, sentence in diagnose(path, None, env, env_kwargs)]
    shown = _film(run, env, env_kwargs) if film else Markup()
    write_whole(out, page(run, rows, findings, shown))
    console.print(f"Page: {out}", highlight=False)
    return rows


def identity_of(run: Run) -> str:
    """Of a run's page: its settings and its demonstrations."""
    return identity("run", run.config.to_json(), "" if run.demos is None else run.demos.sha256)


def compare(run: Run, episodes: int, env: str | MakeEnv | None = None, env_kwargs: Mapping[str, Any] | None = None) -> list[Row]:
    """Random actions, the learned policy, and the expert that the run imitated, all in the run's own environment."""
    policy = run.policy
    spec = env_of(policy).own(env, env_kwargs)
    random = evaluate("random", env=spec, episodes=episodes)
    imitator = evaluate(policy, env=spec, episodes=episodes)
    expert = _expert(run, spec, episodes)
    rows = [(RANDOM, random), (run.config.method, imitator), (EXPERT, expert)]
    return [_row(who, e, _share(e, random, expert)) for who, e in rows if e is not None]


def _expert(run: Run, spec: EnvSpec, episodes: int) -> Evaluation | None:
    """The bundled expert where the run imitated it, else the recorded returns of its demonstrations, where they are known."""
    demos = run.demos
    if demos is not None and demos.bundled_task is not None:
        return evaluate(bundled_expert(demos.bundled_task), env=spec, episodes=episodes)
    return None if demos is None or demos.returns is None else Evaluation(spec.id, np.array(demos.returns))


def _share(who: Evaluation, random: Evaluation, expert: Evaluation | None) -> float | None:
    gap = 0.0 if expert is None else expert.mean - random.mean
    return (who.mean - random.mean) / gap if gap else None


def _row(who: str, found: Evaluation, share: float | None) -> Row:
    length = None if found.lengths is None else float(found.lengths.mean())
    return Row(who, found.mean, found.std, len(found.returns), share, length)


def _table(rows: list[Row]) -> Table:
    cells = tuple(
        (
            r.who,
            f"{r.mean:,.1f}",
            f"{r.std:,.1f}",
            str(r.episodes),
            NOTHING if r.length is None else f"{r.length:,.0f}",
            NOTHING if r.share is None else f"{100 * r.share:.1f} %",
        )
        for r in rows
    )
    return Table(("", "mean return", "± std", "episodes", "steps each", "of the expert"), cells)


def _film(run: Run, env: str | MakeEnv | None, env_kwargs: Mapping[str, Any] | None) -> Markup:
    """The film, or why there is none."""
    try:
        shown = film_run(run, CAMERA, env, env_kwargs).html("The expert beside the imitator")
        return section("How it looks", "The start of the first evaluation episode, in real time.", shown)
    except UserError as error:
        return section("How it looks", f"There is no film: {error}")


def page(run: Run, rows: list[Row], findings: Sequence[str] = (), film: str = "") -> str:
    """The page: opens from disk without a network; everything from the run is escaped."""
    title = f"{run.config.method} on {run.config.env}"
    learned = next((row for row in rows if row.who == run.config.method), None)
    reached = "" if learned is None else f": a return of {learned.mean:,.0f}"
    if learned is not None and learned.share is not None:
        reached = f" reaches {100 * learned.share:.0f} % of the expert"
    charts = run_charts(run, {row.who.split()[0]: row.mean for row in rows if row.who in (EXPERT, RANDOM)})
    return html_page(
        title,
        title + reached,
        "Returns are the environment's own, with the most likely action, over fresh seeds. Random actions are 0 % of the expert.",
        _facts(run),
        [
            film,
            section("Return", "", to_html(_table(rows), highlight=run.config.method)),
            section("How it learned", CHARTS_ARE, Markup('<div class="charts" id="run"></div>')) if charts else "",
            section("What doctor says", "", _said(findings)),
            section("What made it", "", *_made_by(run)),
        ],
        {"methods": [], "charts": {"run": charts} if charts else {}},
        identity_of(run),
    )


CHARTS_ARE = (
    "Over environment steps (bc: epochs). Length, closeness and held-out are of evaluations with the most likely actions; the "
    "rest is of training, where actions have noise. Dashed: expert and random actions, evaluated; the demonstrations' length."
)


def _facts(run: Run) -> str:
    metrics, about = run.metrics(), run.about
    parts = [f"{metrics[-1]['steps']:,.0f} steps in {metrics[-1]['seconds']:,.0f} s"] if metrics else []
    parts.append(f"seed {run.config.seed}")
    if about is not None:
        code = f"iddm {about.version}" + (f", commit {about.commit}" if about.commit else "")
        parts += [f"began {about.began[:16].replace('T', ' ')} UTC", code]
    return " · ".join(parts)


def _said(findings: Sequence[str]) -> Markup:
    if not findings:
        return Markup("<p>Nothing wrong found.</p>")
    return fill('<ul class="findings">{{said}}</ul>', said=[fill("<li>{{text}}</li>", text=text) for text in findings])


def _made_by(run: Run) -> list[Markup]:
    """Demonstrations, command, the settings that differ from the defaults, and all settings."""
    config, demos = run.config, run.demos
    parts = [fill('<pre class="command">{{command}}</pre>', command=command_of(config))]
    if demos is not None:
        many = f"{demos.num_episodes:,} episode{'' if demos.num_episodes == 1 else 's'}, {demos.num_transitions:,} transitions"
        parts.append(fill("<p>Demonstrations: {{source}}, {{many}}.</p>", source=demos.source, many=many))
    changed = tuple((name.replace("_", "-"), str(value)) for name, value in changed_settings(config).items())
    if changed:
        parts.append(to_html(Table(("setting that differs from the default", "value"), changed, 2)))
    everything = fill("<pre>{{settings}}</pre>", settings=config.to_json())
    return [*parts, fold("all settings of the run", everything)]
