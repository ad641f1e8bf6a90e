"""The frame of our pages: one self-contained file that opens without a network, in light and dark."""

import base64
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from iddm.report.table import escaped

_FILES = files("iddm") / "report" / "page"


def html_page(
    title: str, headline: str, lead: str, facts: str, sections: Sequence[str], charts: Mapping[str, Any] | None = None
) -> str:
    """The page; `sections` are HTML, all else is escaped. `charts` is what charts.js draws."""
    scripts = ""
    if charts is not None:
        data = json.dumps(charts).replace("<", "\\u003c")  # no text can end the script
        code = "".join((_FILES / name).read_text() for name in ("readout.js", "charts.js"))
        scripts = f'<script type="application/json" id="data">{data}</script>\n<script>\n{code}\n</script>'
    return _fill(
        (_FILES / "page.html").read_text(),
        style=(_FILES / "style.css").read_text(),
        title=html.escape(title),
        headline=html.escape(headline),
        lead=html.escape(lead),
        facts=html.escape(facts),
        sections="\n".join(filter(None, sections)),
        scripts=scripts,
    )


def _fill(template: str, **parts: str) -> str:
    """Put the parts in, all in one pass: a part that looks like a place is left alone."""
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], template)


def section(title: str, text: str, *parts: str) -> str:
    said = f"<p>{html.escape(text)}</p>" if text else ""
    return f"<section><h2>{escaped(title)}</h2>{said}{''.join(parts)}</section>"


def fold(title: str, inside: str) -> str:
    """What has to be opened to be seen."""
    return f"<details><summary>{html.escape(title)}</summary>{inside}</details>"


def svg_image(svg: str, description: str) -> str:
    """A picture on a light mat, which scrolls where it is too wide."""
    data = base64.b64encode(svg.encode()).decode()
    image = f'<img alt="{html.escape(description)}" src="data:image/svg+xml;base64,{data}">'
    return f'<div class="scroll plate" tabindex="0" role="region" aria-label="figure">{image}</div>'
