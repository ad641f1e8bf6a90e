"""Does closeness follow the return? Bundled experts whose actions are disturbed more and more, and the rank correlation per task.

`python benchmarks/closeness.py`; five fresh episodes per amount of noise. Writes results/closeness.csv and prints the table.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from iddm.bundled import bundled_demos, bundled_expert
from iddm.closeness import Yardstick
from iddm.evaluation import env_of, run_episodes
from iddm.utils.files import to_csv, write_whole

ROOT = Path(__file__).resolve().parents[1]
TASKS = "InvertedDoublePendulum", "Hopper", "HalfCheetah", "Ant"
"""Those where noise lowers the return; CartPole and the single pendulum stand whatever the noise."""
NOISE = 0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0
EPISODES, SEED = 5, 4_000_000


def disturbed(task: str, noise: float, num_demos: int) -> dict[str, float]:
    """Return and closeness of the expert with Gaussian noise on its actions."""
    policy, rng = bundled_expert(task), np.random.default_rng(0)
    yardstick = Yardstick.of(bundled_demos(task).take_episodes(num_demos))
    assert yardstick is not None

    def act(obs: np.ndarray) -> np.ndarray:
        action = policy.predict(obs)
        low, high = policy.action_space.low, policy.action_space.high
        return np.clip(action + noise * rng.standard_normal(action.shape), low, high).astype(np.float32)

    episodes = run_episodes(act, env_of(policy).own(None, None), EPISODES, SEED)
    closeness = yardstick.closeness([e.observations for e in episodes], [e.terminated for e in episodes])
    return {"return": float(np.mean([e.rewards.sum() for e in episodes])), "closeness": closeness}


def main() -> None:
    rows = []
    for num_demos in (10, 1):
        for task in TASKS:
            found = [{"task": task, "episodes": num_demos, "noise": noise} | disturbed(task, noise, num_demos) for noise in NOISE]
            rows += found
            correlation = spearmanr([row["return"] for row in found], [row["closeness"] for row in found]).statistic
            cells = "  ".join(f"{row['noise']}: {row['return']:,.0f} {row['closeness']:.2f}" for row in found)
            print(f"{task}, {num_demos} episodes, rank correlation {correlation:.2f}  {cells}", flush=True)
    write_whole(ROOT / "results" / "closeness.csv", to_csv(rows, digits=4))


if __name__ == "__main__":
    main()
