"""All that the studies use of the rest of the package: settings, training, evaluation, bundled experts."""

from collections.abc import Mapping
from typing import Any

from iddm.bundled import bundled_expert, bundled_fingerprint
from iddm.config import Config, configure, default_config
from iddm.demos import Demos, load_demos, save_demos
from iddm.envs.tasks import find_task
from iddm.evaluation import EVALUATION_SEED, env_of, evaluate, record_demos
from iddm.policy import Policy, load_policy
from iddm.runs import Run
from iddm.training import finish

__all__ = [
    "EVALUATION_SEED",
    "Config",
    "Demos",
    "Policy",
    "Run",
    "bundled_expert",
    "bundled_fingerprint",
    "config_of",
    "env_of",
    "evaluate",
    "find_task",
    "finish",
    "has_discriminator",
    "load_demos",
    "load_policy",
    "record_demos",
    "save_demos",
    "setting",
    "what_differs",
]

Settings = Mapping[str, Any]
"""Settings by the names of their flags: {"steps": 1_000_000, "entropy.weight": 0.01}."""


def config_of(task: str, method: str, settings: Settings) -> Config:
    """The config that these flags make: the preset chooses the defaults, the other settings change them."""
    nested: dict[str, Any] = {}
    for name, value in settings.items():
        group, _, field = name.rpartition(".")
        if group:
            nested.setdefault(group, {})[field] = value
        elif name != "preset":
            nested[name] = value
    return configure(_defaults(task, method, settings), nested)


def _defaults(task: str, method: str, settings: Settings) -> Config:
    return default_config(task, method, settings.get("preset", "tuned"))


def setting(config: Config, name: str) -> Any:
    """The value of a setting by its flag's name."""
    group, _, field = name.rpartition(".")
    return getattr(config.parts[group] if group else config, field)


def what_differs(task: str, method: str, settings: Settings) -> tuple[tuple[str, Any], ...]:
    """The settings that have to be given, sorted by name: a preset other than ours, and what differs from its defaults."""
    defaults, tuned = _defaults(task, method, settings), default_config(task, method)
    compared = {name: tuned if name == "preset" else defaults for name in settings}
    return tuple(sorted((name, value) for name, value in settings.items() if setting(compared[name], name) != value))


def has_discriminator(method: str) -> bool:
    return "adversarial" in default_config("CartPole", method).terms
