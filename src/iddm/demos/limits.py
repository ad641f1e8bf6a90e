"""What the process that reads a stranger's file may take: as much as the file can honestly need, and no more.

A small file can make HDF5 or Parquet allocate without end: its chunks inflate to more than they say. No reader sees that coming,
so the process itself is bounded. Limits are set in the helper process alone (`demos/reader_process.py`), never in the user's.
"""

import re
import sys
from pathlib import Path

ROOM = 1 << 30
"""Bytes beyond what the process has when a request comes in. Reading small files takes a few megabytes."""
COPIES = 5
"""A file's numbers are in memory at most so many times while they become `Demos`."""
OVERHEAD = 16
"""A file of a million short episodes takes more for Python's objects than for its numbers: so many times its size."""
SMALLEST_LIMIT = 256 << 20
"""Bytes of numbers that any file may unpack to."""
LARGEST_RATIO = 100
"""Or so many times its size: recorded states never compress a hundredfold, and bombs do."""
CPU_SECONDS = 8.0
"""Processor time for any file; large ones get more."""


class Limits:
    """The limits of one request: set when it comes in, and raised where its files declare more, within reason."""

    def __init__(self, num_bytes: int) -> None:
        self._num_bytes = num_bytes
        self._declared: dict[Path, int] = {}
        self._data, self._space = _memory("VmData"), _memory("VmSize")
        self._cpu = _cpu_seconds()
        self._set()

    def declare(self, path: Path, num_bytes: int) -> None:
        self._declared[path] = max(self._declared.get(path, 0), num_bytes)
        self._set()

    def _set(self) -> None:
        believed = min(sum(self._declared.values()), max(SMALLEST_LIMIT, LARGEST_RATIO * self._num_bytes))
        _limit("RLIMIT_CPU", self._cpu + CPU_SECONDS + max(self._num_bytes, believed) / 2e7)
        room = max(ROOM + OVERHEAD * self._num_bytes, COPIES * believed)
        if self._data:
            _limit("RLIMIT_DATA", self._data + room)
            _limit("RLIMIT_AS", self._space + room + self._num_bytes + ROOM)  # files and libraries may be mapped


def _memory(name: str) -> int:
    """Bytes of this process, or 0 where the system does not tell."""
    try:
        found = re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())
    except OSError:
        return 0
    return int(found[1]) << 10 if found else 0


def _cpu_seconds() -> float:
    import resource

    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _limit(name: str, wanted: float) -> None:
    import resource

    kind = getattr(resource, name)
    hard = resource.getrlimit(kind)[1]
    soft = int(wanted) if hard == resource.RLIM_INFINITY else min(int(wanted), hard)
    resource.setrlimit(kind, (soft, hard))


_current: Limits | None = None


def begin(num_bytes: int) -> None:
    """Bound this process for a request whose files have `num_bytes`. Windows has no such limits; there, only time bounds it."""
    global _current
    if sys.platform != "win32":
        _current = Limits(num_bytes)


def declare(path: Path, num_bytes: int) -> None:
    """A file says how many bytes of numbers it holds, and its reader believes it."""
    if _current is not None:
        _current.declare(path, num_bytes)
