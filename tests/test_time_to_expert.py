"""The benchmark of time to the expert: it times real runs."""

from pathlib import Path

from benchmarks.time_to_expert import ours

from iddm.training.train import train

SMALL = {"num_envs": 2, "rollout_length": 32, "hidden": (8, 8), "adversarial": {"hidden": (8, 8)}, "checkpoint_every": 2}


def test_the_run_that_is_timed_is_the_one_that_train_makes(tmp_path: Path) -> None:
    curve = ours("CartPole", "gaifo", float("inf"), 3, tmp_path / "timed", evaluate_every=128, steps=640, **SMALL)
    train("CartPole", method="gaifo", out=tmp_path / "plain", seed=3, steps=640, **SMALL)
    timed, plain = ((tmp_path / name / "policy.safetensors").read_bytes() for name in ("timed", "plain"))
    assert timed == plain
    assert [point["steps"] for point in curve] == [128, 256, 384, 512, 640]
    seconds = [point["seconds"] for point in curve]
    assert seconds == sorted(seconds)


def test_it_stops_at_the_target(tmp_path: Path) -> None:
    curve = ours("CartPole", "gaifo", 0.0, 3, tmp_path / "run", evaluate_every=128, steps=640, **SMALL)
    assert [point["steps"] for point in curve] == [128]
