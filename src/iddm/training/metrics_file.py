"""metrics.csv: one row per iteration."""

import csv
from dataclasses import dataclass
from math import nan
from pathlib import Path

from iddm.errors import UserError
from iddm.utils.files import append_text, from_csv, numbers, to_csv, write_whole

Row = dict[str, float]
DIGITS = 7
COLUMNS = ("iteration", "steps", "seconds", "episode_return", "episodes")
"""Those of every run, whatever its method."""


@dataclass(frozen=True)
class MetricsFile:
    """The metrics of a run, a row per iteration."""

    path: Path

    def rows(self) -> list[Row]:
        """All whole rows; a missing number (no episode ended) is NaN. A half-written last row is left out."""
        if not self.path.is_file():
            return []
        try:
            rows = [numbers(row) for row in from_csv(self.path)]
        except (OSError, ValueError, csv.Error) as error:
            raise UserError(f"{self.path}: not the metrics of a run ({error}).") from error
        if rows and (missing := [name for name in COLUMNS if name not in rows[0]]):
            raise UserError(f"{self.path}: not the metrics of a run ('{missing[0]}' is missing).")
        return rows

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
        with open(self.path, newline="", errors="replace") as file:
            return file.readline()
