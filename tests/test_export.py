"""Exported policies act as ours does; policies of Stable-Baselines3 are recorded as it acts."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import iddm
from iddm.cli import main
from iddm.envs.spaces import ActionSpace
from iddm.errors import UserError
from iddm.policy import Policy

SPACES = {
    "box": ActionSpace(2, False, (-2.0, 0.0), (2.0, 5.0), shape=(2,)),
    "half open": ActionSpace(2, False, (-float("inf"), -1.0), (float("inf"), 1.0), shape=(2,)),
    "table": ActionSpace(4, False, (-1.0,) * 4, (1.0,) * 4, shape=(2, 2)),
    "choices": ActionSpace(3, True),
}
OBS = np.random.default_rng(0).normal(size=(500, 5)).astype(np.float32) * [1, 10, 0.1, 1, 200]


def make_policy(space: ActionSpace, seed: int = 0) -> Policy:
    rng = np.random.default_rng(seed)
    sizes = [5, 16, 8, space.size]
    weights = tuple(rng.normal(size=(a, b)).astype(np.float32) for a, b in pairwise(sizes))
    biases = tuple(rng.normal(size=b).astype(np.float32) for b in sizes[1:])
    mean, std = rng.normal(size=5).astype(np.float32), np.array([1, 10, 0.1, 1, 5], np.float32)
    log_std = None if space.discrete else np.full(space.size, -1, np.float32)
    return Policy(mean, std, 10.0, weights, biases, log_std, space, {"env": "Mine-v0"})


@pytest.fixture
def policy_file(request, tmp_path: Path) -> tuple[Policy, Path]:
    policy = make_policy(SPACES[request.param])
    policy.save(tmp_path / "policy.safetensors")
    return policy, tmp_path / "policy.safetensors"


every_space = pytest.mark.parametrize("policy_file", SPACES, indirect=True)


def exported(file: Path, to: str, ending: str) -> Path:
    out = file.parent / f"policy{ending}"
    assert main(["export", str(file), "--to", to, "--out", str(out)]) == 0
    return out


@every_space
def test_the_arrays_of_npz_act_the_same_in_a_few_lines_of_numpy(policy_file: tuple[Policy, Path]) -> None:
    policy, file = policy_file
    z = np.load(exported(file, "npz", ".npz"), allow_pickle=False)
    x = np.clip((OBS - z["mean"]) / z["std"], -z["clip"], z["clip"])
    layers = sum(name.startswith("weight") for name in z)
    for i in range(layers):
        x = (x if i == 0 else np.tanh(x)) @ z[f"weight{i}"] + z[f"bias{i}"]
    if "start" in z:
        action = x.argmax(axis=1) + z["start"]
    else:
        action = np.clip(z["centre"] + z["scale"] * x, z["low"], z["high"]).reshape(-1, *z["shape"])
    np.testing.assert_allclose(action, policy.predict(OBS), rtol=1e-5, atol=1e-5)


@every_space
def test_onnx_runtime_acts_the_same(policy_file: tuple[Policy, Path]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    policy, file = policy_file
    session = onnxruntime.InferenceSession(exported(file, "onnx", ".onnx"), providers=["CPUExecutionProvider"])
    (action,) = session.run(None, {"obs": OBS.astype(np.float32)})
    assert action.dtype == policy.predict(OBS).dtype
    np.testing.assert_allclose(action, policy.predict(OBS), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("policy_file", ["box", "table", "choices"], indirect=True)
def test_stable_baselines3_acts_the_same_and_needs_no_iddm(policy_file: tuple[Policy, Path]) -> None:
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 (and torch) are not installed")
    policy, file = policy_file
    out = exported(file, "sb3", ".zip")
    np.save(file.parent / "obs.npy", OBS.astype(np.float32))
    code = (
        "import sys; sys.modules['iddm'] = None\nimport numpy as np\nfrom stable_baselines3 import PPO\n"
        f"model = PPO.load({str(out)!r}, device='cpu')\n"
        f"np.save('action.npy', model.predict(np.load('obs.npy'), deterministic=True)[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=file.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(file.parent / "action.npy"), policy.predict(OBS), rtol=1e-4, atol=1e-4)


def test_what_stable_baselines3_cannot_hold_is_a_user_error_there_alone(tmp_path: Path) -> None:
    policy = make_policy(ActionSpace(3, True, start=2))
    iddm.export_policy(policy, "onnx", tmp_path / "p.onnx")
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 (and torch) are not installed")
    with pytest.raises(UserError, match="start at 2"):
        iddm.export_policy(policy, "sb3", tmp_path / "p.zip")
    with pytest.raises(UserError, match="only actions with limits"):
        iddm.export_policy(make_policy(SPACES["half open"]), "sb3", tmp_path / "p.zip")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["export", "nowhere", "--to", "npz", "--out", "p.npz"], "no policy here"),
        (["export", "Hopper", "--to", "onnx", "--out", "p.npz"], "ends in .onnx"),
        (["demos", "CartPole-v1", "--sb3", "nowhere.zip", "--out", "d.npz"], "not a model of Stable-Baselines3"),
    ],
)
def test_a_bad_export_is_one_sentence(args: list[str], words: str, tmp_path: Path, monkeypatch, capsys) -> None:
    if "--sb3" in args:
        pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.chdir(tmp_path)
    assert main(args) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# Policies of Stable-Baselines3


ALGORITHMS = {
    "PPO": ("Pendulum-v1", {}),
    "A2C": ("CartPole-v1", {}),
    "SAC": ("Pendulum-v1", {}),
    "TD3": ("Pendulum-v1", {"buffer_size": 10}),
    "DQN": ("CartPole-v1", {"buffer_size": 10}),
    "PPO with ReLU": ("CartPole-v1", {"policy_kwargs": {"net_arch": [8, 8, 8]}}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_stable_baselines3_model_is_recorded_as_it_acts_and_its_pickled_objects_stay_closed(
    name: str, tmp_path: Path, monkeypatch
) -> None:
    sb3 = pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 (and torch) are not installed")
    import pickle

    import torch  # pyright: ignore[reportMissingImports]

    env, options = ALGORITHMS[name]
    if "ReLU" in name:
        options = {"policy_kwargs": {**options["policy_kwargs"], "activation_fn": torch.nn.ReLU}}
    model = getattr(sb3, name.split(" ")[0])("MlpPolicy", env, device="cpu", **options)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save(tmp_path / "model.zip")

    def refuse(*args, **kwargs):
        raise AssertionError("unpickled")

    with monkeypatch.context() as patch:
        for function in ("load", "loads"):
            patch.setattr(pickle, function, refuse)
        out = tmp_path / "d.npz"
        assert (
            main(["demos", env, "--sb3", str(tmp_path / "model.zip"), "--episodes", "2", "--out", str(out), "--with-actions"])
            == 0
        )
    demos = iddm.load_demos(out)
    assert demos.metadata["env_id"] == env
    expected, _ = model.predict(demos.observations[0][:-1], deterministic=True)
    np.testing.assert_allclose(demos.actions[0], expected.reshape(demos.actions[0].shape), atol=1e-4)
    assert gym.make(env).observation_space.shape == (demos.obs_size,)
