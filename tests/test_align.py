"""Demonstrations that do not fit exactly: some columns, another rate, more than two states at once; one's own environment."""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import iddm
from iddm.cli import main
from iddm.demos import Demos
from iddm.demos.align import View, at_the_environments_rate, parse_columns, parse_stride, take_columns
from iddm.envs.rollout import Collector
from iddm.envs.spec import resolve, shape_of
from iddm.envs.vector import make_vector
from iddm.errors import UserError
from iddm.nets import Normaliser
from iddm.rewards.expert import Expert, ExpertView
from tests.conftest import TINY_IDDM
from tests.test_cli import SMALL

EXAMPLE = Path(__file__).parents[1] / "examples" / "own_environment.py"


def walks(lengths=(7, 4), seed: int = 0) -> Demos:
    rng = np.random.default_rng(seed)
    return Demos(tuple(rng.normal(size=(n + 1, 3)) for n in lengths))


# What the discriminator compares


@pytest.mark.parametrize("lags", [(2, 1), (3,), (4, 2)])
def test_the_agents_past_is_that_of_its_episode_across_rollouts_and_ends(lags: tuple[int, ...]) -> None:
    spec = resolve("CartPole-v1", 11)
    collector = Collector(make_vector(spec, 3, 0, "gymnasium"), shape_of(spec).action_space, lags)
    rollouts = [collector.collect(lambda obs, t: np.zeros(3, int), 17)[0] for _ in range(3)]
    obs, valid, past = (np.concatenate([getattr(r, name) for r in rollouts]) for name in ("obs", "valid", "past"))
    for n in range(3):
        start = 0
        for t in range(len(obs)):
            if t > 0 and not valid[t - 1, n]:
                start = t
            expected = [obs[max(t + 1 - lag, start), n] for lag in lags]
            if valid[t, n]:
                np.testing.assert_array_equal(past[t, n], expected)


def test_the_experts_past_is_that_of_its_episode() -> None:
    demos = walks()
    rows, starts = demos.flat()
    past = View(window=3, expert_lag=2).expert_past(demos)
    first = [0] * 7 + [8] * 4
    for i, start, indices in zip(starts, first, past, strict=True):
        assert indices.tolist() == [max(i + 1 - 4, start), max(i + 1 - 2, start)]
    assert View().expert_past(demos)[:, 0].tolist() == starts.tolist()
    expert = Expert(jnp.asarray(rows), jnp.asarray(starts), ExpertView(past=jnp.asarray(past)))
    assert expert.compared_sizes == (6, 3)


@pytest.mark.parametrize("stride", ["1", "2", "3", "1/2", "3/2", "5/4"])
def test_where_agent_and_expert_move_alike_every_pair_of_the_expert_is_one_of_the_agents(stride: str) -> None:
    ratio = parse_stride(stride)
    path = np.cumsum(np.random.default_rng(0).normal(size=(20 * ratio.numerator * ratio.denominator + 1, 1)), axis=0)
    agent = Demos((path[:: ratio.denominator],))  # one row per environment step
    expert = Demos((path[:: ratio.numerator],))  # a row every `stride` steps
    view = View(agent_lag=ratio.numerator, expert_lag=ratio.denominator)

    def pairs(demos: Demos, lag: int) -> set:
        rows, starts = demos.flat()
        before = View(expert_lag=lag).expert_past(demos)[:, 0]
        full = starts + 1 - lag >= 0
        return set(zip(rows[before[full], 0].tolist(), rows[starts[full] + 1, 0].tolist(), strict=True))

    common = pairs(expert, view.expert_lag) & pairs(agent, view.agent_lag)
    assert len(common) >= len(pairs(expert, view.expert_lag)) // ratio.denominator > 0


def test_an_awkward_stride_is_met_by_interpolation() -> None:
    times = np.arange(40) * 16 / 15
    demos, stride = at_the_environments_rate(Demos((np.stack([times, 2 - times], axis=1),)), Fraction(16, 15))
    assert stride == 1
    np.testing.assert_allclose(demos.observations[0][:, 0], np.arange(len(demos.observations[0])), atol=1e-4)
    same, stride = at_the_environments_rate(walks(), Fraction(3, 2))
    assert stride == Fraction(3, 2)
    assert same.digest() == walks().digest()


def test_columns_are_chosen_by_index_range_and_name() -> None:
    names = ["x", "y", "vx", "vy"]
    assert parse_columns("2, 0", 4, names, "it") == (2, 0)
    assert parse_columns("vx,:2", 4, names, "it") == (2, 0, 1)
    assert parse_columns("1:", 4, [], "it") == (1, 2, 3)
    named = Demos((np.ones((2, 4)) * np.arange(4),), metadata={"columns": names})
    assert take_columns(named, (3, 1)).columns == ("vy", "y")
    assert take_columns(named, (3, 1)).observations[0][0].tolist() == [3, 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("z", "'z' is not a column of it; there are x, y"),
        ("4", "choose some of 0 to 1"),
        ("0,0", "each once"),
        ("", "choose some"),
    ],
)
def test_a_wrong_column_says_which_there_are(text: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        parse_columns(text, 2, ["x", "y"], "it")


@pytest.mark.parametrize("text", ["0", "-1", "two", "1/0", "1e9"])
def test_a_wrong_stride_says_what_is_meant(text: str) -> None:
    with pytest.raises(UserError, match="environment steps between two rows"):
        parse_stride(text)


def test_columns_that_the_demonstrations_lack_are_scaled_by_the_agent_alone() -> None:
    rng = np.random.default_rng(0)
    shown, seen = jnp.asarray(rng.normal(3, 2, (50, 2))), jnp.asarray(rng.normal(5, 1, (80, 3)))
    columns = jnp.asarray([2, 0])
    norm = Normaliser.start(3, shown, columns).update(seen, jnp.ones(80))
    full = Normaliser.start(3, jnp.stack([shown[:, 1], shown[:, 0], shown[:, 0]], axis=1)).update(seen, jnp.ones(80))
    mean, std = norm.mixture_scale()
    np.testing.assert_allclose(mean[columns], full.mixture_scale()[0][columns], rtol=1e-5)
    np.testing.assert_allclose((mean[1], std[1]), (seen[:, 1].mean(), seen[:, 1].std()), rtol=1e-5)
    np.testing.assert_allclose(norm.mixture_of(seen[:, columns], columns), norm.mixture(seen)[:, columns], rtol=1e-5)


# Training


def test_demonstrations_with_only_the_chosen_columns_train_the_same_policy_as_whole_ones(cartpole_demos: Demos, tmp_path) -> None:
    whole = iddm.train("CartPole", cartpole_demos, "iddm", tmp_path / "whole", columns="2,0", **TINY_IDDM)
    part = take_columns(cartpole_demos, (2, 0))
    some = iddm.train("CartPole", part, "iddm", tmp_path / "part", columns="2,0", **TINY_IDDM)
    assert (whole.path / "policy.safetensors").read_bytes() == (some.path / "policy.safetensors").read_bytes()
    wide = Demos(tuple(np.concatenate([o, o], axis=1) for o in cartpole_demos.observations))
    iddm.save_demos(wide, tmp_path / "wide.npz")
    args = ["train", "CartPole", "--demos", str(tmp_path / "wide.npz"), "--out", str(tmp_path / "run"), *SMALL]
    assert main([*args, "--columns", "2,0", "--demo-columns", "2,4"]) == 0


def test_slower_demonstrations_and_longer_windows_train_and_resume_to_the_same_bytes(cartpole_demos: Demos, tmp_path) -> None:
    slow = Demos(tuple(o[::2] for o in cartpole_demos.observations))
    settings = TINY_IDDM | {"stride": "2", "window": 3}
    run = iddm.train("CartPole", slow, "iddm", tmp_path / "run", **settings)
    policy = (run.path / "policy.safetensors").read_bytes()
    (run.path / "policy.safetensors").unlink()
    run.checkpoints.paths()[-1].unlink()  # of the end
    assert run.checkpoints.load().iteration < run.config.schedule.num_iterations
    iddm.resume(run.path, demos=slow)
    assert (run.path / "policy.safetensors").read_bytes() == policy


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--columns", "height"], "'height' is not a column of CartPole-v1"),
        (["--columns", "0:3"], "there are 2 columns; with --columns 0:3"),
        (["--demo-columns", "7"], "choose some of 0 to 1"),
        (["--stride", "x"], "environment steps between two rows"),
        (["--columns", "0,2", "--window", "1"], "at least 2 states"),
        (["--columns", "0,2", "--stride", "2", "--method", "gail"], "compares actions"),
        (
            ["--columns", "0,2", "--method", "bco"],
            "learns from whole states, and needs demonstrations with every column: use iddm or gaifo",
        ),
        (["--columns", "0,2", "--adversarial.absorbing"], "needs demonstrations with every column"),
    ],
)
def test_a_bad_fit_is_one_sentence_before_anything_is_written(
    more: list[str], words: str, cartpole_demos, tmp_path, capsys
) -> None:
    iddm.save_demos(take_columns(cartpole_demos, (0, 2)), tmp_path / "d.npz")
    assert main(["train", "CartPole", "--demos", str(tmp_path / "d.npz"), "--out", str(tmp_path / "run"), *more]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


# One's own environment


def test_the_example_of_an_own_environment_runs_as_written(tmp_path: Path) -> None:
    def run(*command: str) -> str:
        done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(str(EXAMPLE), "demos.csv")
    with_import = ("--import", str(EXAMPLE))
    assert "Fits Cart-v0" in run("-m", "iddm", "inspect", "demos.csv", *with_import, "--env", "Cart-v0", "--columns", "place")
    args = ("train", "Cart-v0", *with_import, "--demos", "demos.csv", "--columns", "place", "--out", "run")
    run("-m", "iddm", *args, *SMALL)
    assert "Cart-v0" in run("-m", "iddm", "eval", "run", *with_import, "--episodes", "2")


def test_a_module_that_cannot_be_imported_is_one_sentence(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("1 / 0")
    for name in ("nowhere", "nowhere.py", "broken.py"):
        assert main(["eval", "random", "--env", "Cart-v0", "--import", name]) == 2
        assert f"--import {name}" in capsys.readouterr().err
    assert main(["eval", "random", "--import"]) == 2


def test_the_columns_of_a_dictionary_have_names() -> None:
    import gymnasium as gym

    from iddm.envs.columns import names_in_space

    inner = gym.spaces.Tuple((gym.spaces.Discrete(2), gym.spaces.Box(0, 1, (1,))))
    space = gym.spaces.Dict({"a": gym.spaces.Box(0, 1, (2,)), "b": inner})
    assert names_in_space(space) == ["a[0]", "a[1]", "b.0[0]", "b.0[1]", "b.1"]
    assert names_in_space(gym.spaces.Box(0, 1, (2,))) == []
