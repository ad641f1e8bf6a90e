"""Pictures of an environment without a screen: of a policy's episode, or of demonstrated states put into the simulator."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np

from iddm.envs.guard import FAILURES, reason
from iddm.envs.reference import Simulator
from iddm.envs.spec import EnvSpec, make_env
from iddm.errors import UserError
from iddm.evaluation import EVALUATION_SEED
from iddm.policy import Policy

BACKENDS = ("egl", "osmesa")
"""Ways in which MuJoCo draws without a screen, in the order tried."""
PROBE = (
    "import mujoco; c = mujoco.GLContext(8, 8); c.make_current(); "
    "mujoco.MjrContext(mujoco.MjModel.from_xml_string('<mujoco/>'), 100)"
)
FALLBACK_FPS = 30
"""Of an environment that does not say how fast it runs."""


@dataclass(frozen=True)
class Camera:
    """How an episode is filmed, in real time."""

    seconds: float = 5.0
    fps: int = 20
    width: int = 320
    height: int = 240

    def __post_init__(self) -> None:
        if not (0 < self.seconds <= 120 and 1 <= self.fps <= 60 and 16 <= self.width <= 1920 and 16 <= self.height <= 1080):
            raise UserError("A film has up to 120 seconds, 1 to 60 pictures per second, and 16×16 to 1920×1080 points.")

    def steps(self, env: gym.Env) -> list[int]:
        """The steps of the environment at which pictures are taken."""
        rate = env.metadata.get("render_fps") or FALLBACK_FPS
        return [round(i * rate / self.fps) for i in range(max(1, round(self.seconds * self.fps)))]


@dataclass(frozen=True)
class Shots:
    """Pictures [height, width, 3] of one actor; fewer than were asked for where the episode ended sooner."""

    who: str
    pictures: list[np.ndarray]


def policy_shots(who: str, policy: Policy, spec: EnvSpec, camera: Camera, seed: int = EVALUATION_SEED) -> Shots:
    """The first seconds of a policy's episode, with the most likely actions."""
    with _filmed(spec, camera) as env:
        obs, _ = env.reset(seed=seed)
        wanted, pictures = set(camera.steps(env)), []
        for step in range(max(wanted) + 1):
            if step in wanted:
                pictures.append(_picture(env, spec))
            obs, _, terminated, truncated, _ = env.step(policy.predict(obs))
            if terminated or truncated:
                break
    return Shots(who, pictures)


def demonstrated_shots(who: str, rows: np.ndarray, spec: EnvSpec, camera: Camera) -> Shots:
    """The first seconds of a demonstrated episode: its states, put into the simulator one after another."""
    with _filmed(spec, camera) as env:
        simulator, pictures, wanted = Simulator(env, spec.id), [], set(camera.steps(env))
        seconds = 1 / (env.metadata.get("render_fps") or FALLBACK_FPS)
        for step, row in enumerate(rows[: max(wanted) + 1]):
            simulator.put(row, seconds if step else 0.0)
            if step in wanted:
                pictures.append(_picture(env, spec))
    return Shots(who, pictures)


@contextmanager
def _filmed(spec: EnvSpec, camera: Camera) -> Iterator[gym.Env]:
    view: dict[str, Any] = {}
    if spec.registered and "gymnasium.envs.mujoco" in str(gym.spec(spec.id).entry_point):
        view = {"width": camera.width, "height": camera.height, "camera_name": "track"}  # follows a robot that walks away
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # Gymnasium's other tasks draw with pygame
    try:
        env = make_env(spec, render_mode="rgb_array", **view)
    except UserError as error:
        why = reason(error.__cause__ or error)
        raise UserError(f'{spec.id} cannot be filmed: it cannot be made with render_mode="rgb_array" ({why}).') from error
    try:
        if hasattr(env.unwrapped, "mujoco_renderer"):
            os.environ["MUJOCO_GL"] = drawing_backend()  # read when the first picture is drawn
        yield env
    finally:
        env.close()


def _picture(env: gym.Env, spec: EnvSpec) -> np.ndarray:
    try:
        picture: Any = env.render()
    except FAILURES as error:  # whatever draws is another package's, or the user's own
        raise UserError(f"{spec.id} cannot be filmed: `render` raised {reason(error)}.") from error
    picture = np.asarray(picture)
    if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8:
        raise UserError(f"{spec.id} cannot be filmed: `render` returned no picture (an array [height, width, 3] of uint8).")
    return picture


@cache
def drawing_backend() -> str:
    """How MuJoCo can draw here: the value of MUJOCO_GL, or what works. A failing driver may abort, so another process tries."""
    if given := os.environ.get("MUJOCO_GL"):
        return given
    troubles = []
    for backend in BACKENDS:
        tried = subprocess.run(
            [sys.executable, "-c", PROBE], env=os.environ | {"MUJOCO_GL": backend}, capture_output=True, text=True
        )
        if tried.returncode == 0:
            return backend
        troubles.append(f"{backend}: {(tried.stderr.strip().splitlines() or ['no reason given'])[-1][:100]}")
    raise UserError(
        f"MuJoCo cannot draw here without a screen ({'; '.join(troubles)}); install EGL or OSMesa (apt-get install libosmesa6)."
    )
