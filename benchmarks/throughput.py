"""Environment steps per second on the same work: ours, Stable-Baselines3's PPO, and the GAIL of `imitation`.

Nets (300, 400), MI net (512, 512), batch 512, 2048 steps per iteration, 10 epochs, 8 discriminator updates, HalfCheetah. All in
one run of this script, alternating; with one process on all cores, and with a single-thread process on each core (speeds are
added). The figure is the median iteration. `make bench` runs it.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.console import Console
from rich.table import Table

from benchmarks.machine import OtherLoad, machine_info, ways
from benchmarks.peers.run import run_peer
from iddm.bundled import bundled_demos, with_expert_actions
from iddm.demos import save_demos
from iddm.utils.cores import available_cores
from iddm.utils.files import write_whole
from iddm.utils.provenance import commit

STEPS = 2048


def run_ours(method: str, threads: int, **options: Any) -> dict[str, Any]:
    """A process of ours; it takes as many threads as it has cores."""
    command = [sys.executable, str(Path(__file__).with_name("ours.py")), method]
    command += [f"--{key}={value}" for key, value in options.items()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{method} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def side_by_side(run: Callable[..., dict[str, Any]], groups: list[list[int]]) -> tuple[list[float], float]:
    """A process on each group of cores at the same time: the seconds of an iteration of all together, and the largest memory."""
    with ThreadPoolExecutor(len(groups)) as pool:
        found = list(pool.map(lambda cores: run(threads=len(cores), cores=",".join(map(str, cores))), groups))
    together = [statistics.median(f["iteration_seconds"]) / len(groups) for f in found]
    return together, max(f.get("peak_memory_mb", 0.0) for f in found)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--iterations", type=int, default=15, help="timed iterations a round")
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--out", type=Path, default=Path("results/speed/throughput.json"))
    given = options.parse_args()
    modes = ways(available_cores())
    with tempfile.TemporaryDirectory() as folder:
        demos = Path(folder) / "demos.npz"
        save_demos(with_expert_actions(bundled_demos("HalfCheetah"), "HalfCheetah"), demos)
        own, peer = {"demos": demos, "iterations": given.iterations}, {"steps": STEPS * given.iterations}
        contenders = {
            "GAIfO (ours)": partial(run_ours, "gaifo", **own),
            "IDDM (ours)": partial(run_ours, "iddm", **own),
            "PPO of Stable-Baselines3": partial(run_peer, "sb3_ppo", **peer),
            "GAIL of imitation": partial(run_peer, "imitation_gail", demos=demos, **peer),
        }
        seconds: dict[str, dict[str, list[float]]] = {mode: {name: [] for name in contenders} for mode in modes}
        memory = 0.0
        with OtherLoad() as other:
            for number, (mode, groups), (name, run) in product(range(given.rounds), modes.items(), contenders.items()):
                print(f"round {number + 1}, {mode}: {name}", file=sys.stderr, flush=True)
                each, largest = side_by_side(run, groups)
                seconds[mode][name] += each
                memory = max(memory, largest)
    speed = {m: {name: STEPS / statistics.median(times) for name, times in by.items()} for m, by in seconds.items()}
    table = Table(title=f"HalfCheetah, {given.rounds} × {given.iterations} iterations of {STEPS} steps", title_justify="left")
    for column in ("", "", "env steps/s", "× imitation"):
        table.add_column(column, justify="right" if column else "left")
    for mode, by_name in speed.items():
        for name, value in by_name.items():
            table.add_row(mode, name, f"{value:,.0f}", f"{value / by_name['GAIL of imitation']:.2f}")
    Console().print(table)
    print(f"Other processes took {100 * other.share:.0f} % of the machine; largest memory of ours: {memory:.0f} MB")
    result = {
        "command": f"python benchmarks/throughput.py --iterations {given.iterations} --rounds {given.rounds}",
        "commit": commit(),
        "machine": machine_info(),
        "steps_per_second": speed,
        "times_imitation": {m: {name: x / by["GAIL of imitation"] for name, x in by.items()} for m, by in speed.items()},
        "share_of_machine_taken_by_others": other.share,
        "peak_memory_mb": memory,
    }
    write_whole(given.out, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
