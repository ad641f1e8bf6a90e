"""Lighter runs, for studies of many runs on the larger tasks."""

from iddm.studies.core import Settings

LIGHT: Settings = {"steps": 500_000, "hidden": (64, 64), "adversarial.hidden": (128, 128)}
"""Half the steps with the networks of `make run`: about a sixth of the time."""

LIGHTLY = f"with {LIGHT['steps']:,} steps and networks of {LIGHT['hidden']}, discriminator {LIGHT['adversarial.hidden']}"
