"""How `tests/fuzz.py` changes files: their bytes, the JSON in them, and the JSON in the header of safetensors."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 10**9, 10**40, 1e308, float("nan"), float("inf")),
    *("", "x" * 1000, "<b>", "\x1b[2J\n", [], {}, [[]]),
)


def change_bytes(rng: np.random.Generator, content: bytes) -> bytes:
    """The content with some of it overwritten, cut, repeated or left out."""
    if not content:
        return rng.bytes(16)
    data, place = bytearray(content), int(rng.integers(len(content)))
    how = rng.choice(["bytes", "number", "cut", "empty", "repeat", "leave out", "noise"], p=[0.4, 0.2, 0.1, 0.02, 0.1, 0.1, 0.08])
    if how == "bytes":
        for at in rng.integers(len(data), size=rng.integers(1, 9)):
            data[at] = rng.integers(256)
    elif how == "number":
        size = int(rng.choice([1, 2, 4, 8]))
        extreme = (0, 1, 2 ** (8 * size - 1) - 1, 2 ** (8 * size - 1), 2 ** (8 * size) - 1)
        data[place : place + size] = extreme[int(rng.integers(5))].to_bytes(size, "little")
    elif how == "cut":
        del data[place:]
    elif how == "empty":
        data.clear()
    elif how == "repeat":
        data[place:place] = data[place : place + int(rng.integers(1, 65))]
    elif how == "leave out":
        del data[place : place + int(rng.integers(1, 65))]
    else:
        data[place : place + 64] = rng.bytes(len(data[place : place + 64]))
    return bytes(data)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where values are in nested JSON."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield from places(part, (*path, key))


def change_json(rng: np.random.Generator, value: Any) -> Any:
    """The value with one of its parts replaced by something odd, or left out."""
    known = list(places(value))
    if len(known) == 1 or rng.random() < 0.02:  # all of it
        return ODD[int(rng.integers(len(ODD)))]
    *way, last = known[int(rng.integers(1, len(known)))]
    inside = value
    for key in way:
        inside = inside[key]
    if rng.random() < 0.2:
        del inside[last]
    else:
        inside[last] = ODD[int(rng.integers(len(ODD)))]
    return value


def change_text(rng: np.random.Generator, content: bytes) -> bytes:
    """JSON with a part changed, sometimes as bytes."""
    try:
        return json.dumps(change_json(rng, json.loads(content))).encode() if rng.random() < 0.7 else change_bytes(rng, content)
    except ValueError:
        return change_bytes(rng, content)


def change_tensors(rng: np.random.Generator, content: bytes) -> bytes:
    """A safetensors file with its header's JSON changed, and that of the words in it, or its bytes."""
    if rng.random() < 0.4:
        return change_bytes(rng, content)
    size = int.from_bytes(content[:8], "little")
    header, words = json.loads(content[8 : 8 + size]), None
    words = header.get("__metadata__", {}).get("iddm")
    if words is not None and rng.random() < 0.6:
        header["__metadata__"]["iddm"] = json.dumps(change_json(rng, json.loads(words)))
    else:
        header = change_json(rng, header)
    new = json.dumps(header).encode()
    return len(new).to_bytes(8, "little") + new + content[8 + size :]
