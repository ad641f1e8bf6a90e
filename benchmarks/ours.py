"""One measured run of ours, in a process of its own; prints a JSON line like the peers do."""

import argparse
import itertools
import json
import os
import resource
import tempfile
from pathlib import Path

WARM_UP_ITERATIONS = 3
"""The first holds the compilation."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("method", choices=["gaifo", "iddm"])
    options.add_argument("--env", default="HalfCheetah-v5")
    options.add_argument("--demos", required=True)
    options.add_argument("--iterations", type=int, default=20)
    options.add_argument("--cores", required=True, help="cores to stay on, for example 0,1")
    given = options.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(core) for core in given.cores.split(",")})  # before BLAS and XLA start their threads
    from iddm.training.train import train

    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        train(
            given.env,
            given.demos,
            given.method,
            Path(folder) / "run",
            hidden=(300, 400),
            adversarial={"hidden": (300, 400)},
            steps=2048 * (given.iterations + WARM_UP_ITERATIONS),
            **({"mi": {"hidden": (512, 512)}} if given.method == "iddm" else {}),
            on_row=lambda row: seconds.append(row["seconds"]),
        )
    each = [b - a for a, b in itertools.pairwise(seconds)][WARM_UP_ITERATIONS - 1 :]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"name": f"iddm: {given.method}", "iteration_seconds": each, "peak_memory_mb": memory}))


if __name__ == "__main__":
    main()
