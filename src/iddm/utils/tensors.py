"""Safetensors files as this library writes them: named arrays and a few words about them, with a digest of both where wanted."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

SEAL = "sha256"


class Damaged(ValueError):
    """The file is not what was written; the message says how that shows."""


def sealed(arrays: Mapping[str, np.ndarray], about: Mapping[str, str]) -> bytes:
    """A file's content with a digest of everything in it."""
    return save(dict(arrays), {**about, SEAL: digest(arrays, about)})


def read_sealed(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Arrays and words of a sealed file, exactly as they were written, or `Damaged`."""
    arrays, about = read_tensors(path)
    seal = about.pop(SEAL, None)
    if seal is None:
        raise Damaged("it has no checksum")
    if seal != digest(arrays, about):
        raise Damaged("its checksum does not fit: some of its bytes have changed")
    return arrays, about


def read_tensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Arrays and words of any safetensors file, or `Damaged`."""
    try:
        with safe_open(path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118
    except OSError as error:
        raise Damaged(error.strerror or type(error).__name__) from error
    except Exception as error:  # safetensors, and NumPy on types that it does not have
        raise Damaged(f"{type(error).__name__}: {error}".splitlines()[0][:200]) from error


def digest(arrays: Mapping[str, np.ndarray], about: Mapping[str, str]) -> str:
    """SHA-256 of names, types, shapes, numbers and words, in hex."""
    sha = hashlib.sha256(json.dumps(sorted(about.items())).encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        sha.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        sha.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return sha.hexdigest()
