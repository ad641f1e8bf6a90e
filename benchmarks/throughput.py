"""Environment steps a second on the same work: ours, Stable-Baselines3's PPO, and the GAIL of `imitation`.

Nets (300, 400), batch 512, 2048 steps an iteration, 10 epochs, 8 discriminator updates, HalfCheetah. All in one run of this
script, alternating, each in its own process; the figure is the median iteration. `make bench` runs it.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import itertools

from rich.console import Console
from rich.table import Table

import iddm
from benchmarks.machine import OtherLoad, machine_info, matmul_peak
from benchmarks.peers.run import run_peer
from iddm.config import default_config

STEPS = 2048
OBS, ACTIONS = 17, 6


def run_ours(method: str, **options: Any) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).with_name("ours.py")), method]
    command += [f"--{key}={value}" for key, value in options.items()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{method} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def iteration_gflop(method: str) -> float:
    """What an iteration's matrix products need: 2 a weight and row forward, 6 with the gradient, 12 with its penalty."""
    config = default_config("HalfCheetah-v5", method)
    width, critic_width = (300, 400), (512, 512)

    def weights(inputs: int, hidden: tuple[int, ...], outputs: int) -> int:
        sizes = [inputs, *hidden, outputs]
        return sum(a * b for a, b in itertools.pairwise(sizes))

    policy, value = weights(OBS, width, ACTIONS), weights(OBS, width, 1)
    total = config.ppo.epochs * STEPS * 6 * (policy + value)
    total += STEPS * 2 * (2 * policy + 2 * value)  # acting, old log-probabilities, values of both ends
    d = config.terms["adversarial"]
    total += d.updates * d.batch_size * (2 * 6 + 12) * weights(2 * OBS, width, 1)
    if "mi" in config.terms:
        mi = config.terms["mi"]
        critic = weights(2 * OBS + ACTIONS, critic_width, 1)
        total += mi.updates * 2 * mi.batch_size * 6 * critic + 3 * STEPS * 2 * critic
    return total / 1e9


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--iterations", type=int, default=15, help="timed iterations a round")
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--out", default="results/speed/throughput.json")
    given = options.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        demos = Path(folder) / "demos.npz"
        expert = iddm.bundled_expert("HalfCheetah")
        iddm.save_demos(iddm.record_demos(expert, episodes=5, with_actions=True), demos)
        peer = {"steps": STEPS * given.iterations, "threads": given.threads}
        runs = {
            "gaifo (ours)": lambda: run_ours("gaifo", demos=demos, iterations=given.iterations, threads=given.threads),
            "iddm (ours)": lambda: run_ours("iddm", demos=demos, iterations=given.iterations, threads=given.threads),
            "PPO of Stable-Baselines3": lambda: run_peer("sb3_ppo", **peer),
            "GAIL of imitation": lambda: run_peer("imitation_gail", demos=demos, **peer),
        }
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        memory = 0.0
        with OtherLoad() as other:
            for round_number in range(given.rounds):
                for name, run in runs.items():
                    console.print(f"round {round_number + 1}: {name}", highlight=False)
                    result = run()
                    seconds[name] += result["iteration_seconds"]
                    memory = max(memory, result.get("peak_memory_mb", 0.0))
    peak = matmul_peak(given.threads)
    speed = {name: STEPS / statistics.median(values) for name, values in seconds.items()}
    share = {f"{m} (ours)": iteration_gflop(m) / statistics.median(seconds[f"{m} (ours)"]) / peak for m in ("gaifo", "iddm")}

    table = Table(title=f"HalfCheetah, {given.threads} threads, {given.rounds} × {given.iterations} iterations of {STEPS} steps")
    for column in ("", "env steps/s", "× imitation", "of matmul peak"):
        table.add_column(column, justify="right" if column else "left")
    for name, value in speed.items():
        of_peak = f"{100 * share[name]:.0f} %" if name in share else ""
        table.add_row(name, f"{value:,.0f}", f"{value / speed['GAIL of imitation']:.2f}", of_peak)
    console.print(table)
    console.print(
        f"matmul peak {peak:.0f} GFLOP/s; other processes took {100 * other.share:.0f} % of the machine", highlight=False
    )
    console.print(f"largest memory of ours: {memory:.0f} MB", highlight=False)
    result = {
        "command": f"python benchmarks/throughput.py --iterations {given.iterations} --rounds {given.rounds}",
        "machine": machine_info(),
        "threads": given.threads,
        "steps_per_second": speed,
        "times_imitation": {name: value / speed["GAIL of imitation"] for name, value in speed.items()},
        "share_of_matmul_peak": share,
        "matmul_peak_gflops": peak,
        "gflop_an_iteration": {m: iteration_gflop(m) for m in ("gaifo", "iddm")},
        "share_of_machine_taken_by_others": other.share,
        "peak_memory_mb": memory,
        "iteration_seconds": seconds,
    }
    out = Path(given.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
