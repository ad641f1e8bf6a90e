"""`iddm film`: who is in it, what it shows, and one sentence where nothing can be drawn."""

from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

import iddm
from iddm.cli import main
from iddm.config import configure, default_config
from iddm.demos import Demos, save_demos
from iddm.envs.spec import resolve
from iddm.errors import UserError
from iddm.report import pictures
from iddm.report.film import film_run, side_by_side
from iddm.report.pictures import Camera, Shots, demonstrated_shots, drawing_backend
from iddm.training.demonstrations import DemosRecord
from iddm.training.run_dir import Run

SMALL = Camera(seconds=0.4, fps=5, width=64, height=48)


def record(demos: Demos, source: str) -> DemosRecord:
    columns = tuple(range(demos.obs_size))
    sizes = (demos.num_episodes, demos.num_transitions)
    return DemosRecord(source, demos.digest(), *sizes, (1.0,), columns, (0.0,) * len(columns), (1.0,) * len(columns))


def finished_run(path: Path, env: str, about: DemosRecord | None, **settings) -> Run:
    """A run whose policy is the bundled expert's."""
    config = configure(default_config(env, "gaifo"), settings)
    with Run.create(path, config, about) as run:
        iddm.bundled_expert(env).save(run.policy_path)
    return run


@pytest.fixture
def mujoco_draws() -> None:
    try:
        drawing_backend()
    except UserError as error:
        pytest.skip(str(error))


def test_a_film_of_a_run_has_expert_and_imitator_and_moves(tmp_path: Path) -> None:
    demos = iddm.bundled_demos("CartPole")
    run = finished_run(tmp_path / "run", "CartPole", record(demos, "bundled: CartPole"))
    out = tmp_path / "film.gif"
    flags = ["--seconds", "0.5", "--fps", "10", "--width", "64", "--height", "48"]
    assert main(["film", str(run.path), "--out", str(out), *flags]) == 0
    with Image.open(out) as film:
        assert film.size == (2 * 64, 48 + 24)
        assert film.n_frames > 1


@pytest.mark.filterwarnings("ignore:os.fork")  # imageio starts ffmpeg that way
@pytest.mark.parametrize("kind", ["webp", "mp4"])
def test_other_kinds_of_film_are_what_their_names_say(kind: str, tmp_path: Path) -> None:
    out = tmp_path / f"film.{kind}"
    assert main(["film", "CartPole", "--out", str(out), "--seconds", "0.2", "--width", "64", "--height", "48"]) == 0
    assert out.read_bytes()[4:12] in (b"ftypisom",) or out.read_bytes()[8:12] == b"WEBP"


def test_demonstrated_states_are_put_into_the_simulator(mujoco_draws: None, tmp_path: Path) -> None:
    """The first pictures of an episode and of its states are the same; a file that has changed since is not shown."""
    env = "HalfCheetah"
    demos = iddm.bundled_demos(env).take_episodes(1)
    save_demos(demos, tmp_path / "demos.npz")
    run = finished_run(tmp_path / "run", env, record(demos, "demos.npz"), demos=str(tmp_path / "demos.npz"))
    assert film_run(run, SMALL).frames[0].size == (2 * 64, 48 + 24)
    shots = demonstrated_shots("demonstration", demos.observations[0], resolve(env), SMALL)
    assert len(shots.pictures) == 2
    assert np.abs(shots.pictures[0].astype(int) - shots.pictures[1]).mean() > 0.5
    save_demos(replace(demos, observations=tuple(rows + 1 for rows in demos.observations)), tmp_path / "demos.npz")
    assert film_run(run, SMALL).frames[0].size == (64, 48 + 24)


def test_who_has_ended_stands_still_in_grey(tmp_path: Path) -> None:
    red, blue = (np.full((48, 64, 3), colour, np.uint8) for colour in ((255, 0, 0), (0, 0, 255)))
    film = side_by_side([Shots("a", [red]), Shots("b", [blue, blue])], SMALL)
    assert len(film.frames) == 2
    ended, going = (film.frames[1].getpixel((x, 40)) for x in (32, 96))
    assert len(set(ended)) == 1
    assert going == (0, 0, 255)


class Blind(gym.Env):
    """It cannot be drawn."""

    observation_space = gym.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, render_mode: str | None = None) -> None:
        pass

    def reset(self, *, seed=None, options=None):
        return np.zeros(4, np.float32), {}


def test_what_cannot_be_filmed_is_one_sentence(tmp_path: Path, monkeypatch, capsys) -> None:
    policy = iddm.bundled_expert("CartPole")
    replace(policy, config={"env": "tests.test_film:Blind"}).save(tmp_path / "blind.safetensors")
    out = ["--out", str(tmp_path / "film.gif")]
    assert main(["film", str(tmp_path / "blind.safetensors"), "--env", "tests.test_film:Blind", *out]) == 2
    assert "Blind cannot be filmed: `render` " in capsys.readouterr().err
    assert main(["film", "CartPole", "--out", "film.png"]) == 2
    assert "film.png: a film's name ends in .gif, .webp or .mp4." in capsys.readouterr().err
    assert main(["film", "CartPole", "--fps", "0", *out]) == 2
    assert main(["film", str(tmp_path), *out]) == 2
    monkeypatch.setattr(pictures, "BACKENDS", ("nonsense",))
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    drawing_backend.cache_clear()
    assert main(["film", "Hopper", *out]) == 2
    assert "MuJoCo cannot draw here without a screen (nonsense" in capsys.readouterr().err.splitlines()[-1]
    drawing_backend.cache_clear()
    assert not (tmp_path / "film.gif").exists()
