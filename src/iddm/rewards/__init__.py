"""The terms of the reward, one file each."""

from iddm.rewards.adversarial import Adversarial
from iddm.rewards.effort import Effort
from iddm.rewards.entropy import PolicyEntropy
from iddm.rewards.environment import EnvironmentReward
from iddm.rewards.inverse_entropy import InverseEntropy
from iddm.rewards.mutual_information import MutualInformation
from iddm.rewards.state_entropy import StateEntropy
from iddm.rewards.survival import Survival
from iddm.rewards.term import Term
from iddm.rewards.tracking import Tracking

TERMS: dict[str, type[Term]] = {
    term.name: term
    for term in (
        Adversarial,
        PolicyEntropy,
        MutualInformation,
        EnvironmentReward,
        Tracking,
        Survival,
        Effort,
        InverseEntropy,
        StateEntropy,
    )
}

__all__ = [
    "TERMS",
    "Adversarial",
    "Effort",
    "EnvironmentReward",
    "InverseEntropy",
    "MutualInformation",
    "PolicyEntropy",
    "StateEntropy",
    "Survival",
    "Term",
    "Tracking",
]
