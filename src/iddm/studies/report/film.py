"""Films of the imitators: those that are kept beside the results, and strips of the expert above the learned policy."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from iddm.errors import UserError
from iddm.report.film import webp_html
from iddm.report.html_page import section
from iddm.report.markup import Markup, fill
from iddm.report.pictures import Camera, policy_shots
from iddm.studies.catalogue.table2 import TABLE_2
from iddm.studies.core import Policy, bundled_expert, env_of, load_policy
from iddm.studies.results import Results
from iddm.studies.spec import EXPERT

CAMERA = Camera(seconds=2.0, fps=4, width=160, height=120)


@dataclass(frozen=True)
class Strip:
    """Frames of one task, by who acts; or why there are none."""

    task: str
    frames: dict[str, list[str]]
    """Pictures as data URIs."""
    trouble: str = ""


def kept_films(directory: Path | None) -> Markup:
    """The films in the results' folder `films`, NAME.webp, with what NAME.txt says of each, as a section of a page."""
    figure = "<figure>{{film}}<figcaption>{{words}}</figcaption></figure>"
    shown = []
    for film in sorted((directory / "films").glob("*.webp")) if directory else []:
        about = film.with_suffix(".txt")
        words = about.read_text(errors="replace") if about.is_file() else film.stem
        shown.append(fill(figure, film=webp_html(film.read_bytes(), words), words=words))
    films = fill('<div class="charts">{{shown}}</div>', shown=shown)
    return section("How it looks", "The expert beside the imitator, in real time.", films) if shown else Markup()


def film_strips(results: Results, runs: Path | None) -> list[Strip]:
    """A strip for every task with results and a bundled expert, and the learned policy of the first seed whose run is there."""
    strips = []
    known = TABLE_2.results(results)
    for task in known.tasks:
        try:
            who = {EXPERT: bundled_expert(task)}
        except UserError:
            continue
        learned = known.find(task, "iddm")
        policies = [runs / result.name / "policy.safetensors" for result in learned.results] if learned and runs else []
        if path := next(filter(Path.is_file, policies), None):
            who["IDDM"] = load_policy(path)
        strips.append(_strip(task, who))
    return strips


def _strip(task: str, who: dict[str, Policy]) -> Strip:
    try:
        shots = [policy_shots(name, policy, env_of(policy).own(), CAMERA) for name, policy in who.items()]
    except UserError as error:
        return Strip(task, {}, str(error))
    return Strip(task, {some.who: [_to_uri(picture) for picture in some.pictures] for some in shots})


def strips_html(strips: Sequence[Strip]) -> Markup:
    """The film strips as a section of a page."""
    if not strips:
        return Markup()
    parts = []
    for strip in strips:
        rows = []
        for who, frames in strip.frames.items():
            pictures = [fill('<img alt="" src="{{frame}}">', frame=frame) for frame in frames]
            rows.append(fill("<span>{{who}}</span><div>{{pictures}}</div>", who=who, pictures=pictures))
        scroll = '<div class="scroll" tabindex="0" role="region" aria-label="film strip"><div class="film">{{rows}}</div></div>'
        film = fill(scroll, rows=rows) if rows else fill("<p>{{trouble}}</p>", trouble=strip.trouble)
        parts.append(fill("<h3>{{task}}</h3>{{film}}", task=strip.task, film=film))
    return section("Film strips", f"The first {CAMERA.seconds:g} seconds of an evaluation episode.", *parts)


def _to_uri(picture: np.ndarray) -> str:
    data = io.BytesIO()
    image = Image.fromarray(picture)
    image.thumbnail((CAMERA.width, CAMERA.height))
    image.save(data, format="JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(data.getvalue()).decode()
