"""Changed files by the thousand (`make fuzz`): each is read, or refused with a `UserError`, within a gigabyte and ten seconds.

Case number i of a kind depends on the seed and i alone, so that a failure can be had again:
`python -m tests.fuzz --seed 0 --demos 0 --policies 0 --configs 0 --checkpoints 1 --first 1234`.
"""

import argparse
import re
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from iddm import load_policy
from iddm.config import default_config
from iddm.demos import load_demos, reader_process
from iddm.errors import UserError
from iddm.training.checkpoints import Checkpoint
from iddm.training.run_dir import Run
from tests.changes import change_bytes, change_tensors, change_text
from tests.test_hostile_files import SOUND

MOST_SECONDS, MOST_MEMORY = 10.0, 1 << 30
COUNTS = {"demos": 10_000, "policies": 2_000, "checkpoints": 2_000, "configs": 500}


@dataclass
class Result:
    """What came of one kind of file."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest: float = 0.0
    most_memory: int = 0


# What is read


def demos_case(folder: Path) -> Callable[[np.random.Generator], Callable[[], bool]]:
    """A file of demonstrations of any kind, changed."""
    written = []
    for name, write in SOUND.items():
        (folder / name).mkdir()
        write(folder / name)
        written += list((folder / name).iterdir())
    for path in written:
        load_demos(path)

    def case(rng: np.random.Generator) -> Callable[[], bool]:
        source, path = written[int(rng.integers(len(written)))], folder / "case"
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, path)
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        victim = files[int(rng.integers(len(files)))]
        if len(files) > 1 and rng.random() < 0.05:
            victim.unlink()
        elif len(files) > 1 and rng.random() < 0.05:
            shutil.copy(files[int(rng.integers(len(files)))], folder / "swapped")
            victim.write_bytes((folder / "swapped").read_bytes())
        else:
            change = change_text if victim.suffix == ".json" else change_bytes
            victim.write_bytes(change(rng, victim.read_bytes()))
        return lambda: load_demos(path).num_transitions > 0

    return case


def policies_case(folder: Path) -> Callable[[np.random.Generator], Callable[[], bool]]:
    """A bundled expert, changed; what can be read must also act."""
    import iddm

    sources = [
        path.read_bytes() for path in sorted(Path(iddm.__file__).parent.rglob("*.safetensors")) if path.stat().st_size < 1e6
    ]

    def case(rng: np.random.Generator) -> Callable[[], bool]:
        (folder / "policy").write_bytes(change_tensors(rng, sources[int(rng.integers(len(sources)))]))

        def read() -> bool:
            policy = load_policy(folder / "policy")
            with np.errstate(all="ignore"):
                return len(policy.predict(np.ones((2, policy.obs_size)), np.random.default_rng(0))) == 2

        return read

    return case


def checkpoints_case(folder: Path) -> Callable[[np.random.Generator], Callable[[], bool]]:
    """Two checkpoints, one or both changed: what comes back is what was saved, to the bit."""
    run = Run(folder)
    saved = {i: {"w": np.full((3, 4), i, np.float32), "key": np.arange(i, dtype=np.uint32)} for i in (8, 16)}
    for i, arrays in saved.items():
        run.checkpoints.save(Checkpoint(i, arrays))
    sources = {path: path.read_bytes() for path in sorted((folder / "checkpoints").iterdir())}

    def case(rng: np.random.Generator) -> Callable[[], bool]:
        changed = [list(sources)[-1]] if rng.random() < 0.7 else list(sources)
        for path, content in sources.items():
            path.write_bytes(change_tensors(rng, content) if path in changed else content)

        def read() -> bool:
            checkpoint = run.checkpoints.load()
            assert checkpoint is not None
            expected = saved[checkpoint.iteration]
            return all(np.array_equal(checkpoint.arrays[name], array) for name, array in expected.items())

        return read

    return case


def configs_case(folder: Path) -> Callable[[np.random.Generator], Callable[[], bool]]:
    """The settings of a run, changed."""
    sources = [default_config("Hopper", method).to_json().encode() for method in ("iddm", "gaifo", "bc", "bco", "random")]

    def case(rng: np.random.Generator) -> Callable[[], bool]:
        (folder / "config.json").write_bytes(change_text(rng, sources[int(rng.integers(len(sources)))]))
        return lambda: Run.open(folder).config is not None

    return case


CASES = {"demos": demos_case, "policies": policies_case, "checkpoints": checkpoints_case, "configs": configs_case}


# How it is read


def fuzz(kind: str, count: int, seed: int = 0, first: int = 0) -> Result:
    """Read `count` changed files of a kind."""
    result = Result()
    with tempfile.TemporaryDirectory(prefix="iddm-fuzz-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = CASES[kind](Path(folder))
        before, helper_before = own_peak(), helper_peak()
        for i in range(first, first + count):
            read = case(np.random.default_rng([seed, list(CASES).index(kind), i]))
            began = time.monotonic()
            try:
                outcome = "read" if read() else "wrong"
            except UserError as error:
                outcome = "refused" if "\n" not in str(error) else "more than a sentence"
            except Exception as error:
                outcome = f"{type(error).__name__}: {traceback.format_exc()}"
            seconds, memory = time.monotonic() - began, max(own_peak() - before, helper_peak() - helper_before)
            result.slowest, result.most_memory = max(result.slowest, seconds), max(result.most_memory, memory)
            if seconds > MOST_SECONDS or memory > MOST_MEMORY:
                outcome = f"took {seconds:.0f} s and {memory >> 20} MB"
            result.counts[outcome if outcome in ("read", "refused") else "failed"] += 1
            if outcome not in ("read", "refused"):
                result.failures.append(f"{kind} {i}: {outcome}")
    return result


def own_peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def helper_peak() -> int:
    """Of the process that reads for us; 0 where it has ended or the system does not tell."""
    process = reader_process.HELPER._process
    try:
        found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text()) if process else None
    except OSError:
        return 0
    return int(found[1]) << 10 if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    for kind, count in COUNTS.items():
        parser.add_argument(f"--{kind}", type=int, default=count)
    given = parser.parse_args()
    failed = 0
    for kind in COUNTS:
        result = fuzz(kind, getattr(given, kind), given.seed, given.first)
        failed += len(result.failures)
        shown = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(result.counts.items())) or "none"
        print(f"{kind}: {shown}; slowest {result.slowest:.1f} s, {result.most_memory >> 20} MB more at most", flush=True)
        print("\n".join(result.failures[:20]), end="\n" if result.failures else "", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
