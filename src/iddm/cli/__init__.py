"""The command line, one file per command."""

from iddm.cli.commands import main

__all__ = ["main"]
