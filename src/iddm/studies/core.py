"""All that the studies use of the rest of the package: settings, training, evaluation, bundled experts."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from iddm.bundled import bundled_expert, bundled_fingerprint
from iddm.config import Config, configure, default_config, setting
from iddm.demos import Demos, load_demos, save_demos
from iddm.disagreement.measure import bundled_for, measure
from iddm.evaluation import EVALUATION_SEED, env_of, evaluate, record_demos
from iddm.learners import LEARNERS
from iddm.policy import Policy, load_policy
from iddm.tasks import find_task
from iddm.training.run_dir import Run
from iddm.training.train import finish

__all__ = [
    "EVALUATION_SEED",
    "Config",
    "Demos",
    "Policy",
    "Run",
    "bundled_expert",
    "bundled_fingerprint",
    "bundled_for",
    "config_of",
    "env_of",
    "evaluate",
    "find_task",
    "finish",
    "has_discriminator",
    "load_demos",
    "load_policy",
    "measure",
    "record_demos",
    "save_demos",
    "setting",
    "what_differs",
]

Settings = Mapping[str, Any]
"""Settings by the names of their flags: {"steps": 1_000_000, "entropy.weight": 0.01}."""


def config_of(task: str, method: str, settings: Settings) -> Config:
    """The config that these flags make: the preset chooses the defaults, the other settings change them."""
    defaults, nested = _defaults(task, method, settings), {}
    for name, value in settings.items():
        group, _, field = name.rpartition(".")
        if group:
            nested.setdefault(group, {})[field] = value
        elif name != "preset":
            nested[name] = value
    return configure(defaults, nested)


def _defaults(task: str, method: str, settings: Settings) -> Config:
    return default_config(task, method, settings.get("preset", "tuned"))


def what_differs(task: str, method: str, settings: Settings) -> tuple[tuple[str, Any], ...]:
    """The settings that have to be given, sorted by name: a preset other than ours, and what differs from its defaults."""
    defaults, tuned = _defaults(task, method, settings), default_config(task, method)
    given = {name: value for name, value in settings.items() if not _of_another_learner(defaults, name)}
    compared = {name: tuned if name == "preset" else defaults for name in given}
    return tuple(sorted((name, value) for name, value in given.items() if setting(compared[name], name) != value))


def _of_another_learner(config: Config, name: str) -> bool:
    """Whether a setting that a study gives to all its methods (small networks, say) is none of this method's."""
    known = any(name == field.name for learner in LEARNERS.values() for field in dataclasses.fields(learner))  # pyright: ignore
    return known and not hasattr(config.learner, name)


def has_discriminator(method: str) -> bool:
    return "adversarial" in default_config("CartPole", method).terms
