"""Film strips: the expert and the learned policy, side by side. `python -m iddm.studies.report.film POLICY` prints one strip.

MuJoCo chooses how it draws when it is imported, so each strip is drawn in a process of its own.
"""

import base64
import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from iddm.errors import UserError
from iddm.report.html_page import section
from iddm.report.markup import Markup, fill
from iddm.studies.catalogue.table2 import TABLE_2
from iddm.studies.core import EVALUATION_SEED, Policy, bundled_expert, env_of, load_policy
from iddm.studies.results import Results
from iddm.studies.spec import EXPERT

FRAMES, SECONDS, WIDTH, HEIGHT = 8, 2.0, 160, 120
BACKENDS = ("egl", "osmesa")
"""Ways to draw without a screen, in the order tried."""


@dataclass(frozen=True)
class Strip:
    """Frames of one task, by who acts; or why there are none."""

    task: str
    frames: dict[str, list[str]]
    """Pictures as data URIs."""
    trouble: str = ""


def film_strips(results: Results, runs: Path | None) -> list[Strip]:
    """A strip for every task with results and a bundled expert, and the learned policy of the first seed whose run is there."""
    strips = []
    known = TABLE_2.results(results)
    for task in known.tasks:
        try:
            bundled_expert(task)
        except UserError:
            continue
        who = {EXPERT: task}
        learned = known.find(task, "iddm")
        policies = [runs / result.name / "policy.safetensors" for result in learned.results] if learned and runs else []
        if path := next(filter(Path.is_file, policies), None):
            who["IDDM"] = str(path)
        strips.append(_strip(task, who))
    return strips


def _strip(task: str, who: dict[str, str]) -> Strip:
    frames: dict[str, list[str]] = {}
    for name, policy in who.items():
        trouble = ""
        for backend in BACKENDS:
            command = [sys.executable, "-m", "iddm.studies.report.film", policy]
            drawn = subprocess.run(command, env=os.environ | {"MUJOCO_GL": backend}, capture_output=True, text=True)
            if drawn.returncode == 0:
                frames[name] = json.loads(drawn.stdout.splitlines()[-1])
                break
            trouble = (drawn.stderr.strip().splitlines() or ["no reason given"])[-1]
        if name not in frames:
            return Strip(task, {}, f"Rendering is not available here ({trouble}).")
    return Strip(task, frames)


def frames_of(policy: Policy) -> list[np.ndarray]:
    """Pictures from the first seconds of an evaluation episode; of an episode that ends sooner, fewer."""
    import gymnasium as gym

    spec = env_of(policy).own()
    mujoco = "mujoco" in str(gym.spec(spec.id).entry_point)
    view: dict[str, Any] = (
        {"width": WIDTH, "height": HEIGHT, "camera_name": "track"} if mujoco else {}
    )  # follows a robot that walks away
    env = gym.make(spec.id, render_mode="rgb_array", **spec.kwargs, **view)
    try:
        obs, _ = env.reset(seed=EVALUATION_SEED)
        wanted = set(np.linspace(0, SECONDS * env.metadata["render_fps"], FRAMES).astype(int).tolist())
        pictures = []
        for step in range(max(wanted) + 1):
            if step in wanted:
                pictures.append(np.asarray(env.render()))
            obs, _, terminated, truncated, _ = env.step(policy.predict(obs))
            if terminated or truncated:
                break
        return pictures
    finally:
        env.close()


def strips_html(strips: Sequence[Strip]) -> Markup:
    """The film strips as a section of a page."""
    if not strips:
        return section("How it looks", "No pictures were asked for (--film draws them).")
    parts = []
    for strip in strips:
        rows = []
        for who, frames in strip.frames.items():
            pictures = [fill('<img alt="" src="{{frame}}">', frame=frame) for frame in frames]
            rows.append(fill("<span>{{who}}</span><div>{{pictures}}</div>", who=who, pictures=pictures))
        scroll = '<div class="scroll" tabindex="0" role="region" aria-label="film strip"><div class="film">{{rows}}</div></div>'
        film = fill(scroll, rows=rows) if rows else fill("<p>{{trouble}}</p>", trouble=strip.trouble)
        parts.append(fill("<h3>{{task}}</h3>{{film}}", task=strip.task, film=film))
    return section("How it looks", f"The first {SECONDS:g} seconds of an evaluation episode.", *parts)


def _to_uri(picture: np.ndarray) -> str:
    from PIL import Image

    data = io.BytesIO()
    image = Image.fromarray(picture)
    image.thumbnail((WIDTH, HEIGHT))
    image.save(data, format="JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(data.getvalue()).decode()


def main(policy: str) -> None:
    """Print the frames of a policy file, or of a task's bundled expert, as JSON."""
    loaded = load_policy(policy) if Path(policy).is_file() else bundled_expert(policy)
    print(json.dumps([_to_uri(picture) for picture in frames_of(loaded)]))


if __name__ == "__main__":
    main(sys.argv[1])
