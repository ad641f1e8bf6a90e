"""The learned policy in a form that other stacks run: a target is a file here and a line in `TARGETS`."""

from collections.abc import Callable
from pathlib import Path

from iddm.errors import UserError
from iddm.policy import Policy
from iddm.policy.export.npz import export_npz
from iddm.policy.export.onnx import export_onnx
from iddm.policy.export.sb3 import export_sb3

TARGETS: dict[str, tuple[str, Callable[[Policy, Path], None]]] = {
    "npz": (".npz", export_npz),
    "onnx": (".onnx", export_onnx),
    "sb3": (".zip", export_sb3),
}


def export_policy(policy: Policy, to: str, out: str | Path) -> None:
    """Write a policy as "npz", "onnx" or "sb3" (Stable-Baselines3): each gives the actions of `policy.predict`."""
    if to not in TARGETS:
        raise UserError(f"Policies are not exported to '{to}'; there are {', '.join(TARGETS)}.")
    ending, export = TARGETS[to]
    out = Path(out)
    if out.suffix != ending:
        raise UserError(f"{out}: a policy for {to} needs a name that ends in {ending}.")
    if out.is_dir():
        raise UserError(f"{out}: is a directory; give the name of a file.")
    export(policy, out)
