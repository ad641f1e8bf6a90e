"""The command line. Bad input is one sentence on stderr and exit code 2."""

import logging
import os
import sys
from collections.abc import Callable

from iddm import __version__
from iddm.cli.compare import compare_command
from iddm.cli.console import OUT
from iddm.cli.convert import convert_command
from iddm.cli.demos import demos_command
from iddm.cli.disagreement import disagreement_command
from iddm.cli.doctor import doctor_command
from iddm.cli.eval import eval_command
from iddm.cli.expert import expert_command
from iddm.cli.export import export_command
from iddm.cli.film import film_command
from iddm.cli.given_env import with_imports
from iddm.cli.inspect import inspect_command
from iddm.cli.report import report_command
from iddm.cli.study import study_command
from iddm.cli.theory import theory_command
from iddm.cli.toy import toy_command
from iddm.cli.train import train_command
from iddm.errors import UserError, plain_notices, print_error

COMMANDS: dict[str, Callable[[list[str]], int | None]] = {
    "train": train_command,
    "eval": eval_command,
    "expert": expert_command,
    "demos": demos_command,
    "inspect": inspect_command,
    "convert": convert_command,
    "export": export_command,
    "doctor": doctor_command,
    "film": film_command,
    "compare": compare_command,
    "disagreement": disagreement_command,
    "report": report_command,
    "theory": theory_command,
    "toy": toy_command,
    "study": study_command,
}


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    if "--traceback" in args:
        args = [arg for arg in args if arg != "--traceback"]
        os.environ["IDDM_TRACEBACK"] = "1"
    if not args or args[0] in ("-h", "--help"):
        OUT.print("iddm: a policy from demonstrations without actions\n", highlight=False)
        for name, command in COMMANDS.items():
            OUT.print(f"  iddm {name:<12} {(command.__doc__ or '').strip()}", highlight=False)
        OUT.print("\n`iddm COMMAND --help` explains each setting.", highlight=False)
        OUT.print(
            "`--import MODULE` (or FILE.py), with any command, first imports the code that registers your environment.",
            highlight=False,
        )
        OUT.print("`--traceback` (or IDDM_TRACEBACK=1) also shows where an error came from.", highlight=False)
        return 0 if args else 2
    if args[0] == "--version":
        print(__version__)
        return 0
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("iddm").setLevel(logging.INFO)
    try:
        if args[0] not in COMMANDS:
            raise UserError(f"there is no command '{args[0]}'; there are {', '.join(COMMANDS)}.")
        with plain_notices():
            return COMMANDS[args[0]](with_imports(args[1:])) or 0
    except UserError as error:
        print_error(error)
        return 2
    except KeyboardInterrupt:
        print("iddm: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away
        return 0
