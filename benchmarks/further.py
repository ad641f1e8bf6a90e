"""Results beside the paper's: from state-only episodes of experts of another kind, and on tasks that the paper does not have.

`python benchmarks/further.py [Walker2d-v5 …]` trains what has no row in results/further.csv (or resumes it, under runs/further),
evaluates its last policy over 50 fresh episodes, and writes the table of docs/results.md. Other people's episodes are in
../shared/demos.
"""

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from iddm.cli import main as iddm
from iddm.demos import load_demos
from iddm.evaluation import evaluate
from iddm.report.table import with_tables
from iddm.training.run_dir import Run
from iddm.utils.files import from_csv, to_csv, write_whole
from iddm.utils.provenance import commit

ROOT = Path(__file__).resolve().parents[1]
RUNS = Path("runs") / "further"
RESULTS = ROOT / "results" / "further.csv"
PAGE = ROOT / "docs" / "results.md"


@dataclass(frozen=True)
class Expert:
    """Ten episodes of an expert of ours, trained first; it is not in the package."""

    name: str
    flags: str = ""
    """Of `iddm expert`."""


@dataclass(frozen=True)
class Entry:
    """One run."""

    env: str
    method: str
    seed: int
    source: str | Expert
    """Other people's file in ../shared/demos, or an expert of ours."""
    learner: str = "ppo"
    steps: int = 1_000_000
    evaluations: int = 25
    """Off-policy."""

    @property
    def demos(self) -> Path:
        if isinstance(self.source, Expert):
            return self.expert.with_suffix(".npz")
        return Path("..") / "shared" / "demos" / self.source

    @property
    def expert(self) -> Path:
        """Of the run that trains it."""
        assert isinstance(self.source, Expert)
        return RUNS / self._label

    @property
    def shown(self) -> str:
        return self.source.name if isinstance(self.source, Expert) else self.source

    @property
    def _label(self) -> str:
        return f"{self.env}-{self.shown.removesuffix('.npz').replace('/', '-').replace(' ', '-')}"

    @property
    def out(self) -> Path:
        return RUNS / f"{self._label}-{self.learner}-{self.method}-seed{self.seed}"

    @property
    def command(self) -> str:
        """What makes the run by hand."""
        return (
            f"iddm train {self.env} --demos {self.demos} --method {self.method} --steps {self.steps} --seed {self.seed} "
            f"--learner {self.learner}" + (f" --evaluations {self.evaluations}" if self.learner == "sac" else "")
        )


SAC_EXPERT = Expert("our SAC expert", "--learner sac --steps 300000")
ANNEALED_EXPERT = Expert("our annealed SAC expert", "--learner sac --steps 500000 --anneal")
ENTRIES = [
    Entry("Hopper-v5", "iddm", 0, "opolo/Hopper.npz"),
    *(Entry("HalfCheetah-v5", method, seed, "cs285_2023/HalfCheetah.npz") for seed in (0, 1) for method in ("iddm", "gaifo")),
    Entry("Walker2d-v5", "iddm", 0, "opolo/Walker2d.npz"),
    Entry("Humanoid-v5", "iddm", 0, Expert("our expert")),
    Entry("HalfCheetah-v5", "gaifo", 0, SAC_EXPERT, "sac", 100_000),
    Entry("Walker2d-v5", "gaifo", 0, SAC_EXPERT, "sac", 200_000, 50),
    Entry("Hopper-v5", "gaifo", 0, ANNEALED_EXPERT, "sac", 100_000),
    Entry("Humanoid-v5", "gaifo", 0, ANNEALED_EXPERT, "sac", 200_000),
    *(Entry("Walker2d-v5", "gaifo", seed, "opolo/Walker2d.npz", "sac", 300_000, 50) for seed in (0, 1, 2)),
]


def run(command: str) -> None:
    if code := iddm(shlex.split(command)[1:]):
        sys.exit(code)


def trained(command: str, out: Path) -> None:
    """Train by this command, unless it is done; what was stopped goes on."""
    if not (out / "policy.safetensors").exists():
        run(f"iddm train --resume {out}" if out.exists() else f"{command} --out {out}")


def row(entry: Entry) -> dict[str, str]:
    if isinstance(entry.source, Expert):
        trained(f"iddm expert {entry.env} {entry.source.flags}", entry.expert)
        if not entry.demos.exists():
            run(f"iddm demos {entry.expert} --episodes 10 --out {entry.demos}")
    trained(entry.command, entry.out)
    made = Run(entry.out)
    result = evaluate(made.last_policy)
    returns = load_demos(entry.demos).episode_returns
    shown = float("nan") if returns is None else float(returns.mean())
    arrived = [row["steps"] for row in made.metrics() if row["evaluation_return"] >= 0.9 * shown]
    return {
        "env": entry.env,
        "demos": entry.shown,
        "learner": entry.learner,
        "method": entry.method,
        "seed": str(entry.seed),
        "steps": str(entry.steps),
        "mean": f"{result.mean:.1f}",
        "std": f"{result.std:.1f}",
        "episodes": str(len(result.returns)),
        "expert": f"{shown:.1f}",
        "share": f"{result.mean / shown:.3f}",
        "steps_to_90": f"{arrived[0]:.0f}" if arrived else "",
        "commit": commit(),
        "command": entry.command,
    }


def thousands(steps: str) -> str:
    return f"{int(steps):,}" if steps else "–"


def written(rows: list[dict[str, str]]) -> str:
    """The page with the table of these rows."""
    names = ("task", "demonstrations", "learner", "method", "seed", "steps", "return", "expert", "share", "90 % at", "commit")
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    lines += [
        f"| {r['env']} | {r['demos']} | {r['learner']} | {r['method']} | {r['seed']} | {thousands(r['steps'])} "
        f"| {r['mean']} ± {r['std']} | {float(r['expert']):.0f} | {100 * float(r['share']):.0f} % "
        f"| {thousands(r['steps_to_90'])} | {r['commit']} |"
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
