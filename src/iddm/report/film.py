"""Films: the expert and the imitator side by side, as GIF, WebP or mp4."""

import base64
import io
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from iddm.bundled import bundled_expert
from iddm.envs.spec import EnvSpec, MakeEnv
from iddm.errors import UserError
from iddm.evaluation import EVALUATION_SEED, env_of
from iddm.report.markup import Markup, fill
from iddm.report.pictures import Camera, Shots, demonstrated_shots, policy_shots
from iddm.training.demonstrations import find_demos
from iddm.training.run_dir import Run
from iddm.utils.extras import need
from iddm.utils.text import printable

KINDS = (".gif", ".webp", ".mp4")
BAR = 24
"""Height of the names above the pictures."""


@dataclass(frozen=True)
class Film:
    """Pictures of the same size, shown one after another."""

    frames: list[Image.Image]
    fps: int

    def encoded(self, kind: str) -> bytes:
        """The bytes of a file whose name ends in `kind`."""
        if kind == ".mp4":
            return self._mp4()
        data = io.BytesIO()
        first, *rest = self.frames
        more: dict[str, Any] = {"optimize": True} if kind == ".gif" else {"quality": 60, "method": 4}
        every = round(1000 / self.fps)
        first.save(data, format=kind[1:].upper(), save_all=True, append_images=rest, duration=every, loop=0, **more)
        return data.getvalue()

    def _mp4(self) -> bytes:
        ffmpeg = need("imageio_ffmpeg", "film", "mp4 files").get_ffmpeg_exe()
        (width, height), pictures = self.frames[0].size, b"".join(frame.tobytes() for frame in self.frames)
        given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(self.fps), "-i", "-"]
        even = "pad=ceil(iw/2)*2:ceil(ih/2)*2"  # as H.264 needs it
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "film.mp4"
            command = [ffmpeg, "-loglevel", "error", *given, "-vf", even, "-c:v", "libx264", "-pix_fmt", "yuv420p", str(path)]
            done = subprocess.run(command, input=pictures, capture_output=True)
            if done.returncode != 0:
                raise UserError(f"ffmpeg could not write the film ({done.stderr.decode(errors='replace').strip()[-200:]}).")
            return path.read_bytes()

    def html(self, description: str) -> Markup:
        return webp_html(self.encoded(".webp"), description)


def webp_html(film: bytes, description: str) -> Markup:
    """A film within a page."""
    data = base64.b64encode(film).decode()
    return fill('<img class="moving" alt="{{text}}" src="data:image/webp;base64,{{data}}">', text=description, data=data)


def check_kind(out: Path) -> None:
    """Refuse a file name that no film has, before anything is drawn."""
    if out.suffix.lower() not in KINDS:
        raise UserError(f"{out}: a film's name ends in {', '.join(KINDS[:-1])} or {KINDS[-1]}.")
    if out.suffix.lower() == ".mp4":
        need("imageio_ffmpeg", "film", "mp4 files")


def film_run(
    run: Run,
    camera: Camera,
    env: str | MakeEnv | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    seed: int = EVALUATION_SEED,
) -> Film:
    """A run's policy, beside the expert that it imitated where that is known. `env` says again what the run's files cannot."""
    policy = run.policy
    spec = env_of(policy).own(env, env_kwargs)
    imitator = policy_shots(run.config.method, policy, spec, camera, seed)
    return side_by_side([*_expert_shots(run, spec, camera, seed), imitator], camera)


def _expert_shots(run: Run, spec: EnvSpec, camera: Camera, seed: int) -> list[Shots]:
    """The bundled expert where the run imitated it, else its demonstrations where they are still there and can be drawn."""
    record = run.demos
    if record is None:
        return []
    if record.bundled_task is not None:
        return [policy_shots("expert", bundled_expert(record.bundled_task), spec, camera, seed)]
    try:
        _, demos = find_demos(run.config)
        demos = demos if run.config.needs_expert_actions else demos.states_only()
        if demos.digest() != record.sha256 or demos.obs_size != run.policy.obs_size:
            return []
        return [demonstrated_shots("demonstration", demos.observations[0], spec, camera)]
    except UserError:
        return []


def side_by_side(sides: Sequence[Shots], camera: Camera) -> Film:
    """All actors in one film, each under its name; who is at an end stands still, in grey, until the last one is."""
    length = max(len(side.pictures) for side in sides)
    font = ImageFont.load_default(size=13)
    frames = []
    for i in range(length):
        frame = Image.new("RGB", (camera.width * len(sides), camera.height + BAR), "white")
        write = ImageDraw.Draw(frame)
        for place, side in enumerate(sides):
            over = i >= len(side.pictures)
            picture = Image.fromarray(side.pictures[-1 if over else i])
            picture.thumbnail((camera.width, camera.height))
            if over:
                picture = picture.convert("L").convert("RGB")
            left = place * camera.width + (camera.width - picture.width) // 2
            frame.paste(picture, (left, BAR + (camera.height - picture.height) // 2))
            name = printable(side.who) + (" (episode ended)" if over else "")
            write.text((place * camera.width + 8, 4), name, fill="#333333", font=font)
            if place:
                write.line([(place * camera.width, 0), (place * camera.width, frame.height)], fill="white", width=3)
        frames.append(frame)
    return Film(frames, camera.fps)
