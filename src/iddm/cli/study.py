"""`iddm study`."""

from iddm.cli.console import OUT
from iddm.cli.flags import parse_flags
from iddm.studies.options import Options


def study_command(args: list[str]) -> int:
    """Run one of the paper's studies, or list them; finished runs are not repeated."""
    given = parse_flags(Options, args, "iddm study")
    from iddm.studies.catalogue import STUDIES, find_study

    if given.study is not None:
        return find_study(given.study).launch(given, OUT)
    for study in STUDIES.values():
        OUT.print(f"{study.name:<10}{study.heading}", highlight=False)
    return 0
