"""Readers in C and C++ run in a process of their own: a hostile file may crash, stall or bloat that one, never the user's.

A damaged Parquet file can abort the process that reads it, and a damaged HDF5 file can keep it busy forever; no `except` catches
either. The helper starts with the first such file, serves all later ones, and ends with the program. What it has read comes back
as our own npz.
"""

import atexit
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from iddm.demos import limits
from iddm.demos.formats.common import size_of
from iddm.demos.formats.npz import read_npz
from iddm.demos.formats.ours import arrays_from_demos
from iddm.demos.limits import CPU_SECONDS
from iddm.demos.types import Demos
from iddm.errors import UserError

PATIENCE = 60.0
"""Seconds for any file, even on a busy machine; large ones get more. A reader that computes forever is stopped earlier
(`limits.CPU_SECONDS`)."""

_START = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "  # Ctrl-C is for the program: it ends us if it wants
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from iddm.demos.reader_process import serve; serve()"
)
_SMALL = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # the others reserve a gigabyte, which counts as used
    "ARROW_IO_THREADS": "1",
    "OMP_NUM_THREADS": "1",  # a thread's stack counts too, and Arrow starts one for each core
    "OPENBLAS_NUM_THREADS": "1",
}


class Helper:
    """The other process, started when it is first needed and again when a file has ended it.

    It belongs to the process that started it: a fork starts its own. An interrupted request ends it: its late answer would be
    taken for the next one's.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._asked = False
        """Whether an answer is still to come."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._leave_to_parent)

    def read(self, path: Path, episode_column: str | None = None) -> Demos:
        with self._lock, tempfile.TemporaryDirectory(prefix="iddm-", ignore_cleanup_errors=True) as folder:
            out = Path(folder) / "demos.npz"
            request = {"path": str(path), "episode_column": episode_column, "out": str(out), "from": os.getcwd()}
            answer = self._ask(request, PATIENCE + size_of(path) / 1e7)
            if "error" in answer:
                raise UserError(answer["error"])
            return read_npz(out)

    def _ask(self, request: dict[str, Any], patience: float) -> dict[str, Any]:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()
        timer = threading.Timer(patience, lambda: (late.set(), process.kill()))
        timer.daemon = True
        timer.start()
        self._asked, line = True, b""
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            line = process.stdout.readline()
            self._asked = False
        except OSError:
            pass
        except BaseException:  # a signal's handler raised, as for Ctrl-C
            process.kill()
            raise
        finally:
            timer.cancel()
        timer.join()
        if line.endswith(b"\n") and not late.is_set():
            return json.loads(line)
        self.close()
        stopped = process.returncode == -getattr(signal, "SIGXCPU", 0)
        slow = f"reading it took more than {CPU_SECONDS if stopped else patience:.0f} s"
        why = slow if stopped or late.is_set() else "its reader crashed"
        return {"error": f"{request['path']}: the file is damaged ({why}); write it again, or convert it to npz"}

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._asked or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,  # no locks of buffers, which a fork could inherit held
                env={**os.environ, **_SMALL},
            )
        return self._process

    def close(self) -> None:
        """End the other process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._forget()

    def _leave_to_parent(self) -> None:
        """In a fork: the helper is the parent's, and a thread that held the lock is not here."""
        self._lock = threading.Lock()
        if self._process is not None:
            self._process.returncode = 0  # not our child: nothing to wait for
            self._forget()

    def _forget(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout) if self._process else ():
            if pipe is not None:
                pipe.close()
        self._process, self._asked = None, False


HELPER = Helper()
atexit.register(HELPER.close)


def serve() -> None:
    """The other process: one request per line, one answer per line, until the program that asks is gone."""
    from iddm.demos.load import TOO_MUCH_MEMORY, load_here

    for library in ("h5py", "pyarrow.parquet"):  # so that a request's limits are about its file alone
        with suppress(ImportError):
            importlib.import_module(library)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is not an answer
    for line in sys.stdin:
        request = json.loads(line)
        os.chdir(request["from"])  # what a relative path is relative to
        answer = {}
        try:
            limits.begin(size_of(Path(request["path"])))
            arrays: dict[str, Any] = {**arrays_from_demos(load_here(request["path"], request["episode_column"]))}
            np.savez(request["out"], **arrays)
        except UserError as error:
            answer["error"] = str(error)
        except MemoryError:
            answer["error"] = f"{request['path']}: {TOO_MUCH_MEMORY}"
        except OSError as error:  # the disk is full
            answer["error"] = f"{request['path']}: cannot be read ({error.strerror or error})"
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
