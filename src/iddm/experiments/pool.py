"""Many runs on one machine: single-thread processes, each on a core of its own."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

from iddm.errors import UserError

Result = TypeVar("Result")


def in_parallel(
    work: Callable[..., Result], jobs: Sequence[tuple[Any, ...]], workers: int | None = None
) -> Iterator[tuple[tuple[Any, ...], Result]]:
    """`work(*job)` for every job, as each is done. An error in one ends the others' queue and is raised here."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    workers = len(cores) if workers is None else workers
    if workers < 1:
        raise UserError("The number of workers must be at least 1.")
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    for i in range(workers):
        queue.put(cores[i % len(cores)])
    with ProcessPoolExecutor(workers, context, _settle_on_core, (queue,)) as pool:
        waiting = {pool.submit(work, *job): job for job in jobs}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _settle_on_core(queue: Any) -> None:
    """Before JAX starts its threads: it makes one for each core that the process may use."""
    core = queue.get()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
