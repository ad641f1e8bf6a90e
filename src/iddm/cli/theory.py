"""`iddm theory`."""

import dataclasses

from iddm.cli.console import OUT
from iddm.cli.flags import parse_flags


@dataclasses.dataclass(frozen=True)
class _Theory:
    seed: int = 0
    """Seed of the random examples."""


def theory_command(args: list[str]) -> None:
    """Check the paper's theorems on finite examples, exactly."""
    from iddm.theory.report import print_theory, theory_report

    given = parse_flags(_Theory, args, "iddm theory")
    print_theory(theory_report(given.seed), OUT)
