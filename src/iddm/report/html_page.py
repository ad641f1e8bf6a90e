"""The frame of our pages: one self-contained file that opens without a network, in light and dark."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from iddm.errors import UserError
from iddm.report.markup import Markup, fill
from iddm.report.table import with_indices

_FILES = files("iddm") / "report" / "page"


def html_page(
    title: str,
    headline: str,
    lead: str,
    facts: str,
    sections: Sequence[str],
    charts: Mapping[str, Any] | None = None,
    of: str = "",
) -> Markup:
    """The page. What is not `Markup` is escaped. `charts` is what charts.js draws, `of` tells whose page it is."""
    scripts = Markup()
    if charts is not None:
        data = json.dumps(charts).replace("<", "\\u003c")  # no text can end the script
        code = "".join((_FILES / name).read_text() for name in ("readout.js", "charts.js"))
        scripts = Markup(f'<script type="application/json" id="data">{data}</script>\n<script>\n{code}\n</script>')
    return fill(
        (_FILES / "page.html").read_text(),
        style=Markup((_FILES / "style.css").read_text()),
        title=title,
        headline=headline,
        lead=lead,
        facts=facts,
        sections=[part for part in sections if part],
        scripts=scripts,
        of=of,
    )


def identity(*parts: str) -> str:
    """What tells one run's or study's page from another's, in the page itself."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def refuse_other_page(out: Path, of: str) -> None:
    """Refuse to overwrite anything but an earlier page of the same run or study."""
    if out.is_dir():
        raise UserError(f"{out} is a directory; give --out the name of a page, as in {out / 'report.html'}.")
    if not out.exists():
        return
    with out.open(errors="replace") as page:
        is_ours = f'<meta name="iddm-page-of" content="{of}">' in page.read(1000)
    if not is_ours:
        raise UserError(f"{out} is not an earlier page of the same results; remove it, or choose another --out.")


def section(title: str, text: str, *parts: str) -> Markup:
    said = fill("<p>{{text}}</p>", text=text) if text else ""
    return fill("<section><h2>{{title}}</h2>{{said}}{{parts}}</section>\n", title=with_indices(title), said=said, parts=parts)


def fold(title: str, inside: str) -> Markup:
    """A part of the page that is folded until it is opened."""
    return fill("<details><summary>{{title}}</summary>{{inside}}</details>", title=title, inside=inside)


def svg_image(svg: str, description: str) -> Markup:
    """A picture on a light mat, which scrolls where it is too wide."""
    data = base64.b64encode(svg.encode()).decode()
    image = fill('<img alt="{{text}}" src="data:image/svg+xml;base64,{{data}}">', text=description, data=data)
    return fill('<div class="scroll plate" tabindex="0" role="region" aria-label="figure">{{image}}</div>', image=image)
