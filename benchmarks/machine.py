"""What the machine can do: its float32 matmul peak, and what it is.

`python benchmarks/machine.py` prints both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from iddm.utils.cores import available_cores

SIZES = (1024, 2048)
SECONDS_EACH = 1.0


def matmul_peak(groups: Sequence[Sequence[int]]) -> float:
    """GFLOP/s of the fastest square float32 product seen, NumPy's or JAX's, in a process on each group of cores at once.

    The mean over the processes: cores that work at the same time may share what makes one fast. Measured in fresh processes,
    since BLAS and XLA choose their threads when they are loaded.
    """
    rates = matmul_rates(groups)
    return sum(max(each.values()) for each in rates) / len(rates)


def matmul_rates(groups: Sequence[Sequence[int]]) -> list[dict[str, float]]:
    """GFLOP/s by library and size, as `matmul_peak` measures them, for each group."""
    started = []
    for group in groups:
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NPROC")
        environment = {**os.environ, **dict.fromkeys(names, str(len(group))), "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, str(Path(__file__).resolve()), "--measure", ",".join(map(str, group))]
        started.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    found = []
    for process in started:
        out, error = process.communicate()
        if process.returncode:
            raise RuntimeError(f"the matmul peak could not be measured:\n{error[-2000:]}")
        found.append(json.loads(out.splitlines()[-1]))
    return found


def machine_info() -> dict[str, Any]:
    """What a reader needs to judge a measurement by."""
    return {
        "cpu": _cpu_model(),
        "cores": len(available_cores()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "jax": version("jax"),
        "jaxlib": version("jaxlib"),
    }


class OtherLoad:
    """`with OtherLoad() as other:` then `other.share`: how much of the machine other processes took meanwhile.

    A measurement beside others is not one (two OpenMP threads that share their cores can be ten times slower).
    Processor time of this process and of its ended children is its own; NaN where the system does not tell.
    """

    share = float("nan")

    def __enter__(self) -> OtherLoad:
        self._start = self._now()
        return self

    def __exit__(self, *_: object) -> None:
        busy, total, own = (now - then for now, then in zip(self._now(), self._start, strict=True))
        if total > 0:
            self.share = max(0.0, busy - own) / total

    @staticmethod
    def _now() -> tuple[float, float, float]:
        try:
            ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        except (OSError, ValueError):
            return 0.0, 0.0, 0.0
        idle = ticks[3] + ticks[4]
        own = sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK")
        return float(sum(ticks) - idle), float(sum(ticks)), own


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _measure(cores: Sequence[int]) -> dict[str, float]:
    """Runs in the fresh process: pin first, load the libraries after."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    import jax
    import numpy as np

    rates = {}
    product = jax.jit(lambda a, b: a @ b)
    for size in SIZES:
        a, b = np.random.default_rng(0).standard_normal((2, size, size), dtype=np.float32)
        rates[f"numpy {size}"] = _best_rate(lambda a=a, b=b: a @ b, size)
        c, d = jax.device_put(a), jax.device_put(b)
        rates[f"jax {size}"] = _best_rate(lambda c=c, d=d: product(c, d).block_until_ready(), size)
    return rates


def _best_rate(call: Callable[[], object], size: int) -> float:
    """The best of many: on a shared machine the others are measurements of the neighbours."""
    call()
    best, end = float("inf"), time.perf_counter() + SECONDS_EACH
    while True:
        started = time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - started)
        if now > end:
            return round(2 * size**3 / best / 1e9, 1)


def ways(cores: Sequence[int]) -> dict[str, list[list[int]]]:
    """The two ways to use all cores: one process with a thread for each, or a single-thread process on each."""
    return {f"1 process, {len(cores)} threads": [list(cores)], f"{len(cores)} processes, 1 thread": [[core] for core in cores]}


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--measure", help=argparse.SUPPRESS)
    measured = arguments.parse_args().measure
    if measured:
        print(json.dumps(_measure([int(core) for core in measured.split(",")])))
    else:
        print(json.dumps(machine_info()))
        for way, groups in {"1 process, 1 thread": [available_cores()[:1]], **ways(available_cores())}.items():
            print(f"{way}: {matmul_peak(groups):.0f} GFLOP/s per process")
