"""A reward term and a method of your own, outside the package, compared with GAIfO on two tasks with three seeds.

iddm train CartPole --import examples/own_term.py --method calm --calm.weight 0.1 --out runs/calm
iddm study examples/own_study.toml --import examples/own_term.py
iddm report results/own_study --import examples/own_term.py --out own_study.html
iddm compare runs/own_study --import examples/own_term.py
"""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp

import iddm
from iddm.rewards import Adversarial, Term


@dataclass(frozen=True)
class Calm(Term):
    """r = −w ‖s' − s‖² / D: move no more than the imitation asks for.

    States are on the scale on which they are compared.
    """

    name: ClassVar[str] = "calm"
    weight: float = 0.01

    def reward(self, state, agent, key):
        s, s_next = agent.transitions.s, agent.transitions.s_next
        return -self.weight * jnp.mean((s_next - s) ** 2, axis=-1)


iddm.register_method("calm", iddm.Method((Adversarial(), Calm())))
