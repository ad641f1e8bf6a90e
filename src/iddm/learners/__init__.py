"""How a policy is learned: each learner is a value that owns its settings, its state and its traced update."""

from iddm.learners.base import Learner, Problem, Schedule
from iddm.learners.bco import BCO
from iddm.learners.cloning import Cloning
from iddm.learners.ppo import PPO
from iddm.learners.sac import SAC
from iddm.learners.uniform import RandomActions

LEARNERS: dict[str, type[Learner]] = {learner.name: learner for learner in (PPO, SAC, Cloning, BCO, RandomActions)}
"""By name, for a saved config."""

__all__ = ["BCO", "LEARNERS", "PPO", "SAC", "Cloning", "Learner", "Problem", "RandomActions", "Schedule"]
