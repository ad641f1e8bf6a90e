"""Matplotlib figures as SVG or PDF, without a screen and the same each time."""

import io
from typing import Any


def new_figure(width: float, height: float, panels: int = 1, columns: int | None = None) -> tuple[Any, Any]:
    """A figure and its axes, side by side, in rows of `columns` where that is given."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    columns = min(columns or panels, panels)
    axes = figure.subplots(-(-panels // columns), columns, squeeze=False).ravel()
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    for each in axes[panels:]:
        each.set_visible(False)
    return figure, axes[:panels]


def to_svg(figure: Any) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def to_pdf(figure: Any) -> bytes:
    data = io.BytesIO()
    figure.savefig(data, format="pdf", metadata={"CreationDate": None})
    return data.getvalue()
