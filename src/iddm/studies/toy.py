"""The learning half of the paper's toy study (IDDM, Sec. 5.1 and Fig. 1c): GAIL, GAIfO and IDDM in the Gridworld.

For each number of choices n and each seed: an expert trained with PPO, its episodes, three imitators, and each imitator's policy
compared with the expert's exactly, by the solver of `iddm.theory`.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from iddm.envs.gridworld import ENV_ID
from iddm.errors import UserError
from iddm.studies.core import Config, Demos, Policy, config_of, finish, load_demos, record_demos, save_demos
from iddm.studies.pool import in_parallel
from iddm.theory.maze import CELLS
from iddm.theory.mdp import Array
from iddm.theory.toy import ExactMeasures, exact_measures, relabellings
from iddm.utils.files import from_csv, records, to_csv, write_whole
from iddm.utils.provenance import commit

METHODS = ("gail", "gaifo", "iddm")
CHOICES = (1, 2, 4, 11)
EXPERT_STEPS, STEPS, DEMO_EPISODES = 40_000, 200_000, 50

# Chosen on seeds 100 and 101. The Gridworld ends only at the target, so a reward that is never negative (softplus) is
# higher the longer it stays away: with it, GAIfO reached the target in 1 to 6 % of its episodes. The logit has no such bias.
# The imitators' policy is a table (no hidden layer): what a state's choices drift to is then not shared by all states.
EXPERT = {"steps": EXPERT_STEPS, "hidden": (64, 64), "num_envs": 8, "ppo.learning_rate": 1e-3, "ppo.batch_size": 256}
IMITATOR = {
    "steps": STEPS,
    "hidden": (),
    "num_envs": 8,
    "ppo.learning_rate": 5e-3,
    "ppo.batch_size": 256,
    "adversarial.hidden": (64, 64),
    "adversarial.learning_rate": 1e-3,
    "adversarial.gradient_penalty": 0.1,
    "adversarial.reward_form": "logit",
}
SETTINGS: dict[str, dict[str, Any]] = {
    "ppo": EXPERT,
    "gail": IMITATOR,
    "gaifo": IMITATOR,
    "iddm": IMITATOR | {"entropy.weight": 0.05},
}

# The paper's Table 5: mean and deviation of the return, for n = 1, 2, 4, 11.
PAPER = {
    "gail": ((86.0, 3.0), (70.4, 6.4), (68.7, 5.8), (69.0, 4.0)),
    "gaifo": ((86.8, 1.3), (55.7, 11.9), (48.3, 9.3), (28.3, 6.2)),
    "iddm": ((87.3, 1.8), (65.0, 3.3), (56.0, 5.0), (49.0, 8.6)),
}


@dataclass(frozen=True)
class ToyRow:
    """One policy, measured exactly. Divergences are from the expert of the same n and seed, in nats."""

    num_choices: int
    seed: int
    method: str
    steps: int
    expected_return: float
    success: float
    disagreement: float
    disagreement_of_bumps: float
    disagreement_relabelled: float
    """the mean over all ways to rotate the names of the choices, which cannot be known from states alone"""
    kl_ss: float
    kl_sa: float


def toy_config(method: str, num_choices: int, seed: int, steps: int | None = None) -> Config:
    """The settings of one run."""
    own = {"seed": seed, "env_kwargs": json.dumps({"num_choices": num_choices})} | ({"steps": steps} if steps else {})
    return config_of(ENV_ID, method, SETTINGS[method] | own)


def policy_table(policy: Policy) -> Array:
    """π(a|s) [S, 4n] of a learned policy."""
    return policy.probabilities(np.eye(len(CELLS), dtype=np.float32))


def toy_cell(num_choices: int, seed: int, runs: Path, steps: int | None = None) -> list[ToyRow]:
    """Expert and imitators for one n and one seed; what is on disk already is not done again."""
    here = runs / f"n{num_choices}-seed{seed}"
    expert = finish(toy_config("ppo", num_choices, seed, steps), here / "expert").policy
    demos = _demonstrations(expert, here / "demos.npz")
    expert_table = policy_table(expert)
    rows = [_row("expert", expert, expert_table)]
    for method in METHODS:
        run = finish(toy_config(method, num_choices, seed, steps), here / method, demos=demos)
        rows.append(_row(method, run.policy, expert_table))
    return rows


def _demonstrations(expert: Policy, file: Path) -> Demos:
    """The expert's episodes, with the noise that its policy has: its occupancy is what the imitators are to match."""
    if not file.exists():
        save_demos(record_demos(expert, DEMO_EPISODES, with_actions=True, stochastic=True), file)
    return load_demos(file)


def _row(method: str, policy: Policy, expert_table: Array) -> ToyRow:
    num_choices = policy.config["env_kwargs"]["num_choices"]
    table = policy_table(policy)
    exact: ExactMeasures = exact_measures(num_choices, table, expert_table)
    relabelled = [exact_measures(num_choices, other, expert_table).disagreement for other in relabellings(num_choices, table)]
    return ToyRow(
        num_choices,
        policy.config["seed"],
        method,
        policy.config["steps"],
        disagreement_relabelled=float(np.mean(relabelled)),
        **asdict(exact),
    )


def toy_study(
    num_seeds: int = 5,
    choices: Sequence[int] = CHOICES,
    out: Path = Path("results/toy"),
    runs: Path = Path("runs/toy"),
    steps: int | None = None,
    workers: int | None = None,
    on_cell: Callable[[list[ToyRow]], None] = lambda rows: None,
) -> list[ToyRow]:
    """All cells, on all cores; writes toy.csv and about.json, and returns the rows."""
    if num_seeds < 1 or not choices or min(choices) < 1:
        raise UserError("The toy study needs at least one seed and at least one choice for each move.")
    began = time.perf_counter()
    jobs = [(n, seed, runs, steps) for seed in range(num_seeds) for n in sorted(set(choices), reverse=True)]
    rows: list[ToyRow] = []
    for ended in in_parallel(toy_cell, jobs, workers):
        if ended.value is None:
            raise UserError(f"n = {ended.job[0]}, seed {ended.job[1]}: {ended.error}")
        rows += ended.value
        on_cell(ended.value)
    rows.sort(key=lambda row: (row.num_choices, ("expert", *METHODS).index(row.method), row.seed))
    write_whole(out / "toy.csv", rows_to_csv(rows))
    about = {
        "command": " ".join(["iddm", *sys.argv[1:]]),
        "commit": commit(),
        "seconds": round(time.perf_counter() - began),
        "seeds": num_seeds,
        "demonstrations": f"{DEMO_EPISODES} episodes of the expert's stochastic policy",
        "settings": SETTINGS,
    }
    write_whole(out / "about.json", json.dumps(about, indent=2) + "\n")
    return rows


def rows_to_csv(rows: Sequence[ToyRow]) -> str:
    return to_csv([asdict(row) for row in rows], [field.name for field in fields(ToyRow)], digits=6)


def read_rows(file: Path) -> list[ToyRow]:
    """What `rows_to_csv` wrote."""
    return records(ToyRow, from_csv(file))
