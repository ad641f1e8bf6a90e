"""A look at demonstrations before training: what is there, what is odd, whether it fits the environment."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from iddm.demos.compatible import Finding, compare_with_env
from iddm.demos.oddities import EnvSample, look_at_episodes, look_beside, ranges
from iddm.demos.rate import in_words, look_at_rate, row_seconds
from iddm.demos.types import Demos
from iddm.envs.spaces import EnvSizes

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

STYLES = {"note": "cyan", "warning": "yellow", "error": "bold red"}
"""In the order in which findings are shown: the most serious last, where the eye is."""


class Column(NamedTuple):
    """The values of one column over all rows."""

    minimum: float
    mean: float
    maximum: float
    std: float
    constant: bool


@dataclass(frozen=True, eq=False)
class Inspection:
    """What `inspect_demos` found."""

    findings: tuple[Finding, ...]
    columns: tuple[Column, ...]
    lengths: Int64[np.ndarray, " episodes"]
    episode_returns: Float64[np.ndarray, " episodes"] | None
    num_terminated: int | None
    actions: str
    """In words."""
    origin: str | None
    """The environment that the file names."""
    format: str | None
    """Whose layout the file has, if not ours."""
    names: tuple[str, ...]
    """Of the columns, where the file or the environment gives them."""
    row_seconds: float | None
    """Between two rows, where the file says."""
    env: EnvSizes | None

    @property
    def usable(self) -> bool:
        """No finding is an error."""
        return all(level != "error" for level, _ in self.findings)


def inspect_demos(
    demos: Demos, env_spec: EnvSizes | None = None, sample: EnvSample | None = None, stride: Fraction = Fraction(1)
) -> Inspection:
    """Ranges and oddities, the fit to an environment where one is given, and how its own states compare.

    `stride` is the number of the environment's steps between two rows.
    """
    findings = look_at_episodes(demos)
    if env_spec is None or sample is None or sample.rows.shape[1] != demos.obs_size:
        findings += _constant(demos)
    if env_spec is not None:
        rate, stride = look_at_rate(demos, env_spec, stride)
        findings += [*rate, *compare_with_env(demos, env_spec, stride)]
        findings += [] if sample is None else look_beside(demos, env_spec, sample, stride)
    origin = demos.metadata.get("env_id")
    return Inspection(
        findings=tuple(sorted(findings, key=lambda finding: list(STYLES).index(finding.level))),
        columns=_columns(demos),
        lengths=demos.lengths,
        episode_returns=demos.episode_returns,
        num_terminated=None if demos.terminated is None else int(demos.terminated.sum()),
        actions=_actions(demos),
        origin=None if origin is None else str(origin),
        format=None if "format" not in demos.metadata else str(demos.metadata["format"]),
        names=demos.columns or (env_spec.columns if env_spec and env_spec.obs_size == demos.obs_size else ()),
        row_seconds=row_seconds(demos),
        env=env_spec,
    )


def print_inspection(
    inspection: Inspection,
    title: str = "Demonstrations",
    console: "Console | None" = None,
    max_columns: int = 32,
) -> None:
    """Print it as tables; columns beyond `max_columns` share one line."""
    from rich.console import Console  # here, so that reading demonstrations does not wait for it
    from rich.table import Table
    from rich.text import Text

    console = console or Console(markup=False, emoji=False, highlight=False)
    facts = Table(title=Text(_plain(title), "bold"), title_justify="left", show_header=False, box=None)
    for name, value in _facts(inspection):
        facts.add_row(Text(name, style="dim"), Text(_plain(value)))
    console.print(facts)
    console.print()
    console.print(_column_table(inspection.columns, inspection.names, max_columns))
    console.print()
    for level, sentence in inspection.findings:
        console.print(Text.assemble((f"{level}: ", STYLES[level]), _plain(sentence)))
    if inspection.env is not None:
        fits = Text(f"Fits {inspection.env.env_id}.", "green")
        misfit = Text(f"Does not fit {inspection.env.env_id}.", STYLES["error"])
        console.print(fits if inspection.usable else misfit)
    elif not inspection.findings:
        console.print(Text("Nothing odd found.", "green"))


def _columns(demos: Demos) -> tuple[Column, ...]:
    rows = np.concatenate(demos.observations)
    low, high = rows.min(axis=0), rows.max(axis=0)
    mean, std = rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
    return tuple(
        Column(float(a), float(m), float(b), float(s), bool(a == b)) for a, m, b, s in zip(low, mean, high, std, strict=True)
    )


def _actions(demos: Demos) -> str:
    if demos.actions is None:
        return "none (states only)"
    actions = np.concatenate(demos.actions)
    kind = "discrete" if actions.ndim == 1 else f"{actions.shape[1]} wide"
    if actions.size == len(actions) and (actions == np.round(actions)).all():
        kind += f", whole numbers {actions.min():.0f} to {actions.max():.0f}"
    return f"{kind} (state-only methods leave them out)"


def _constant(demos: Demos) -> list[Finding]:
    constant = [i for i, column in enumerate(_columns(demos)) if column.constant]
    if not constant:
        return []
    return [
        Finding(
            "warning",
            f"Constant: {ranges(constant)}. Where the environment changes them, a discriminator tells expert from agent by these "
            "alone; --env ENV checks whether it does, --columns leaves them out.",
        )
    ]


def _facts(inspection: Inspection) -> list[tuple[str, str]]:
    lengths, returns = inspection.lengths, inspection.episode_returns
    facts = [
        ("episodes", f"{len(lengths):,}"),
        ("transitions", f"{lengths.sum():,}"),
        ("episode length", _spread(lengths, ".0f")),
        ("episode return", "unknown" if returns is None else _spread(returns, ",.1f")),
        ("observation", f"{len(inspection.columns)} columns"),
        ("actions", inspection.actions),
    ]
    if inspection.row_seconds is not None:
        facts.append(("rows apart", in_words(inspection.row_seconds)))
    if inspection.num_terminated is not None:
        facts.append(("terminated", f"{inspection.num_terminated} of {len(lengths)} episodes"))
    if inspection.format is not None:
        facts.append(("format", inspection.format))
    if inspection.origin is not None:
        facts.append(("recorded on", inspection.origin))
    return facts


def _spread(values: np.ndarray, spec: str) -> str:
    if values.min() == values.max():
        return f"{values.min():{spec}}" + (" each" if len(values) > 1 else "")
    return f"{values.min():{spec}} to {values.max():{spec}}, mean {values.mean():{spec}}"


def _column_table(columns: tuple[Column, ...], names: tuple[str, ...], max_columns: int) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table("column", "min", "mean", "max", "std", "", box=None, header_style="dim", pad_edge=False)
    for column in table.columns[:5]:
        column.justify = "right"
    shown = columns if len(columns) <= max_columns else columns[: max_columns - 1]
    for i, column in enumerate(shown):
        about = [_plain(names[i])] if names else []
        table.add_row(str(i), *map(_number, column[:4]), Text("  ".join(about + ["constant"] * column.constant)))
    if rest := columns[len(shown) :]:
        low, high = min(column.minimum for column in rest), max(column.maximum for column in rest)
        constant = sum(column.constant for column in rest)
        table.add_row(f"{len(shown)}–{len(columns) - 1}", _number(low), "", _number(high), "", f"{constant} constant")
    return table


def _number(value: float) -> str:
    return f"{value:.3f}" if value == 0 or 1e-3 <= abs(value) < 1e5 else f"{value:.1e}"


def _plain(text: str) -> str:
    """Without control characters: a file's metadata is a stranger's text."""
    return "".join(c if c.isprintable() else "�" for c in text)
