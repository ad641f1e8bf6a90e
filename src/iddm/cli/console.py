"""Where commands print."""

from rich.console import Console

OUT = Console(soft_wrap=True, markup=False, emoji=False, highlight=False)
"""Text is printed as it is: brackets in the name of a file mean nothing. Styles are given as `rich.text.Text`."""
