"""A run set beside random actions and the expert: a table for the terminal, and one self-contained page."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from iddm.bundled import bundled_expert
from iddm.envs.spec import EnvSpec, MakeEnv
from iddm.errors import UserError
from iddm.evaluation import Evaluation, env_of, evaluate
from iddm.report.html_page import fold, html_page, section
from iddm.report.markup import Markup, fill
from iddm.report.svg import new_figure, to_svg
from iddm.report.table import Table, for_terminal, to_html
from iddm.training.run_dir import Run
from iddm.utils.files import write_whole


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    who: str
    mean: float
    std: float
    episodes: int
    share: float | None
    """Of the way from random actions to the expert."""


def report_run(
    path: str | Path,
    out: str | Path,
    episodes: int,
    console: Console,
    env: str | MakeEnv | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
) -> list[Row]:
    """Evaluate a run beside random actions and its expert, print the table, and write the page."""
    run = Run.open(path)
    if not run.finished:
        raise UserError(f"{path}: the run is not finished; continue it with: iddm train --resume {path}")
    rows = compare(run, episodes, env, env_kwargs)
    console.print(for_terminal(f"{run.config.env}: the environment's own return", _table(rows)))
    write_whole(Path(out), page(run, rows))
    console.print(f"Page: {out}", highlight=False)
    return rows


def compare(run: Run, episodes: int, env: str | MakeEnv | None = None, env_kwargs: Mapping[str, Any] | None = None) -> list[Row]:
    """Random actions, the learned policy, and the expert that the run imitated, all in the run's own environment."""
    policy = run.policy
    spec = env_of(policy).own(env, env_kwargs)
    random = evaluate("random", env=spec, episodes=episodes)
    imitator = evaluate(policy, env=spec, episodes=episodes)
    expert = _expert(run, spec, episodes)
    rows = [("random actions", random), (run.config.method, imitator), ("expert", expert)]
    return [Row(who, e.mean, e.std, len(e.returns), _share(e, random, expert)) for who, e in rows if e is not None]


def _expert(run: Run, spec: EnvSpec, episodes: int) -> Evaluation | None:
    """The bundled expert where the run imitated it, else the recorded returns of its demonstrations, where they are known."""
    demos = run.demos
    if demos is not None and demos.bundled_task is not None:
        return evaluate(bundled_expert(demos.bundled_task), env=spec, episodes=episodes)
    return None if demos is None or demos.returns is None else Evaluation(spec.id, np.array(demos.returns))


def _share(who: Evaluation, random: Evaluation, expert: Evaluation | None) -> float | None:
    gap = 0.0 if expert is None else expert.mean - random.mean
    return (who.mean - random.mean) / gap if gap else None


def _table(rows: list[Row]) -> Table:
    cells = tuple(
        (r.who, f"{r.mean:,.1f}", f"{r.std:,.1f}", str(r.episodes), "–" if r.share is None else f"{100 * r.share:.1f} %")
        for r in rows
    )
    return Table(("", "mean return", "± std", "episodes", "of the expert"), cells)


def learning_curve(run: Run, rows: list[Row]) -> Markup:
    """Episode returns over the run, as an SVG picture."""
    metrics = [m for m in run.metrics() if m["episodes"] > 0]
    figure, (axes,) = new_figure(8, 4)
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
    svg = to_svg(figure)
    return Markup(svg[svg.index("<svg") :])  # matplotlib escapes what it writes


def page(run: Run, rows: list[Row]) -> str:
    """The page: opens from disk without a network; everything from the run is escaped."""
    config, metrics = run.config, run.metrics()
    took = f"{metrics[-1]['steps']:,.0f} steps in {metrics[-1]['seconds']:,.0f} s, " if metrics else ""
    title = f"{config.method} on {config.env}"
    settings = fill("<pre>{{settings}}</pre>", settings=config.to_json())
    return html_page(
        title,
        title,
        "Returns are the environment's own, with the most likely action, over fresh seeds.",
        f"Training: {took}seed {config.seed}.",
        [
            section("Return", "", to_html(_table(rows), highlight=config.method)),
            section("Learning curve", "", fill('<div class="plate">{{curve}}</div>', curve=learning_curve(run, rows))),
            section("Settings", "", fold("all settings of the run", settings)),
        ],
    )
