"""Which policy a command line names."""

from pathlib import Path
from typing import Any


def find_policy(name: str) -> Any:
    """A run's policy, a policy file, or the bundled expert of a task."""
    from iddm.bundled import bundled_expert
    from iddm.policy import load_policy
    from iddm.tasks import find_task

    return bundled_expert(name) if not Path(name).exists() and find_task(name) else load_policy(name)
