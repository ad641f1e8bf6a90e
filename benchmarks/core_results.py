"""The first results: IDDM and GAIfO from other people's state-only episodes, with the tuned settings.

Each run is trained (or resumed, or left as it is where it is finished) under runs/core and evaluated over 50 fresh episodes; the
rows go to results/core.csv with seed, command and commit. Needs the demonstrations of ../shared/demos.
"""

import argparse
import csv
import io
import subprocess
from dataclasses import dataclass
from pathlib import Path

from iddm.demos import load_demos
from iddm.evaluation import evaluate
from iddm.experiments.provenance import commit
from iddm.files import write_whole
from iddm.policy import load_policy

ROOT = Path(__file__).resolve().parents[1]
DEMOS = Path("..") / "shared" / "demos"
RESULTS = ROOT / "results" / "core.csv"


@dataclass(frozen=True)
class Entry:
    env: str
    demos: str
    method: str
    seed: int
    steps: int = 1_000_000

    @property
    def name(self) -> str:
        return f"{self.env}-{self.method}-seed{self.seed}"

    @property
    def command(self) -> str:
        return (
            f"iddm train {self.env} --demos {DEMOS / self.demos} --method {self.method} --steps {self.steps} --seed {self.seed}"
        )


ENTRIES = [
    Entry("Hopper-v5", "opolo/Hopper.npz", "iddm", 0),
    Entry("HalfCheetah-v5", "cs285_2023/HalfCheetah.npz", "iddm", 0),
    Entry("HalfCheetah-v5", "cs285_2023/HalfCheetah.npz", "gaifo", 0),
    Entry("HalfCheetah-v5", "cs285_2023/HalfCheetah.npz", "iddm", 1),
    Entry("HalfCheetah-v5", "cs285_2023/HalfCheetah.npz", "gaifo", 1),
]


def train(entry: Entry) -> Path:
    out = ROOT / "runs" / "core" / entry.name
    if not (out / "policy.safetensors").exists():
        args = ["--resume", str(out)] if out.exists() else [*entry.command.split()[2:], "--out", str(out)]
        subprocess.run(["iddm", "train", *args], check=True, cwd=ROOT)
    return out


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", type=int, nargs="*", help="train just these entries (by number), without writing results")
    only = options.parse_args().only
    if only is not None:
        for i in only:
            train(ENTRIES[i])
        return
    rows = []
    for entry in ENTRIES:
        result = evaluate(load_policy(train(entry)))
        returns = load_demos(ROOT / DEMOS / entry.demos).episode_returns
        expert = float("nan") if returns is None else float(returns.mean())
        rows.append(
            {
                "env": entry.env,
                "demos": entry.demos,
                "method": entry.method,
                "seed": entry.seed,
                "steps": entry.steps,
                "mean": f"{result.mean:.1f}",
                "std": f"{result.std:.1f}",
                "episodes": len(result.returns),
                "expert": f"{expert:.1f}",
                "share": f"{result.mean / expert:.3f}",
                "commit": commit(),
                "command": entry.command,
            }
        )
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(RESULTS, text.getvalue())
    print(text.getvalue())


if __name__ == "__main__":
    main()
