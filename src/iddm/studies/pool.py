"""Many jobs on one machine: each in a process with one thread, on a core of its own."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from iddm.errors import UserError
from iddm.utils.cores import available_cores

Value = TypeVar("Value")
Job = tuple[Any, ...]


@dataclass(frozen=True)
class Ended(Generic[Value]):
    """A job that is over: with its value, or with what went wrong, in one sentence."""

    job: Job
    value: Value | None = None
    error: str | None = None


def in_parallel(work: Callable[..., Value], jobs: Sequence[Job], workers: int | None = None) -> Iterator[Ended[Value]]:
    """`work(*job)` for every job, yielded as each ends. A job that fails, or whose process dies, does not stop the others."""
    cores = available_cores()
    workers = len(cores) if workers is None else workers
    if workers < 1:
        raise UserError("The number of workers must be at least 1.")
    waiting, free = list(jobs)[::-1], [cores[i % len(cores)] for i in range(workers)][::-1]
    running: dict[Connection, _Process] = {}
    try:
        while waiting or running:
            while waiting and free:
                process = _Process.start(work, waiting.pop(), free.pop())
                running[process.answer] = process
            for answer in wait(list(running)):
                process = running.pop(answer)  # pyright: ignore[reportArgumentType]
                free.append(process.core)
                yield process.ended()
    finally:
        for process in running.values():
            process.stop()


@dataclass(frozen=True)
class _Process:
    job: Job
    core: int
    answer: Connection
    process: Any

    @staticmethod
    def start(work: Callable[..., Any], job: Job, core: int) -> "_Process":
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_in_child, args=(theirs, work, job), daemon=True)
        with _on(core):
            process.start()
        theirs.close()
        return _Process(job, core, ours, process)  # pyright: ignore[reportArgumentType]

    def ended(self) -> Ended[Any]:
        try:
            value, error = self.answer.recv()
        except EOFError:
            self.process.join()
            code = self.process.exitcode
            return Ended(
                self.job, error=f"its process was ended by {signal.Signals(-code).name if code < 0 else f'exit {code}'}."
            )
        self.process.join()
        return Ended(self.job, value, error)

    def stop(self) -> None:
        """At an interrupt the process gets the signal too, and writes its checkpoint: give it time."""
        self.process.join(timeout=60)
        self.process.kill()


@contextmanager
def _on(core: int) -> Iterator[None]:
    """What is started here inherits the core, before JAX and BLAS start a thread for each core that they may use."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _in_child(answer: Connection, work: Callable[..., Any], job: Job) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(KeyboardInterrupt):  # the parent gets it too, and reports it
        answer.send(attempt(work, job))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def attempt(work: Callable[..., Any], job: Job) -> tuple[Any, str | None]:
    """The value and no error, or no value and the error in one sentence."""
    try:
        return work(*job), None
    except UserError as error:
        return None, str(error)
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
