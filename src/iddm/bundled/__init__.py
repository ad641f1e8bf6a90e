"""The demonstrations and experts that ship with the package."""

import hashlib
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from iddm.demos import Demos, load_demos
from iddm.envs.redundant import Motors, shared_evenly
from iddm.errors import UserError
from iddm.policy import Policy, load_policy
from iddm.tasks import find_task

DATA = Path(str(files("iddm.bundled")))


def bundled_demos(env: str) -> Demos:
    """Ten episodes of our own expert on this task: states only, but for the Gridworld, whose expert draws its actions."""
    return load_demos(_find(env, ".npz", "demonstrations; give yours with --demos FILE"))


def bundled_expert(env: str) -> Policy:
    """Our own expert on this task."""
    return load_policy(_find(env, ".safetensors", "expert; make one with `iddm expert`"))


@cache
def bundled_fingerprint(env: str) -> str:
    """Tells one bundled expert, with its episodes, from another."""
    files = _find(env, ".npz", "demonstrations"), _find(env, ".safetensors", "expert")
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def with_expert_actions(demos: Demos, env: str, motors: Motors | None = None) -> Demos:
    """Episodes of our own expert with its actions: those recorded, or the most likely one in each state, which it takes.

    Where several motors drive a joint, they share its torque evenly.
    """
    if demos.actions is not None:
        return demos
    expert = bundled_expert(env)
    actions = [expert.predict(rows[:-1]) for rows in demos.observations]
    if motors is not None:
        actions = [shared_evenly(action, expert.action_space, motors) for action in actions]
    return replace(demos, actions=tuple(actions))


def _find(env: str, ending: str, what: str) -> Path:
    task = find_task(env)
    path = DATA / f"{task.name if task else ''}{ending}"
    if task is None or not path.is_file():
        bundled = sorted(p.stem for p in DATA.glob(f"*{ending}"))
        raise UserError(f"{env} has no bundled {what} (bundled: {', '.join(bundled) or 'none'}).")
    return path
