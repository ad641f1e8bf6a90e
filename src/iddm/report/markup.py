"""HTML from a template: every value is escaped, unless it is `Markup`, which only a template or a picture of ours makes.

So nothing from a file reaches a page as markup, even if someone forgets to escape it: the type decides.
"""

import html
import re
from collections.abc import Iterable
from typing import Any


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(value: Any) -> Markup:
    """A value as HTML; of several, one after another."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return Markup("".join(map(escaped, value)))
    return Markup(html.escape(str(value), quote=True))


def fill(template: str, /, **values: Any) -> Markup:
    """The template with each `{{name}}` replaced by its value, in one pass: what looks like a place in a value stays as it is."""
    return Markup(re.sub(r"\{\{(\w+)\}\}", lambda place: escaped(values[place[1]]), template))
