"""Run a study: finished runs are not repeated, interrupted ones are resumed, failed ones are tried once more.

All that a run leaves is in its directory, so results are collected the same way wherever it ran.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path

from iddm.errors import UserError
from iddm.studies.core import Run, bundled_expert, evaluate, finish, import_module
from iddm.studies.measures import measured
from iddm.studies.pool import Ended, Job, in_parallel
from iddm.studies.results import Outcome, Result, Results, evaluated, learning_curve
from iddm.studies.spec import EXPERT, RunSpec
from iddm.utils.files import write_whole
from iddm.utils.locks import locked
from iddm.utils.provenance import commit

Pool = Callable[[Callable[..., None], Sequence[Job], int | None], Iterator[Ended[None]]]
"""What distributes the work: `in_parallel` on this machine, `on_ray` on a cluster."""

TRIES = 2


@dataclass
class Progress:
    """Which runs of a study are done; which are running is read from disk (`iddm.studies.progress_table`)."""

    specs: Sequence[RunSpec]
    runs: Path
    done: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)

    def look(self, out: Path) -> Results:
        """Note which runs have results."""
        known = Results.load(out)
        self.done |= {spec.name for spec in self.specs} & set(known.outcomes)
        return known

    @property
    def missing(self) -> list[RunSpec]:
        return [spec for spec in self.specs if spec.name not in self.done]


def outcome_file(spec: RunSpec, runs: Path) -> Path:
    return runs / spec.name / "outcome.json"


def complete(spec: RunSpec, runs: str, imports: Sequence[str] = ()) -> None:
    """Train (or resume, or skip if finished) and evaluate; the outcome is written to the run's directory.

    `imports` is what the command line's `--import` named: environments and methods are registered in every process anew.
    """
    for name in imports:
        import_module(name)
    file = outcome_file(spec, Path(runs))
    if file.exists():
        return
    began = time.perf_counter()
    if spec.method == EXPERT:
        policy, env, metrics, measures, made_by = bundled_expert(spec.task), spec.task, [], {}, commit()
    else:
        run = finish(spec.config, file.parent)
        policy, env, metrics = run.last_policy, None, run.metrics()
        measures, made_by = measured(policy, spec), run.about and run.about.commit
    returns = evaluate(policy, env=env, episodes=spec.episodes).returns
    seconds = metrics[-1]["seconds"] if metrics else time.perf_counter() - began
    about = {"commit": made_by, "seconds": round(seconds, 1)}
    evaluations = evaluated(metrics)
    if evaluations:
        about["evaluated_at"] = [round(row["seconds"], 1) for row in metrics if not isnan(row["evaluation_return"])]
    outcome = Outcome(Result.of(spec, returns, metrics), learning_curve(metrics), about, evaluations, measures)
    write_whole(file, outcome.to_json())


def run_study(
    progress: Progress,
    out: Path,
    pool: Pool = in_parallel,
    workers: int | None = None,
    on_end: Callable[[RunSpec], None] = lambda spec: None,
    imports: Sequence[str] = (),
) -> None:
    """All runs that have no result yet, each result added to `out` as it comes; what failed twice is left in `progress`."""
    runs = progress.runs
    with _alone_in(out):
        known = progress.look(out)
        for spec in progress.missing:
            if outcome_file(spec, runs).exists():  # the runner was killed before it took this one in
                known = _collect(known, spec, out, progress)
                on_end(spec)
        for _ in range(TRIES):
            for ended in pool(complete, [(spec, str(runs.absolute()), tuple(imports)) for spec in progress.missing], workers):
                spec: RunSpec = ended.job[0]
                if ended.error is None:
                    known = _collect(known, spec, out, progress)
                else:
                    progress.failed[spec.name] = ended.error
                on_end(spec)


def forget(progress: Progress, out: Path) -> None:
    """Remove the runs of a study, with their results."""
    with _alone_in(out):
        for spec in progress.specs:
            if Run(progress.runs / spec.name).in_use:
                raise UserError(f"{progress.runs / spec.name}: a process is training here.")
        names = {spec.name for spec in progress.specs}
        known = Results.load(out)
        Results({name: outcome for name, outcome in known.outcomes.items() if name not in names}).save(out)
        for name in names:
            shutil.rmtree(progress.runs / name, ignore_errors=True)


def _collect(known: Results, spec: RunSpec, out: Path, progress: Progress) -> Results:
    file = outcome_file(spec, progress.runs)
    try:
        known = known.with_outcomes([Outcome.from_json(file.read_text())])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{file}: not the outcome of a run ({error}); remove it.") from error
    known.save(out)
    progress.done.add(spec.name)
    progress.failed.pop(spec.name, None)
    return known


def _alone_in(out: Path) -> AbstractContextManager[None]:
    """Two studies that write to one directory would lose each other's rows."""
    return locked(out, f"{out}: another study is writing its results here.")
