"""All that the studies use of the rest of the package: settings, training, evaluation, bundled experts."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any

from iddm.bundled import bundled_expert, bundled_fingerprint
from iddm.config import Config, as_flag, configure, default_config, flat_settings, setting
from iddm.demos import Demos, load_demos, save_demos
from iddm.disagreement.measure import bundled_for, measure
from iddm.envs.spec import import_module
from iddm.evaluation import EVALUATION_SEED, env_of, evaluate, record_demos
from iddm.learners import LEARNERS
from iddm.methods import has_choice_of_learner
from iddm.policy import Policy, load_policy
from iddm.rewards import TERMS
from iddm.tasks import REDUNDANT, Task, find_task
from iddm.training.run_dir import Run
from iddm.training.train import finish

__all__ = [
    "EVALUATION_SEED",
    "REDUNDANT",
    "Config",
    "Demos",
    "Policy",
    "Run",
    "Task",
    "as_flag",
    "bundled_expert",
    "bundled_fingerprint",
    "bundled_for",
    "config_of",
    "demos_fingerprint",
    "env_of",
    "evaluate",
    "find_task",
    "finish",
    "flat_settings",
    "has_choice_of_learner",
    "has_discriminator",
    "import_module",
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
STARTS = ("preset", "learner")
"""Settings that choose the defaults of the others."""


@cache
def demos_fingerprint(file: str) -> str:
    """Tells one file of demonstrations from another."""
    return load_demos(file).digest()


def config_of(task: str, method: str, settings: Settings) -> Config:
    """The config that these flags make: preset and learner choose the defaults, the other settings change them."""
    defaults, nested = _defaults(task, method, settings), {}
    for name, value in settings.items():
        group, _, field = name.rpartition(".")
        if group:
            nested.setdefault(group, {})[field] = value
        elif name not in STARTS:
            nested[name] = value
    return configure(defaults, nested)


def _defaults(task: str, method: str, settings: Settings) -> Config:
    return default_config(task, method, settings.get("preset", "tuned"), settings.get("learner"))


def what_differs(task: str, method: str, settings: Settings) -> tuple[tuple[str, Any], ...]:
    """The settings that have to be given, sorted by name: another preset or learner, and what differs from their defaults."""
    defaults, tuned = _defaults(task, method, settings), default_config(task, method)
    given = {name: value for name, value in settings.items() if not _of_another_method(defaults, name)}
    config_of(task, method, given)  # what it does not know, it says
    before = {name: setting(defaults, name) for name in given if name not in STARTS}
    before |= {"preset": tuned.preset, "learner": tuned.learner.name}
    return tuple(sorted((name, value) for name, value in given.items() if before[name] != value))


def _of_another_method(config: Config, name: str) -> bool:
    """Whether a setting that a study gives to all its methods (small networks, say) is of a term or learner it lacks."""
    group, _, last = name.partition(".")
    if last and group in TERMS:
        return group not in config.terms
    if last and group in LEARNERS:
        return group != config.learner.name
    known = any(group == field.name for learner in LEARNERS.values() for field in dataclasses.fields(learner))  # pyright: ignore
    return known and not hasattr(config.learner, group)


def has_discriminator(method: str) -> bool:
    return "adversarial" in default_config("CartPole", method).terms
