"""What pays the agent: one file a term."""

from iddm.rewards.adversarial import Adversarial
from iddm.rewards.entropy import PolicyEntropy
from iddm.rewards.environment import EnvironmentReward
from iddm.rewards.mutual_information import MutualInformation
from iddm.rewards.term import Term

TERMS: dict[str, type[Term]] = {t.name: t for t in (Adversarial, PolicyEntropy, MutualInformation, EnvironmentReward)}

__all__ = ["TERMS", "Adversarial", "EnvironmentReward", "MutualInformation", "PolicyEntropy", "Term"]
