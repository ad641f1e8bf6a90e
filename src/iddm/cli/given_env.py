"""What a command line says of an environment: a run's or a policy's file names registered ones alone, and no code."""

import shlex
from typing import Any

from iddm.errors import UserError

IMPORTED: list[str] = []
"""What `--import` named on this command line."""


def given_kwargs(text: str | None) -> dict[str, Any] | None:
    """The value of `--env-kwargs`; None where it was not given."""
    from iddm.envs.spec import parse_kwargs

    return None if text is None else parse_kwargs(text)


def with_imports(args: list[str]) -> list[str]:
    """Import what `--import` names, for every command, and return the other arguments. Only a command line can ask for it."""
    IMPORTED.clear()
    rest, waiting = [], list(args)
    while waiting:
        arg = waiting.pop(0)
        if arg == "--import" and not waiting:
            raise UserError("--import needs the name of a module or a file that ends in .py.")
        if arg == "--import" or arg.startswith("--import="):
            from iddm.envs.spec import import_module

            IMPORTED.append(arg.partition("=")[2] or waiting.pop(0))
            import_module(IMPORTED[-1])
        else:
            rest.append(arg)
    return rest


def said_again(config: Any) -> list[str]:
    """The flags for a later command on a run of this config: what no file says. Printed commands work as they stand."""
    from iddm.envs.spec import parse_kwargs
    from iddm.envs.stored import flags_again

    imports = [f"--import {shlex.quote(name)}" for name in IMPORTED]
    return [*imports, *filter(None, [flags_again(config.env, parse_kwargs(config.env_kwargs))])]
