"""The charts of a run's page: what its metrics say of its learning."""

from collections.abc import Mapping, Sequence
from typing import Any

from iddm.report.charts import chart, line, thinned
from iddm.training.run_dir import Run

LENGTH = "Steps of an evaluated episode"
CHARTS: dict[str, dict[str, str]] = {
    LENGTH: {"evaluation_length": "steps"},
    "Closeness to the demonstrations": {"closeness": "closeness"},
    "Discriminator right, %": {
        "adversarial/expert_accuracy": "on expert",
        "adversarial/agent_accuracy": "on agent",
        "held_out_accuracy": "on held-out",
    },
    "Mutual information I(s; (s', a)), nats": {"mi/information": "I"},
    "Policy entropy, nats": {"ppo/entropy": "entropy", "sac/entropy": "entropy"},
    "Tracking reward, of 1": {"tracking/reward": "reward"},
    "Error on held-out transitions": {"inverse/held_out_error": "inverse", "cloning/held_out_error": "policy"},
}
"""By title: columns of metrics.csv and what each is called. Those that a run does not have are not drawn."""
SHADES = (2, 0, 1)
"""Of the first, second and third line of a chart."""


def run_charts(run: Run, references: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return (with `references` as dashed lines), length (with the demonstrations'), and what terms and learner measure."""
    rows, (_, unit) = run.metrics(), run.config.length
    demonstrated = run.demos and run.demos.num_steps
    marks = {LENGTH: _marks({"demos": demonstrated} if demonstrated else {})}
    drawn = chart("Return", [_line(run.config.method, thinned(rows, "episode_return", unit))], _marks(references))
    for title, columns in CHARTS.items():
        scale = 100 if title.endswith("%") else 1
        lines = []
        for column, name in columns.items():
            points = [(x, scale * y) for x, y in thinned(rows, column, unit)]
            lines += filter(None, [_line(name, points, SHADES[len(lines) % len(SHADES)])])
        drawn += chart(title, lines, marks.get(title, ()))
    return drawn


def _marks(values: Mapping[str, float]) -> list[dict[str, Any]]:
    return [{"label": name, "value": round(value, 3)} for name, value in values.items()]


def _line(name: str, points: Sequence[tuple[float, float]], shade: int = SHADES[0]) -> dict[str, Any] | None:
    found = line(name, [points])
    return found and {**found, "shade": shade}
