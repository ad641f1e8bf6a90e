"""Where commands print."""

from rich.console import Console

OUT = Console(soft_wrap=True)
