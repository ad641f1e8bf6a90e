"""Networks: a batched perceptron, the two policies, the value function, and the one normaliser at every network's input."""

from iddm.nets.mlp import MLP
from iddm.nets.normaliser import Normaliser
from iddm.nets.policies import Actor, CategoricalPolicy, GaussianPolicy, Policy, SquashedGaussianPolicy, WithNoise, make_policy
from iddm.nets.value import ValueFunction

__all__ = [
    "MLP",
    "Actor",
    "CategoricalPolicy",
    "GaussianPolicy",
    "Normaliser",
    "Policy",
    "SquashedGaussianPolicy",
    "ValueFunction",
    "WithNoise",
    "make_policy",
]
