"""Readers in C and C++ run in a process of their own: a hostile file may end, stall or swell that one, never the user's.

A damaged Parquet file can abort the process that reads it and a damaged HDF5 file can keep it busy, which no `except` sees
(docs/demonstrations.md has how often). The helper starts with the first such file,
serves all later ones, and ends with the program. What it has read comes back as our own npz.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from iddm.demos.formats.npz import read_npz
from iddm.demos.formats.ours import arrays_from_demos
from iddm.demos.types import Demos
from iddm.errors import UserError

SMALLEST_MEMORY = 8 << 30
PATIENCE = 20.0
"""Seconds for any file; large ones get more."""

_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from iddm.demos.reader_process import serve; serve()"


class Helper:
    """The other process, started when it is first needed and again when a file has ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def read(self, path: Path) -> Demos:
        with self._lock, tempfile.TemporaryDirectory(prefix="iddm-") as folder:
            out = Path(folder) / "demos.npz"
            answer = self._ask({"path": str(path), "out": str(out), "from": os.getcwd()}, PATIENCE + _size(path) / 1e7)
            if "error" in answer:
                raise UserError(answer["error"])
            return read_npz(out)

    def _ask(self, request: dict[str, str], patience: float) -> dict[str, Any]:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()
        timer = threading.Timer(patience, lambda: (late.set(), process.kill()))
        timer.start()
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        finally:
            timer.cancel()
        if line:
            return json.loads(line)
        self.close()
        why = f"reading it took more than {patience:.0f} s" if late.is_set() else "its reader broke down"
        return {"error": f"{request['path']}: the file is damaged ({why}); write it anew, or convert it to npz"}

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
            )
        return self._process

    def close(self) -> None:
        """End the other process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()  # closes the pipes
            self._process = None


HELPER = Helper()
atexit.register(HELPER.close)


def serve() -> None:
    """The other process: a request a line, an answer a line, until the program that asks is gone."""
    from iddm.demos.load import load_here

    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no answer
    for line in sys.stdin:
        request = json.loads(line)
        os.chdir(request["from"])  # what a relative path is meant from
        _bound_memory(Path(request["path"]))
        answer = {}
        try:
            arrays: dict[str, Any] = {**arrays_from_demos(load_here(request["path"]))}
            np.savez(request["out"], **arrays)
        except UserError as error:
            answer["error"] = str(error)
        except MemoryError:
            answer["error"] = f"{request['path']}: there is not enough memory to read it"
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _bound_memory(path: Path) -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource

        wanted = max(SMALLEST_MEMORY, 8 * _size(path))
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())
