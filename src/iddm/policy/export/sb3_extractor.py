"""The normaliser as a features extractor of Stable-Baselines3. Exported models carry this module: they load without iddm."""

import torch  # pyright: ignore[reportMissingImports]
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor  # pyright: ignore[reportMissingImports]


class NormalisedObservation(BaseFeaturesExtractor):
    """clip((obs − mean) / std)."""

    def __init__(self, observation_space, clip: float) -> None:
        super().__init__(observation_space, observation_space.shape[0])
        self.clip = clip
        self.register_buffer("mean", torch.zeros(observation_space.shape[0]))
        self.register_buffer("std", torch.ones(observation_space.shape[0]))

    def forward(self, observations):
        return torch.clamp((observations - self.mean) / self.std, -self.clip, self.clip)
