"""Lighter runs, for studies of many runs on the larger tasks."""

from iddm.studies.core import Settings
from iddm.studies.spec import study_steps
from iddm.studies.study_results import Cell

LIGHT: Settings = {"steps": 500_000, "hidden": (64, 64), "adversarial.hidden": (128, 128)}
"""Half the steps with the networks of `make run`: about a sixth of the time."""

LIGHTER: Settings = LIGHT | {"steps": 300_000}
LONG: Settings = LIGHT | {"steps": 1_000_000}
"""Table 2's steps: after fewer, agent and expert hardly share a transition, and no disagreement can be measured."""


def _described(light: Settings) -> str:
    return f"with {light['steps']:,} steps and networks of {light['hidden']}, discriminator {light['adversarial.hidden']}"


LIGHTLY, MORE_LIGHTLY, LONG_LIGHTLY = map(_described, (LIGHT, LIGHTER, LONG))


def titled(task: str, cells: list[Cell]) -> str:
    """A chart's title, which says where its runs are lighter than those of the task's other studies."""
    light = any(cell.spec.steps < study_steps(task) for cell in cells)
    return f"{task}, lighter runs" if light else task
