"""Results beside the paper's: from other people's state-only episodes, and on tasks that the paper does not have.

`python benchmarks/further.py [Walker2d-v5 …]` trains what has no row in results/further.csv (or resumes it, under runs/further),
evaluates it over 50 fresh episodes, and writes the table of docs/results.md. Other people's episodes are in ../shared/demos.
"""

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from iddm.cli import main as iddm
from iddm.demos import load_demos
from iddm.evaluation import evaluate
from iddm.policy import load_policy
from iddm.report.table import with_tables
from iddm.utils.files import from_csv, to_csv, write_whole
from iddm.utils.provenance import commit

ROOT = Path(__file__).resolve().parents[1]
RUNS = Path("runs") / "further"
RESULTS = ROOT / "results" / "further.csv"
PAGE = ROOT / "docs" / "results.md"


@dataclass(frozen=True)
class Entry:
    """One run."""

    env: str
    method: str
    seed: int
    recorded: str = ""
    """Other people's file in ../shared/demos; without it, ten episodes of our own expert, trained first."""
    steps: int = 1_000_000

    @property
    def demos(self) -> Path:
        return Path("..") / "shared" / "demos" / self.recorded if self.recorded else RUNS / f"{self.env}.npz"

    @property
    def out(self) -> Path:
        return RUNS / f"{self.env}-{self.method}-seed{self.seed}"

    @property
    def command(self) -> str:
        """What makes the run by hand."""
        return f"iddm train {self.env} --demos {self.demos} --method {self.method} --steps {self.steps} --seed {self.seed}"


ENTRIES = [
    Entry("Hopper-v5", "iddm", 0, "opolo/Hopper.npz"),
    *(Entry("HalfCheetah-v5", method, seed, "cs285_2023/HalfCheetah.npz") for seed in (0, 1) for method in ("iddm", "gaifo")),
    Entry("Walker2d-v5", "iddm", 0, "opolo/Walker2d.npz"),
    Entry("Humanoid-v5", "iddm", 0),
]


def run(command: str) -> None:
    if code := iddm(shlex.split(command)[1:]):
        sys.exit(code)


def trained(command: str, out: Path) -> None:
    """Train by this command, unless it is done; what was stopped goes on."""
    if not (out / "policy.safetensors").exists():
        run(f"iddm train --resume {out}" if out.exists() else f"{command} --out {out}")


def row(entry: Entry) -> dict[str, str]:
    if not entry.recorded:
        expert = RUNS / f"{entry.env}-expert"
        trained(f"iddm expert {entry.env}", expert)
        run(f"iddm demos {expert} --episodes 10 --out {entry.demos}")
    trained(entry.command, entry.out)
    result = evaluate(load_policy(entry.out))
    returns = load_demos(entry.demos).episode_returns
    shown = float("nan") if returns is None else float(returns.mean())
    return {
        "env": entry.env,
        "demos": entry.recorded or "our expert",
        "method": entry.method,
        "seed": str(entry.seed),
        "steps": str(entry.steps),
        "mean": f"{result.mean:.1f}",
        "std": f"{result.std:.1f}",
        "episodes": str(len(result.returns)),
        "expert": f"{shown:.1f}",
        "share": f"{result.mean / shown:.3f}",
        "commit": commit(),
        "command": entry.command,
    }


def written(rows: list[dict[str, str]]) -> str:
    """The page with the table of these rows."""
    lines = ["| task | demonstrations | method | seed | return | expert | share | commit |", "|---|---|---|---|---|---|---|---|"]
    lines += [
        f"| {r['env']} | {r['demos']} | {r['method']} | {r['seed']} | {r['mean']} ± {r['std']} | {float(r['expert']):.0f} "
        f"| {100 * float(r['share']):.0f} % | {r['commit']} |"
        for r in rows
    ]
    return with_tables(PAGE.read_text(), {"further": "\n".join(lines)}, PAGE.name)


def main() -> None:
    os.chdir(ROOT)
    rows = from_csv(RESULTS)
    for entry in ENTRIES:
        if any(r["command"] == entry.command for r in rows) or (sys.argv[1:] and entry.env not in sys.argv[1:]):
            continue
        rows.append(row(entry))
        write_whole(RESULTS, to_csv(rows, list(rows[0])))
    write_whole(PAGE, written(rows))


if __name__ == "__main__":
    main()
