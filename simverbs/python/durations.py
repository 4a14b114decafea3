"""Durations and points of virtual time.

Virtual time is a whole number of picoseconds. Whatever takes a duration takes one of

- a number of picoseconds: `5 * MS`
- a text with a unit, as in scenario files: `"5ms"`, `"1.5 us"`
- a `datetime.timedelta`, which has whole microseconds

Floating point numbers are refused: they are not exact.
"""

from __future__ import annotations

import errno
import re
from datetime import timedelta
from decimal import Decimal
from typing import Final, Union

from simverbs.errors import Error

PS: Final = 1
NS: Final = 1_000
US: Final = 1_000_000
MS: Final = 1_000_000_000
S: Final = 1_000_000_000_000
MIN: Final = 60 * S
H: Final = 60 * MIN

Duration = Union[int, str, timedelta]

_UNITS: Final = {"ps": PS, "ns": NS, "us": US, "ms": MS, "s": S, "min": MIN, "h": H}
_TEXT: Final = re.compile(r"(\d+(?:\.\d+)?) ?([a-z]+)")
_MOST: Final = 2**63 - 1


def picoseconds(duration: Duration, what: str = "a duration") -> int:
    """Returns the duration in picoseconds.

    Raises Error (EINVAL) where the text is no duration, where it is no whole number of picoseconds,
    and where it is negative or has no room in 64 bits (106 days); TypeError for other types.
    `what` names the value in the message.
    """
    if isinstance(duration, bool) or not isinstance(duration, (int, str, timedelta)):
        raise TypeError(
            f"{what}: {duration!r} is {type(duration).__name__}; give a number of picoseconds "
            "(5 * simverbs.MS), a text with a unit ('5ms') or a datetime.timedelta"
        )
    if isinstance(duration, timedelta):
        value = (duration // timedelta(microseconds=1)) * US
    elif isinstance(duration, int):
        value = duration
    else:
        value = _parsed(duration, what)
    if not 0 <= value <= _MOST:
        raise Error(errno.EINVAL, f"{what}: {duration!r} is not from 0 to {_MOST} ps (106 days)")
    return value


def _parsed(text: str, what: str) -> int:
    found = _TEXT.fullmatch(text.strip())
    if found is None or found[2] not in _UNITS:
        units = " ".join(_UNITS)
        raise Error(
            errno.EINVAL,
            f"{what}: {text!r}: expected a number and a unit, such as '5ms' or '1.5us'; "
            f"units are {units}",
        )
    value = Decimal(found[1]) * _UNITS[found[2]]
    if value != value.to_integral_value():
        raise Error(errno.EINVAL, f"{what}: {text!r} is no whole number of picoseconds")
    return int(value)


def text_of(duration_ps: int) -> str:
    """Returns the duration as people write it, exactly: "67.1 ms", "1 s", "0 ps"."""
    for name, size in (("s", S), ("ms", MS), ("us", US), ("ns", NS)):
        if abs(duration_ps) >= size:
            value = (Decimal(duration_ps) / size).normalize()
            return f"{value:f} {name}"
    return f"{duration_ps} ps"
