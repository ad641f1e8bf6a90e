"""Imitation from observations alone: state-only demonstrations in, a policy out.

Names are imported on first use, so that loading a saved policy needs neither JAX nor an environment.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iddm.bundled import bundled_demos, bundled_expert
    from iddm.closeness import Yardstick
    from iddm.demos import Demos, convert_demos, load_demos, save_demos
    from iddm.errors import UserError
    from iddm.evaluation import Evaluation, evaluate, record_demos
    from iddm.methods import Method, register_method
    from iddm.policy import Policy, load_policy
    from iddm.policy.export import export_policy
    from iddm.training.run_dir import Run
    from iddm.training.setup import yardstick_of
    from iddm.training.train import resume, train

__version__ = "0.1.0"

_HOMES = {
    "iddm.bundled": ("bundled_demos", "bundled_expert"),
    "iddm.closeness": ("Yardstick",),
    "iddm.demos": ("Demos", "convert_demos", "load_demos", "save_demos"),
    "iddm.errors": ("UserError",),
    "iddm.evaluation": ("Evaluation", "evaluate", "record_demos"),
    "iddm.methods": ("Method", "register_method"),
    "iddm.policy.export": ("export_policy",),
    "iddm.policy": ("Policy", "load_policy"),
    "iddm.training.run_dir": ("Run",),
    "iddm.training.setup": ("yardstick_of",),
    "iddm.training.train": ("resume", "train"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Demos",
    "Evaluation",
    "Method",
    "Policy",
    "Run",
    "UserError",
    "Yardstick",
    "__version__",
    "bundled_demos",
    "bundled_expert",
    "convert_demos",
    "evaluate",
    "export_policy",
    "load_demos",
    "load_policy",
    "record_demos",
    "register_method",
    "resume",
    "save_demos",
    "train",
    "yardstick_of",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'iddm' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOME_OF[name]), name)
