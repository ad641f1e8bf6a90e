"""CSV files: what goes in comes back, and half a row never does."""

from dataclasses import asdict, dataclass
from math import inf, isnan, nan
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from iddm.utils.files import from_csv, numbers, records, to_csv


@dataclass(frozen=True)
class Row:
    name: str
    count: int
    value: float


@given(st.lists(st.builds(Row, st.text(st.characters(exclude_categories=["C"])), st.integers(), st.floats(allow_nan=False))))
def test_records_come_back_as_they_went(tmp_path_factory, rows: list[Row]) -> None:
    file = tmp_path_factory.mktemp("csv") / "rows.csv"
    file.write_text(to_csv([asdict(row) for row in rows], ["name", "count", "value"]), newline="")
    assert records(Row, from_csv(file)) == rows


def test_metrics_have_seven_digits_no_needless_point_and_empty_cells_for_nan(tmp_path: Path) -> None:
    row = {"iteration": 1, "steps": 2048.0, "seconds": 0.123456789, "episode_return": nan, "loss": inf}
    text = to_csv([row], digits=7)
    assert text == "iteration,steps,seconds,episode_return,loss\n1,2048,0.1234568,,inf\n"
    (tmp_path / "metrics.csv").write_text(text + to_csv([row], header=False, digits=7))
    first, second = map(numbers, from_csv(tmp_path / "metrics.csv"))
    assert isnan(first.pop("episode_return"))
    assert isnan(second.pop("episode_return"))
    assert first == second == {"iteration": 1, "steps": 2048, "seconds": 0.1234568, "loss": inf}


def test_a_half_written_last_row_is_left_out(tmp_path: Path) -> None:
    whole = to_csv([{"a": 1, "b": 23.5}, {"a": 2, "b": 24.5}])
    for cut in range(len("a,b\n1,23.5\n"), len(whole)):
        (tmp_path / "rows.csv").write_text(whole[:cut])
        assert from_csv(tmp_path / "rows.csv") == [{"a": "1", "b": "23.5"}]


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("")
    assert from_csv(tmp_path / "rows.csv") == []
