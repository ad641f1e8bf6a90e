"""`iddm film`."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from iddm.cli.console import OUT
from iddm.cli.flags import parse_flags
from iddm.cli.given_env import given_kwargs
from iddm.cli.policies import find_policy


@dataclasses.dataclass(frozen=True)
class _Film:
    policy: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="POLICY")]
    """Directory of a run; or a policy file, or the name of a task with a bundled expert, which is then filmed alone."""
    out: Path = Path("film.gif")
    """Film to write: .gif, .webp, or .mp4 (extra `film`)."""
    seconds: float = 5.0
    """Length, in the environment's own time; an episode that ends sooner is shorter."""
    fps: int = 20
    """Pictures per second."""
    width: int = 320
    """Width of each picture."""
    height: int = 240
    """Height of each picture."""
    seed: int | None = None
    """Seed of the episode; without it, that of the first evaluation episode."""
    env: str | None = None
    """The policy's own environment again, where it is module:function: a file cannot name code."""
    env_kwargs: str | None = None
    """The options of that environment again, as a JSON object."""


def film_command(args: list[str]) -> None:
    """Film a policy, beside the expert that it imitated where that is known."""
    given = parse_flags(_Film, args, "iddm film")
    from iddm.evaluation import EVALUATION_SEED, env_of
    from iddm.report.film import check_kind, film_run, side_by_side
    from iddm.report.pictures import Camera, policy_shots
    from iddm.training.run_dir import Run
    from iddm.utils.files import write_whole

    check_kind(given.out)
    camera = Camera(given.seconds, given.fps, given.width, given.height)
    seed = EVALUATION_SEED if given.seed is None else given.seed
    kwargs = given_kwargs(given.env_kwargs)
    if Path(given.policy).is_dir():
        film = film_run(Run.open(given.policy), camera, given.env, kwargs, seed)
    else:
        policy = find_policy(given.policy)
        spec = env_of(policy).own(given.env, kwargs)
        film = side_by_side([policy_shots(Path(given.policy).stem, policy, spec, camera, seed)], camera)
    write_whole(given.out, film.encoded(given.out.suffix.lower()))
    OUT.print(f"Film: {given.out} ({len(film.frames) / film.fps:.1f} s)")
