"""The one error that a user can cause, and the one warning: a sentence that says what is wrong, where, and what to do."""

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class UserError(Exception):
    """Bad input. The command line prints the message without a traceback and exits with code 2."""


class UserNotice(UserWarning):
    """Something went wrong that the work survived."""


def warn_user(sentence: str) -> None:
    """Warn the user once, and continue."""
    warnings.warn(sentence, UserNotice, stacklevel=3)


@contextmanager
def plain_notices() -> Iterator[None]:
    """For the command line: a notice is one line on stderr, without the place in the code that Python prints with it."""
    before = warnings.showwarning

    def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, UserNotice):
            print(f"iddm: {message}", file=sys.stderr)
        else:
            before(message, category, *where, **more)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


def print_error(error: UserError) -> None:
    """One line on stderr; with IDDM_TRACEBACK=1 the traceback first, which may lead into the user's own code."""
    if os.environ.get("IDDM_TRACEBACK", "0") not in ("", "0"):
        traceback.print_exception(error)
    print(f"iddm: {error}", file=sys.stderr)
