"""Whether a change left what is learned alone: five methods on two tasks, at a commit before and after it.

`python benchmarks/unchanged.py BEFORE [AFTER]`; without AFTER, the working tree. Runs are made at both, one per core. Where
nothing but speed or structure changed, the two policies have the same bytes. Writes results/speed/unchanged.json.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import OtherLoad, machine_info
from iddm.studies.pool import in_parallel
from iddm.utils.files import write_whole
from iddm.utils.provenance import commit

ROOT = Path(__file__).resolve().parents[1]
TASKS = "Hopper", "HalfCheetah"
METHODS = "iddm", "gail", "deepmimic", "bc", "bco"
SHORT: dict[str, tuple[list[str], ...]] = {
    "bc": (["--epochs", "20"], ["--cloning.epochs", "20"]),
    "bco": (["--rounds", "2"], ["--inverse.rounds", "2"]),
}
"""What makes a method's run short: as the flags are called now, and as they were called before."""


def train(source: str, out: str, task: str, method: str, steps: int) -> str:
    """Train with this source tree; the policy's SHA-256."""
    command = [sys.executable, "-c", "import sys; from iddm.cli import main; sys.exit(main())", "train", task]
    command += ["--method", method, "--steps", str(steps), "--hidden", "32", "32", "--out", out]
    done = None
    for short in SHORT.get(method, ([],)):
        done = subprocess.run([*command, *short], env={**os.environ, "PYTHONPATH": source}, check=False, capture_output=True)
        if done.returncode == 0:
            return hashlib.sha256((Path(out) / "policy.safetensors").read_bytes()).hexdigest()
    raise RuntimeError("" if done is None else done.stderr.decode())


def compare(before: str, after: str | None, steps: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        sources = {"after": str(ROOT / "src")}
        for when, chosen in (("before", before), ("after", after)):
            if chosen is not None:
                subprocess.run(["git", "clone", "-q", str(ROOT), f"{folder}/{when}"], check=True)
                subprocess.run(["git", "-C", f"{folder}/{when}", "checkout", "-q", chosen], check=True)
                sources[when] = f"{folder}/{when}/src"
        jobs = {
            (sources[when], f"{folder}/{task}-{method}-{when}", task, method, steps): (task, method, when)
            for task, method, when in product(TASKS, METHODS, sources)
        }
        found: dict[tuple[str, str], dict[str, str]] = {}
        for ended in in_parallel(train, list(jobs)):
            if ended.value is None:
                raise RuntimeError(f"{jobs[ended.job]}: {ended.error}")
            task, method, when = jobs[ended.job]
            found.setdefault((task, method), {})[when] = ended.value
            print(task, method, when, ended.value[:12], file=sys.stderr, flush=True)
    return [
        {"task": task, "method": method, **pair, "same": pair["before"] == pair["after"]}
        for (task, method), pair in sorted(found.items())
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("before", help="commit to compare with")
    options.add_argument("after", nargs="?", help="commit to compare; without it, the working tree")
    options.add_argument("--steps", type=int, default=40_960)
    options.add_argument("--out", type=Path, default=ROOT / "results" / "speed")
    given = options.parse_args(arguments)
    with OtherLoad() as other:
        rows = compare(given.before, given.after, given.steps)
    typed = " ".join(filter(None, ("python benchmarks/unchanged.py", given.before, given.after, f"--steps {given.steps}")))
    about = {"command": typed, "commit": commit(), "machine": machine_info(), "share_of_machine_taken_by_others": other.share}
    write_whole(given.out / "unchanged.json", json.dumps(about | {"rows": rows}, indent=1) + "\n")
    changed = [f"{row['method']} on {row['task']}" for row in rows if not row["same"]]
    print(
        f"{len(rows) - len(changed)} of {len(rows)} policies have the same bytes"
        + (f"; not {', '.join(changed)}" if changed else "")
    )


if __name__ == "__main__":
    main()
