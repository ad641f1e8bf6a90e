"""`iddm study`."""

import dataclasses
from pathlib import Path

from iddm.cli.console import OUT
from iddm.cli.flags import parse_flags
from iddm.cli.given_env import IMPORTED
from iddm.studies.options import Options


def study_command(args: list[str]) -> int:
    """Run one of the paper's studies or your own (FILE.toml), or list them; finished runs are not repeated."""
    given = dataclasses.replace(parse_flags(Options, args, "iddm study"), imports=tuple(IMPORTED))
    from iddm.studies.catalogue import STUDIES, find_study
    from iddm.studies.own_study import read_study

    if given.study is not None:
        study = read_study(Path(given.study)) if given.study.endswith(".toml") else find_study(given.study)
        return study.launch(given, OUT)
    for study in STUDIES.values():
        OUT.print(f"{study.name:<10}{study.heading}", highlight=False)
    return 0
