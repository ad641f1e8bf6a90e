"""`iddm theory`: every theorem with both sides and its error, on random MDPs and on the Gridworld."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from iddm.theory import theorems, theorems_js
from iddm.theory.claims import Claim
from iddm.theory.examples import random_mdp, random_policy
from iddm.theory.maze import gridworld_mdp
from iddm.theory.mdp import Array, FiniteMDP
from iddm.theory.toy import shortest_path_moves, spread

OF_TWO_POLICIES: tuple[Callable[..., Claim], ...] = (
    theorems.lemma_1,
    theorems.theorem_1,
    theorems.lemma_2,
    theorems.corollary_1,
    theorems.theorem_2,
    theorems.inverse_entropy_bound,
    theorems_js.lemma_1_js,
    theorems_js.theorem_1_js,
    theorems_js.corollary_1_js,
    theorems_js.theorem_2_js,
    theorems_js.jeffreys_bound,
)
OF_THE_AGENT: tuple[Callable[..., Claim], ...] = (
    theorems.entropy_decomposition,
    theorems.state_entropy,
    theorems.entropy_chain,
)


@dataclass(frozen=True)
class Row:
    """A claim on an example."""

    example: str
    claim: Claim


def all_claims(mdp: FiniteMDP, agent: Array, expert: Array) -> list[Claim]:
    """Every theorem on one MDP and two policies."""
    return [f(mdp, agent, expert) for f in OF_TWO_POLICIES] + [f(mdp, agent) for f in OF_THE_AGENT]


def theory_report(seed: int = 0) -> list[Row]:
    """All theorems on all examples; the same seed gives the same numbers."""
    examples = _examples(seed)
    return [Row(name, claim) for name, mdp, agent, expert in examples for claim in all_claims(mdp, agent, expert)]


def _examples(seed: int) -> Iterator[tuple[str, FiniteMDP, Array, Array]]:
    named = {
        "dense, stochastic: 5 states, 3 actions": random_mdp("dense", 5, 3, seed),
        "sparse, stochastic, episodes end: 12 states, 4 actions": random_mdp("sparse", 12, 4, seed, num_terminal=1),
        "deterministic, shared transitions: 8 states, 6 actions": random_mdp("deterministic", 8, 6, seed),
        "injective: 8 states, 4 actions": random_mdp("injective", 8, 4, seed),
    }
    for name, mdp in named.items():
        yield name, mdp, random_policy(mdp, seed + 1), random_policy(mdp, seed + 2)
    # the expert walks the shortest way and prefers the original choice; the agent is less sure of both
    for num_choices in (1, 4):
        mdp = gridworld_mdp(num_choices)
        wandering = np.random.default_rng(seed).dirichlet(np.ones(4), size=mdp.num_states)
        uniform = np.full(num_choices, 1.0 / num_choices)
        original = np.arange(num_choices) == 0
        agent = spread(0.5 * shortest_path_moves(0.4) + 0.5 * wandering, uniform)
        expert = spread(shortest_path_moves(0.1), 0.9 * original + 0.1 * uniform)
        yield f"Gridworld, n = {num_choices}", mdp, agent, expert


def print_theory(rows: Iterable[Row] | None = None, console: Console | None = None) -> None:
    """One table per example: the claim, both sides and the error, with the terms inside the claim below it."""
    console = console or Console(markup=False, emoji=False, highlight=False)
    rows = theory_report() if rows is None else list(rows)
    for example, group in groupby(rows, key=lambda row: row.example):
        table = Table(title=example, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
        table.add_column("claim", no_wrap=True)
        table.add_column("what it says", overflow="fold")
        for heading in ("left", "right", "error"):
            table.add_column(heading, justify="right", no_wrap=True)
        for claim in (row.claim for row in group):
            style = {"holds": "green", "fails": "bold red"}.get(claim.verdict, "yellow")
            inside = [(f"\n{name} {_number(value)}", "dim") for name, value in claim.terms.items()]
            table.add_row(
                Text.assemble(claim.name, (f"\n{claim.source}", "dim"), (f"\n{claim.verdict}", style)),
                Text.assemble(claim.formula, *inside),
                _number(claim.left),
                _number(claim.right),
                _error(claim.error),
            )
        console.print(table)
        console.print()
    counts = Counter(row.claim.verdict for row in rows)
    console.print(", ".join(f"{count} × {verdict}" for verdict, count in counts.items()))


def _number(value: float) -> str:
    return "undefined" if math.isnan(value) else "∞" if math.isinf(value) else f"{value:.6f}"


def _error(value: float) -> str:
    return _number(value) if not math.isfinite(value) else "0" if value == 0 else f"{value:.1e}"
