"""What we imitate: demonstrations, their files, and a look at them before training."""

from iddm.demos.compatible import Finding, require_compatible
from iddm.demos.inspect import Inspection, inspect_demos, print_inspection
from iddm.demos.load import convert_demos, load_demos, save_demos
from iddm.demos.types import Demos

__all__ = [
    "Demos",
    "Finding",
    "Inspection",
    "convert_demos",
    "inspect_demos",
    "load_demos",
    "print_inspection",
    "require_compatible",
    "save_demos",
]
