"""The terms of the reward, one file each."""

from iddm.rewards.adversarial import Adversarial
from iddm.rewards.entropy import PolicyEntropy
from iddm.rewards.environment import EnvironmentReward
from iddm.rewards.mutual_information import MutualInformation
from iddm.rewards.survival import Survival
from iddm.rewards.term import Term
from iddm.rewards.tracking import Tracking

TERMS: dict[str, type[Term]] = {
    t.name: t for t in (Adversarial, PolicyEntropy, MutualInformation, EnvironmentReward, Tracking, Survival)
}

__all__ = ["TERMS", "Adversarial", "EnvironmentReward", "MutualInformation", "PolicyEntropy", "Survival", "Term", "Tracking"]
