"""metrics.csv: one row per iteration."""

from dataclasses import dataclass
from math import nan
from pathlib import Path

from iddm.utils.files import append_text, from_csv, numbers, to_csv, write_whole

Row = dict[str, float]
DIGITS = 7


@dataclass(frozen=True)
class MetricsFile:
    """The metrics of a run, a row per iteration."""

    path: Path

    def rows(self) -> list[Row]:
        """All whole rows; a missing number (no episode ended) is NaN. A half-written last row is left out."""
        return [numbers(row) for row in from_csv(self.path)] if self.path.is_file() else []

    def keep_until(self, iteration: int) -> list[Row]:
        """Drop the rows after `iteration` (they will be made again) and return the rest."""
        rows = [row for row in self.rows() if row["iteration"] <= iteration]
        if self.path.exists():
            write_whole(self.path, to_csv(rows, digits=DIGITS) if rows else "")
        return rows

    def append(self, row: Row) -> None:
        header = to_csv([], list(row))
        first_line = self._first_line()
        if first_line and first_line != header:  # begun by a version with other metrics
            known = [{name: old.get(name, nan) for name in row} for old in self.rows()]
            write_whole(self.path, to_csv(known, list(row), digits=DIGITS))
        append_text(self.path, to_csv([row], header=not first_line, digits=DIGITS))

    def _first_line(self) -> str:
        if not self.path.is_file():
            return ""
        with open(self.path, newline="") as file:
            return file.readline()
