"""The policy that a user keeps: NumPy and safetensors alone, never JAX."""

from iddm.policy.saved import Policy, load_policy, uniform_policy

__all__ = ["Policy", "load_policy", "uniform_policy"]
