"""How much memory and time the process that reads a stranger's file may use: what such a file can reasonably need, and no more.

A small file can make HDF5 or Parquet allocate without end: its chunks inflate to more than they declare. No reader can tell
beforehand, so the process itself is bounded: only the helper process (`demos/reader_process.py`), never the user's.
"""

import re
import sys
from pathlib import Path

ROOM = 1 << 30
"""Bytes beyond what the process uses when a request arrives. Reading small files takes a few megabytes."""
COPIES = 5
"""At most this many copies of a file's numbers are in memory while they become `Demos`."""
OVERHEAD = 16
"""A file of a million short episodes needs more memory for Python's objects than for its numbers: this many times its size."""
SMALLEST_LIMIT = 256 << 20
"""Bytes of numbers that any file may unpack to."""
LARGEST_RATIO = 100
"""Or this many times its size: recorded states never compress a hundredfold, zip bombs do."""
CPU_SECONDS = 8.0
"""Processor time for any file; large ones get more."""


class Limits:
    """The limits of one request: set when it arrives, and raised where its files declare more, within reason."""

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
    """Bytes of this process, or 0 where the system does not say."""
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
    """Record how many bytes of numbers a file says it holds, once its reader has accepted that."""
    if _current is not None:
        _current.declare(path, num_bytes)
