"""A command's flags: Tyro reads them from a dataclass, and what is wrong with them is one sentence."""

import contextlib
import io
import re
from dataclasses import fields
from itertools import groupby
from typing import Any, TypeVar

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from iddm.errors import UserError

T = TypeVar("T")
NUMBERS = ConstructorRegistry()
"""Whole numbers may be written as 1000000, 1_000_000 or 1e6."""


@NUMBERS.primitive_rule
def _whole_number(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[int] | None:
    if info.type is not int:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda words: whole_number(words[0]),
        is_instance=lambda value: isinstance(value, int) and not isinstance(value, bool),
        str_from_instance=lambda value: [str(value)],
    )


def whole_number(text: str) -> int:
    """The number that "1e6", "2.5e5", "1_000_000" or "64" writes."""
    with contextlib.suppress(ValueError):
        return int(text)
    with contextlib.suppress(ValueError, OverflowError):  # infinity overflows
        if (value := float(text)) == int(value):
            return int(value)
    raise ValueError(f"'{text}' is not a whole number")


def parse_flags(kind: type[T], args: list[str], prog: str, **options: Any) -> T:
    """An instance of the dataclass `kind` from a command line; `--help` prints and exits, as Tyro does it."""
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
            return tyro.cli(kind, args=args, prog=prog, registry=NUMBERS, **options)
    except SystemExit as stopped:
        if not stopped.code:
            raise
    raise UserError(f"{_sentence(told.getvalue())}; `{prog} --help` lists all flags.")


def with_values(args: list[str], kind: type) -> list[str]:
    """`--name` and `--no-name`, for settings of the dataclass `kind` that are yes, no or left open: with the value Tyro wants."""
    names = [field.name.replace("_", "-") for field in fields(kind) if field.type == bool | None]
    values = {f"--{no}{name}": [f"--{name}", str(not no)] for name in names for no in ("", "no-")}
    following = [*args[1:], ""]
    return [
        word
        for arg, after in zip(args, following, strict=True)
        for word in ([arg] if after in ("True", "False", "None") else values.get(arg, [arg]))
    ]


def _sentence(box: str) -> str:
    """What Tyro's box says: its first part, without the help below a flag's name, and the flag that may have been meant."""
    lines = [line.strip("│╭╮╰╯").rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", box).splitlines()[1:]]
    parts = [list(part) for rule, part in groupby(lines, lambda line: set(line.strip()) in ({"─"}, {"-"})) if not rule]
    told, *rest = parts or [[]]
    sentence = " ".join(line.strip() for line in told if not line.startswith(" " * 8))
    sentence = re.sub(r"no type matching .*<class '\w+'>: ", "", sentence)  # a setting that may also be None
    meant = re.search(r"Perhaps you meant:?\s+(--[\w.-]+)", " ".join(line for part in rest for line in part))
    return sentence.rstrip(" .") + (f" (perhaps {meant[1]})" if meant else "")
