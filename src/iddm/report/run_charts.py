"""The charts of a run's page: what its metrics say of its learning."""

from collections.abc import Mapping, Sequence
from typing import Any

from iddm.report.charts import chart, line, parts, thinned
from iddm.training.run_dir import Run

Rows = Sequence[dict[str, float]]
CHARTS: dict[str, dict[str, str]] = {
    "Closeness to the demonstrations": {"closeness": "closeness"},
    "Discriminator right, %": {"adversarial/expert_accuracy": "on expert", "adversarial/agent_accuracy": "on agent"},
    "Mutual information I(s; (s', a)), nats": {"mi/information": "I"},
    "Policy entropy, nats": {"ppo/entropy": "entropy", "sac/entropy": "entropy"},
    "Tracking reward, of 1": {"tracking/reward": "reward"},
    "Error on held-out transitions": {"inverse/held_out_error": "inverse", "cloning/held_out_error": "policy"},
}
"""By title: columns of metrics.csv and what each is called. Those that a run does not have are not drawn."""
ENOUGH = 10
SHADES = (2, 0)
"""Of the first and the second line of a chart."""


def run_charts(run: Run, references: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return (with `references` as dashed lines), length of episodes, and what the method's terms and learner measure."""
    rows, (_, unit) = run.metrics(), run.config.length
    marks = [{"label": name, "value": round(value, 3)} for name, value in references.items()]
    drawn = chart("Return", [_line(run.config.method, thinned(rows, "episode_return", unit))], marks)
    drawn += chart("Steps per episode", [_line("length", episode_lengths(rows))])
    for title, columns in CHARTS.items():
        scale = 100 if title.endswith("%") else 1
        lines = []
        for column, name in columns.items():
            points = [(x, scale * y) for x, y in thinned(rows, column, unit)]
            lines += filter(None, [_line(name, points, SHADES[len(lines) % len(SHADES)])])
        drawn += chart(title, lines)
    return drawn


def episode_lengths(rows: Rows) -> list[tuple[int, float]]:
    """Environment steps per episode that ended, over the run: a point whenever `ENOUGH` episodes have ended since the last."""
    points, before, ended = [], 0.0, 0.0
    for part in parts(rows):
        ended += sum(row["episodes"] for row in part)
        steps = part[-1]["steps"]
        if ended >= ENOUGH and steps > before:
            points.append((int(steps), (steps - before) / ended))
            before, ended = steps, 0.0
    return points


def _line(name: str, points: Sequence[tuple[float, float]], shade: int = SHADES[0]) -> dict[str, Any] | None:
    found = line(name, [points])
    return found and {**found, "shade": shade}
