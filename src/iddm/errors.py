"""The one error that a user can cause: a sentence that says what is wrong, where, and what to do."""


class UserError(Exception):
    """Bad input. The command line prints the message without a traceback and exits with code 2."""
