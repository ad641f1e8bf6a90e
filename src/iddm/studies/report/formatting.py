"""How methods and numbers are written in tables and charts."""

from collections.abc import Sequence
from math import isnan

from iddm.report.table import NOTHING
from iddm.studies.paper import Published
from iddm.studies.spec import CONTROLS, SAME_AS_GAIFO, UNTRAINED
from iddm.studies.statistics import Estimate, mean_interval
from iddm.studies.study_results import Cell

NAMES = {
    "random": "random actions",
    "none": "constant reward",
    "bc": "BC",
    "bco": "BCO",
    "deepmimic": "DeepMimic",
    "gaifo-s": "GAIfO-s",
    "gaifo": "GAIfO",
    "iddm": "IDDM",
    "gail": "GAIL",
    "gaifo-effort": "GAIfO, effort",
    "iddm-inverse": "IDDM, inverse entropy",
    "iddm-knn": "IDDM, neighbours",
    "iddm-zero": "IDDM, weights 0",
}
"""Methods as they are written; others by their own name."""


def name_of(method: str) -> str:
    """A method's name, with the controls marked."""
    name = NAMES.get(method, method)
    return f"{name} (control)" if method in (*CONTROLS, SAME_AS_GAIFO) else name


def number(value: float) -> str:
    return NOTHING if isnan(value) else f"{value:,.1f}"


def published(known: Published | None) -> str:
    """The paper's mean and deviation."""
    return NOTHING if known is None else f"{number(known[0])} ± {number(known[1])}"


def below_ours(known: Published | None) -> str:
    """The paper's mean and deviation for the second line of a cell; nothing where it has none."""
    return "" if known is None else f"paper {published(known)}"


def percent(estimate: Estimate | None) -> str:
    """A share with its interval, in percent."""
    if estimate is None:
        return NOTHING
    ends = f" [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]" if estimate.has_interval else ""
    return f"{100 * estimate.value:.0f} %{ends}"


def difference(estimate: Estimate) -> str:
    """A difference of shares with its interval, in percentage points."""
    value, low, high = (f"{round(100 * x, 1) + 0.0:+.1f}" for x in (estimate.value, estimate.low, estimate.high))  # + 0: no -0.0
    return f"{value} [{low}, {high}]" if estimate.has_interval else value


def listed(names: Sequence[str]) -> str:
    """a, b and c"""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def lines(*texts: str) -> str:
    """A cell of the lines that are not empty."""
    return "\n".join(filter(None, texts))


def returns(cell: Cell | None) -> str:
    """Mean ± deviation over seeds, or over the episodes of the only run where nothing is trained."""
    if cell is None:
        return NOTHING
    if cell.spec.method in UNTRAINED:
        only = cell.results[0]
        return f"{number(only.mean)} ± {number(only.std)} ({only.episodes} ep.)"
    return f"{number(cell.spread.mean)} ± {number(cell.spread.std)} ({cell.spread.seeds})"


def mean_of(values: Sequence[float], digits: int = 2) -> str:
    """The mean over seeds with its interval."""
    if not values:
        return NOTHING
    mean = mean_interval(values)
    ends = f" [{mean.low:,.{digits}f}, {mean.high:,.{digits}f}]" if mean.has_interval else ""
    return f"{mean.value:,.{digits}f}{ends}"


def interval(cell: Cell) -> str:
    """The interval of the mean over seeds; nothing where there is one seed."""
    mean = mean_interval(cell.means)
    return f"[{number(mean.low)}, {number(mean.high)}]" if mean.has_interval else ""
