"""Whether what made us faster left the returns alone: IDDM on Hopper and HalfCheetah, three seeds, at a commit before and now.

`python benchmarks/unchanged.py COMMIT`; both train from today's bundled episodes, a run on each core. Where nothing but speed
changed, the two policies have the same bytes. Writes results/speed/unchanged.json.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import OtherLoad, machine_info
from iddm.bundled import DATA
from iddm.evaluation import evaluate
from iddm.policy import load_policy
from iddm.studies.pool import in_parallel
from iddm.utils.files import write_whole
from iddm.utils.provenance import commit

ROOT = Path(__file__).resolve().parents[1]
TASKS = "Hopper", "HalfCheetah"
SEEDS = 0, 1, 2
EPISODES = 50


def train(source: str, out: str, task: str, seed: int, steps: int) -> tuple[str, float, float]:
    """Train with this source tree; fingerprint of the policy, mean and deviation of its returns."""
    options = ["--demos", str(DATA / f"{task}.npz"), "--steps", str(steps), "--seed", str(seed), "--out", out]
    options += ["--log-std-init", "-1"]  # a default that has changed for another reason than speed
    command = [sys.executable, "-c", "import sys; from iddm.cli import main; sys.exit(main())", "train", task, *options]
    subprocess.run(
        command, env={**os.environ, "PYTHONPATH": source}, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    file = Path(out) / "policy.safetensors"
    returns = evaluate(load_policy(file), env=task, episodes=EPISODES).returns
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12], float(returns.mean()), float(returns.std())


def compare(before: str, steps: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "-q", str(ROOT), f"{folder}/before"], check=True)
        subprocess.run(["git", "-C", f"{folder}/before", "checkout", "-q", before], check=True)
        sources = {"before": f"{folder}/before/src", "after": str(ROOT / "src")}
        jobs = {
            (sources[when], f"{folder}/{task}-{seed}-{when}", task, seed, steps): (task, seed, when)
            for task in TASKS
            for seed in SEEDS
            for when in sources
        }
        found: dict[tuple[str, int], dict[str, Any]] = {}
        for ended in in_parallel(train, list(jobs)):
            if ended.value is None:
                raise RuntimeError(f"{jobs[ended.job]}: {ended.error}")
            task, seed, when = jobs[ended.job]
            policy, mean, std = ended.value
            found.setdefault((task, seed), {})[when] = {"policy": policy, "mean": mean, "std": std}
            print(task, seed, when, ended.value, file=sys.stderr, flush=True)
    return [{"task": task, "seed": seed, **pair} for (task, seed), pair in sorted(found.items())]


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("before", help="commit to compare with")
    options.add_argument("--steps", type=int, default=200_000)
    options.add_argument("--out", type=Path, default=ROOT / "results" / "speed")
    given = options.parse_args(arguments)
    with OtherLoad() as other:
        rows = compare(given.before, given.steps)
    about = {"command": f"python benchmarks/unchanged.py {given.before} --steps {given.steps}", "commit": commit()}
    about |= {"machine": machine_info(), "share_of_machine_taken_by_others": other.share, "before": given.before, "rows": rows}
    write_whole(given.out / "unchanged.json", json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
