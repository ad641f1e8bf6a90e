"""Many jobs on a Ray cluster. The runs' directory must be one that all of its machines share."""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from iddm.errors import UserError
from iddm.studies.pool import Ended, Job, Value, attempt
from iddm.utils.extras import need

RETRIES = 3
"""Of a job whose worker died: it resumes from the run's last checkpoint."""


def on_ray(address: str | None) -> Callable[[Callable[..., Value], Sequence[Job], int | None], Iterator[Ended[Value]]]:
    """A pool on the cluster at this address, or on a cluster of this machine's cores where none is given."""
    ray = need("ray", "ray", "Ray clusters")

    def pool(work: Callable[..., Value], jobs: Sequence[Job], workers: int | None = None) -> Iterator[Ended[Value]]:
        if workers is not None and workers < 1:
            raise UserError("The number of workers must be at least 1.")
        if not jobs:
            return
        _connect(ray, address)
        # One process per job, as in the local pool: nothing is left over from the job before.
        task = ray.remote(num_cpus=1, max_calls=1, max_retries=RETRIES)(_on_worker)
        waiting, running = list(jobs)[::-1], {}
        most = workers or max(int(ray.cluster_resources().get("CPU", 1)), 1)
        while waiting or running:
            while waiting and len(running) < most:
                job = waiting.pop()
                running[task.remote(work, job)] = job
            (ready, *_), _ = ray.wait(list(running))
            job = running.pop(ready)
            try:
                value, error = ray.get(ready)
            except ray.exceptions.RayError as error_of_ray:
                value, error = None, str(error_of_ray).strip().splitlines()[-1]
            yield Ended(job, value, error)

    return pool


def _connect(ray: Any, address: str | None) -> None:
    if ray.is_initialized():
        return
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # accepts Ray's coming default, without its notice
    os.environ.setdefault("RAY_worker_niceness", "0")  # on a cluster that is started here, runs are the main work
    try:
        ray.init(
            address=address or "local",
            log_to_driver=False,
            logging_level=logging.ERROR,
            include_dashboard=False if address is None else None,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UserError(f"No Ray cluster answers at {address} ({str(error).splitlines()[0]}).") from error


def _on_worker(work: Callable[..., Any], job: Job) -> tuple[Any, str | None]:
    _start_jax_with_one_thread()
    return attempt(work, job)


def _start_jax_with_one_thread() -> None:
    """As in the local pool, so that sums have one order everywhere. Ray decides on the core; only the start is bound to one.

    Ray itself takes care of BLAS: a task with one CPU gets OMP_NUM_THREADS=1.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    import jax

    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    jax.devices()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # a thread that has ended since
            os.sched_setaffinity(int(thread.name), cores)
