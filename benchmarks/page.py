"""Writes the tables of docs/performance.md from results/speed: `python benchmarks/page.py`. A test compares them."""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from iddm.report.table import Table, to_markdown, with_tables
from iddm.utils.files import write_whole

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
NAMES = {"iddm": "IDDM", "gaifo": "GAIfO", "imitation_gail": "GAIL of imitation, with actions"}


def throughput(found: dict[str, Any]) -> Table:
    rows = tuple(
        (mode, name, f"{value:,.0f}", f"{found['times_imitation'][mode][name]:.2f}")
        for mode, by_name in found["steps_per_second"].items()
        for name, value in by_name.items()
    )
    return Table(("", "", "env steps/s", "× imitation"), rows, 2, _origin(found))


def breakdown(found: dict[str, Any]) -> Table:
    parts = list(dict.fromkeys(part for row in found["rows"] for part in row["seconds"]))
    rows = tuple(
        (
            row["mode"],
            row["task"],
            NAMES[row["method"]],
            *_timings(row, parts),
        )
        for row in found["rows"]
    )
    peaks = ", ".join(f"{x:.0f} GFLOP/s per process ({mode})" for mode, x in found["matmul_peak_gflops"].items())
    columns = ("", "task", "method", "steps/s", *parts, "whole", "limit", "share")
    return Table(columns, rows, 3, f"Milliseconds per iteration. Matmul peak: {peaks}. {_origin(found)}")


def off_policy(found: dict[str, Any]) -> Table:
    parts = list(found["rows"][0]["seconds"])
    rows = tuple((row["task"], NAMES[row["method"]], *_timings(row, parts, digits=1)) for row in found["rows"])
    peak = f"Matmul peak: {found['matmul_peak_gflops']:.0f} GFLOP/s per process."
    columns = ("task", "method", "steps/s, all cores", *parts, "whole", "limit", "share")
    return Table(columns, rows, 2, f"Milliseconds per iteration of 64 steps. {peak} {_origin(found)}")


def _timings(row: dict[str, Any], parts: list[str], digits: int = 0) -> tuple[str, ...]:
    """Steps per second, milliseconds of each part (where there is one) and of the whole, the limit, and the share of it."""
    each = (f"{1e3 * row['seconds'][part]:.{digits}f}" if part in row["seconds"] else "" for part in parts)
    whole, limit = (f"{1e3 * row[name]:.0f}" for name in ("iteration", "limit"))
    return f"{row['steps_per_second']:,.0f}", *each, whole, limit, f"{100 * row['share']:.0f} %"


def time_to_expert(found: dict[str, Any]) -> Table:
    rows = tuple(
        (
            row["task"],
            NAMES[row["contender"]],
            str(row["seed"]),
            f"{row['steps']:,}" if row["reached"] else f"not within {row['steps']:,}",
            f"{row['seconds']:,.0f}",
            f"{row['best']:,.0f}",
            f"{row['target']:,.0f}",
        )
        for row in found["rows"]
    )
    return Table(("task", "", "seed", "steps", "seconds", "best return", "90 % of the expert"), rows, 2, _origin(found))


def growth(found: dict[str, Any]) -> Table:
    rows = tuple(
        (axis, f"{point['x']:,}", f"{point['steps_per_second']:,.0f}", f"{point['memory_mb']:,.0f}")
        for axis, points in found["axes"].items()
        for point in points
    )
    return Table(("", "", "steps/s", "memory, MB"), rows, 1, _origin(found))


def unchanged(found: dict[str, Any]) -> Table:
    rows = tuple(
        (row["task"], row["method"], row["before"][:12], row["after"][:12], "same bytes" if row["same"] else "differ")
        for row in found["rows"]
    )
    return Table(("task", "method", "SHA-256 before", "SHA-256 after", "policies"), rows, 2, _origin(found))


def _origin(found: dict[str, Any]) -> str:
    other = 100 * found["share_of_machine_taken_by_others"]
    cores = found["machine"]["cores"]
    where = f"commit {found['commit']}, {found['machine']['cpu']}, {cores} core{'s' if cores > 1 else ''}"
    return f"`{found['command']}`, {where}; other processes took {other:.0f} % of the machine meanwhile."


TABLES = {
    "throughput": throughput,
    "breakdown": breakdown,
    "off_policy": off_policy,
    "time_to_expert": time_to_expert,
    "growth": growth,
    "unchanged": unchanged,
}


def written() -> str:
    """The page with its tables made from the committed results."""
    made = {}
    for name, table in TABLES.items():
        file = ROOT / "results" / "speed" / f"{name}.json"
        made[name] = to_markdown(table(json.loads(file.read_text()))) if file.exists() else "Not measured yet."
    return with_tables(PAGE.read_text(), made, "docs/performance.md")


if __name__ == "__main__":
    write_whole(PAGE, written())
