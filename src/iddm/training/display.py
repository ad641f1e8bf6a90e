"""What a long command shows while it works: a live panel on a terminal, plain lines elsewhere."""

import time
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.spinner import Spinner
from rich.table import Table

METRICS = {
    "episode_return": "return (environment's own)",
    "evaluation_return": "return of the most likely actions",
    "closeness": "closeness to held-out demonstrations",
    "adversarial/expert_accuracy": "discriminator right on expert",
    "adversarial/agent_accuracy": "discriminator right on agent",
    "mi/information": "I(s; (s', a)), nats",
    "ppo/entropy": "policy entropy, nats",
    "tracking/reward": "tracking reward, of 1",
    "inverse/held_out_error": "inverse model's error, held out",
    "cloning/held_out_error": "policy's error, held out",
}

SELDOM = ("episode_return", "evaluation_return", "closeness")
"""Metrics that most rows lack: the newest is shown."""


class TrainingDisplay:
    """Shows each row of metrics. Use as a context and as the `on_row` of training."""

    def __init__(
        self,
        title: str,
        total: int,
        unit: str = "steps",
        console: Console | None = None,
        plain_every: float = 10.0,
        beside: str = "",
    ) -> None:
        """`beside`: what the return is compared with, in words ("expert 6,793.9, random -285.9")."""
        self._console = console or Console(stderr=True, markup=False, emoji=False, highlight=False)
        self._title = title
        self._total = total
        self._unit = unit
        self._plain_every = plain_every
        self._beside = f"  ({beside})" if beside else ""
        self._last_line = 0.0
        self._unprinted = ""
        self._newest: dict[str, float] = {}
        self._first: dict[str, float] | None = None
        self._live: Live | None = None
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            auto_refresh=False,
        )
        self._task = self._progress.add_task(title, total=total)

    def __enter__(self) -> "TrainingDisplay":
        if self._console.is_terminal:
            waiting = Spinner("dots", "compiling: the first iteration takes longest")
            self._live = Live(Group(self._progress, waiting), console=self._console, refresh_per_second=4)
            self._live.start()
        else:
            self._console.print(f"{self._title}: {self._total:,} {self._unit}; compiling …", highlight=False, soft_wrap=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live:
            self._live.stop()
        elif self._unprinted:
            self._print(self._unprinted)

    def __call__(self, row: dict[str, float]) -> None:
        self._first = self._first or row
        self._newest |= {name: row[name] for name in SELDOM if name in row and row[name] == row[name]}
        shown = row | self._newest
        speed = self._speed(row)
        if self._live:
            self._progress.update(self._task, completed=row[self._unit])
            self._live.update(Group(self._progress, self._table(shown, speed)))
            return
        self._unprinted = self._line(shown, speed)
        if time.monotonic() - self._last_line > self._plain_every:
            self._print(self._unprinted)

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, soft_wrap=True)
        self._last_line, self._unprinted = time.monotonic(), ""

    def _speed(self, row: dict[str, float]) -> float | None:
        """Steps (or epochs) per second since the first row, which includes compilation; None before there is a second."""
        assert self._first is not None
        seconds = row["seconds"] - self._first["seconds"]
        return (row[self._unit] - self._first[self._unit]) / seconds if seconds > 0 else None

    def _table(self, row: dict[str, float], speed: float | None) -> Table:
        table = Table.grid(padding=(0, 2))
        table.add_row(self._unit, f"{row[self._unit]:,.0f} of {self._total:,}")
        table.add_row(f"{self._unit}/s", "–" if speed is None else f"{speed:,.0f}")
        for key, label in METRICS.items():
            if key in row:
                table.add_row(label, self._metric(key, row[key]))
        return table

    def _line(self, row: dict[str, float], speed: float | None) -> str:
        pace = [] if not speed else [f"{speed:,.0f}/s", f"{(self._total - row[self._unit]) / speed:.0f} s left"]
        numbers = [f"{_short(key)} {self._metric(key, row[key])}" for key in METRICS if key in row]
        return "  ".join([f"{self._unit[:-1]} {row[self._unit]:>9,.0f}", *pace, *numbers])

    def _metric(self, key: str, x: float) -> str:
        return _number(key, x) + (self._beside if key == "episode_return" else "")


def _short(key: str) -> str:
    """The last part of a metric's name, or all of it where two metrics share one."""
    last = key.split("/")[-1]
    return last if sum(other.endswith(last) for other in METRICS) == 1 else key


def _number(key: str, x: float) -> str:
    if x != x:
        return "–"
    return f"{x:,.1f}" if key.endswith("_return") else f"{x:.2f}"
