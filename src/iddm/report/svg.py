"""Matplotlib figures as SVG text, without a screen and the same each time."""

import io
from typing import Any


def new_figure(width: float, height: float, panels: int = 1) -> tuple[Any, Any]:
    """A figure and its axes, side by side."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots(1, panels, squeeze=False)[0]
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def to_svg(figure: Any) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()
