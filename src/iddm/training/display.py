"""What a long command shows while it works: a live panel on a terminal, plain lines elsewhere."""

import time
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

METRICS = {
    "episode_return": "return (environment's own)",
    "adversarial/expert_accuracy": "discriminator right on expert",
    "adversarial/agent_accuracy": "discriminator right on agent",
    "mi/information": "I(s; (s', a)), nats",
    "ppo/entropy": "policy entropy, nats",
    "tracking/reward": "tracking reward, of 1",
    "inverse/held_out_error": "inverse model's error, held out",
    "cloning/held_out_error": "policy's error, held out",
}


class TrainingDisplay:
    """Shows each row of metrics. Use as a context and as the `on_row` of training."""

    def __init__(
        self, title: str, total: int, unit: str = "steps", console: Console | None = None, plain_every: float = 10.0
    ) -> None:
        self._console = console or Console(stderr=True, markup=False, emoji=False, highlight=False)
        self._title = title
        self._total = total
        self._unit = unit
        self._plain_every = plain_every
        self._last_line = 0.0
        self._return = float("nan")
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
            self._live = Live(self._progress, console=self._console, refresh_per_second=4)
            self._live.start()
        else:
            self._console.print(f"{self._title}: {self._total:,} {self._unit}", highlight=False, soft_wrap=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live:
            self._live.stop()

    def __call__(self, row: dict[str, float]) -> None:
        self._first = self._first or row
        if row["episode_return"] == row["episode_return"]:
            self._return = row["episode_return"]
        shown = row | {"episode_return": self._return}
        speed = self._speed(row)
        if self._live:
            self._progress.update(self._task, completed=row[self._unit])
            self._live.update(Group(self._progress, self._table(shown, speed)))
        elif time.monotonic() - self._last_line > self._plain_every or row[self._unit] >= self._total:
            self._last_line = time.monotonic()
            self._console.print(self._line(shown, speed), highlight=False, soft_wrap=True)

    def _speed(self, row: dict[str, float]) -> float:
        """Steps (or epochs) per second since the first row, which includes compilation."""
        assert self._first is not None
        seconds = row["seconds"] - self._first["seconds"]
        return (row[self._unit] - self._first[self._unit]) / seconds if seconds > 0 else 0.0

    def _table(self, row: dict[str, float], speed: float) -> Table:
        table = Table.grid(padding=(0, 2))
        table.add_row(self._unit, f"{row[self._unit]:,.0f} of {self._total:,}")
        table.add_row(f"{self._unit}/s", f"{speed:,.0f}")
        for key, label in METRICS.items():
            if key in row:
                table.add_row(label, _number(key, row[key]))
        return table

    def _line(self, row: dict[str, float], speed: float) -> str:
        left = (self._total - row[self._unit]) / speed if speed else float("nan")
        numbers = "  ".join(f"{_short(key)} {_number(key, row[key])}" for key in METRICS if key in row)
        return f"{self._unit[:-1]} {row[self._unit]:>9,.0f}  {speed:,.0f}/s  {left:.0f} s left  {numbers}"


def _short(key: str) -> str:
    """The last part of a metric's name, or all of it where two metrics share one."""
    last = key.split("/")[-1]
    return last if sum(other.endswith(last) for other in METRICS) == 1 else key


def _number(key: str, x: float) -> str:
    if x != x:
        return "–"
    return f"{x:,.1f}" if key == "episode_return" else f"{x:.2f}"
