"""Faults: what goes wrong, when, and to whom.

    lost = simverbs.drop(src="h0", psn=1, attempt=1)
    ...
    assert lost.fired == 1

There is a function for each action, with the words of scenario files as its keywords; `src` and
`dst` are what scenarios call `from` and `to`. Faults on packets, work requests and calls wait for
what their keywords describe. Other actions wait for a time, or for their `when`:

    simverbs.link_down("h0-s0", duration="20ms", at="5ms")
    simverbs.host_kill("h1", when=simverbs.OnPacket(src="h0", psn=3))

What matches a packet (of the fault, or of OnPacket):

- `link`, `transmitter`: where it is looked at, and the end of the link that sends it. Without a
  link: where packets begin
- `src`, `dst`: the host that made it, the host that it is addressed to
- `opcode`: a name of the InfiniBand specification ("SEND_ONLY", "ACKNOWLEDGE"), a kind ("SEND"), a
  service ("UD") or both ("UD_SEND"), "MAD", "CM" or a message of it ("CM_REQ")
- `direction`: "requests", "responses" or "either"
- `qp`: the n-th queue pair that was created on its device, from 1; `qp_num`: its number
- `psn`: 1 is the first PSN of that queue pair; `attempt`: 1 is the first transmission of a PSN

Work requests match by `host`, `qp` or `qp_num`, and `queue`; calls by `host` and `call`, the name
of a verb ("ibv_reg_mr"). All that is left out is any.

Keywords that every action has:

- `at`, `until`: virtual time since the world was made: fires not before, nor at or after
- `after`, `after_delay`: sleeps until that fault has fired, and so long since
- `nth`: fires on the n-th match, from 1; `count`: so often in all, 1 by default; "every": always
- `chance`: of each match, "1/100" or (1, 100)
- `delay`: from what it waits for to what it does (not of packets, work requests and calls)
- `name`: in traces, explanations and pictures

Each function puts the fault in place at once and returns a Fault. It raises Error: EINVAL where a
value has no meaning, ENOENT where there is no such node, link, port, queue pair or fault,
EOPNOTSUPP where the world has nothing of the kind.
"""

from __future__ import annotations

import ctypes
import errno
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Optional, Union

from simverbs import library, tables
from simverbs.durations import Duration, picoseconds
from simverbs.errors import Error
from simverbs.fault_struct import FaultStruct
from simverbs.tables import Queue, WcStatusName

Count = Union[int, Literal["every"]]
Chance = Union[str, tuple[int, int]]
Errno = Union[int, str]
WcStatus = Union[WcStatusName, int]

_EVERY = 2**64 - 1


_of_worlds: list[Fault] = []  # of the present world, or of the one before


class Fault:
    """A fault in place, until `remove()` or the end of the world.

    As a context manager it is removed at the end of the `with` block.
    """

    def __init__(self, number: int, action: str, name: str) -> None:
        self.id = number
        self.action = action
        self.name = name
        self._is_in_place = True
        self._world = library.current_world()
        _of_worlds[:] = [each for each in _of_worlds if each._world == self._world]
        _of_worlds.append(self)

    def __repr__(self) -> str:
        return f"<simverbs.Fault {self.describe()}>"

    def describe(self) -> str:
        """What has come of it: '1 "lost" (drop): fired 0 times, 2 matched'."""
        name = f' "{self.name}"' if self.name else ""
        text = f"{self.id}{name} ({self.action}): "
        try:
            missed, reason = self._missed()
            text += f"fired {self.fired} times, {self.matched} matched"
        except Error:
            return text + "is no longer in place"
        return text + (f"; {missed} of them did nothing, since {reason}" if missed else "")

    @property
    def fired(self) -> int:
        """How often it has fired. Raises Error (ENOENT) once it is removed."""
        return self._count("simverbs_fault_fired")

    @property
    def matched(self) -> int:
        """How often what it waits for has come, whether it fired then or not. Errors as `fired`."""
        return self._count("simverbs_fault_matched")

    @property
    def missed(self) -> int:
        """How many of its firings there was nothing to be done to. Errors as `fired`."""
        return self._missed()[0]

    @property
    def missed_reason(self) -> str:
        """Why the last of the missed firings had nothing to be done to; "": none was missed."""
        return self._missed()[1]

    def remove(self) -> None:
        """Takes the fault back, whether it has fired or not.

        Packets that it holds go on; what it did to links and devices stays. A fault that is removed
        already, or whose world has ended, is left alone.
        """
        if self._is_in_place and self._world == library.current_world():
            self._is_in_place = False
            try:
                library.call("simverbs_clear_fault", self.id)
            except Error as error:
                if error.errno != errno.ENOENT:
                    raise

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.remove()

    def _check(self) -> None:
        if self._world != library.current_world():
            raise Error(
                errno.ENOENT, f"the world of fault {self.id} has ended, or is another process's"
            )

    def _count(self, function: str) -> int:
        self._check()
        count = ctypes.c_uint64()
        library.call(function, self.id, ctypes.byref(count))
        return count.value

    def _missed(self) -> tuple[int, str]:
        self._check()
        count, reason = ctypes.c_uint64(), ctypes.c_char_p()
        library.call(
            "simverbs_fault_missed", self.id, ctypes.byref(count), ctypes.byref(reason)
        )
        return count.value, (reason.value or b"").decode()


@dataclass(frozen=True)
class OnTime:
    """The trigger of a fault: the time `at`, or at once."""


@dataclass(frozen=True)
class OnPacket:
    """The trigger of a fault: a packet. The module describes the members; None is any."""

    link: Optional[str] = None
    transmitter: Optional[str] = None
    src: Optional[str] = None
    dst: Optional[str] = None
    opcode: Optional[str] = None
    direction: Optional[tables.Direction] = None
    qp_num: Optional[int] = None
    qp: Optional[int] = None
    psn: Optional[int] = None
    attempt: Optional[int] = None


@dataclass(frozen=True)
class OnWorkRequest:
    """The trigger of a fault: a work request that the device takes up."""

    qp_num: Optional[int] = None
    qp: Optional[int] = None
    host: Optional[str] = None
    queue: Optional[Queue] = None


@dataclass(frozen=True)
class OnCall:
    """The trigger of a fault: a call of a verb that asks the device, before it is carried out."""

    host: Optional[str] = None
    call: Optional[str] = None


When = Union[OnTime, OnPacket, OnWorkRequest, OnCall]
_TRIGGERS: dict[type, str] = {
    OnTime: "time",
    OnPacket: "packet",
    OnWorkRequest: "work_request",
    OnCall: "call",
}


def inject(action: str, keywords: Mapping[str, Any]) -> Fault:
    """Puts a fault in place: the action by its name, its keywords as the functions take them.

    For actions that are chosen at run time: `inject("drop", {"src": "h0", "psn": 1})`. Raises Error
    as the functions do, and TypeError for a keyword that the action does not have.
    """
    row = tables.ACTIONS.get(action)
    if row is None:
        known = ", ".join(tables.ACTIONS)
        raise Error(errno.EINVAL, f"{action!r} is no action of faults; those are {known}")
    filler = _Filler(action, row)
    for keyword, value in keywords.items():
        if value is not None:
            filler.fill(keyword, value)
    number = ctypes.c_uint32()
    try:
        library.call(
            "simverbs_inject", ctypes.byref(filler.fault), ctypes.byref(number)
        )
    except Error as refused:
        assert refused.errno is not None
        raise Error(refused.errno, filler.in_words(str(refused.strerror))) from None
    return Fault(number.value, action, keywords.get("name") or "")


class _Filler:
    """Fills a struct simverbs_fault from keywords."""

    def __init__(self, action: str, row: tables.Action) -> None:
        self.action = action
        self.row = row
        match = tables.TRIGGERS[row.trigger].members if row.is_match else {}
        self.members: dict[str, str] = {**match, **row.members}
        self.words = dict(self.members)
        self.fault = FaultStruct()
        library.functions().simverbs_fault_init(ctypes.byref(self.fault))
        if self.fault.size != ctypes.sizeof(FaultStruct):
            raise Error(
                errno.EINVAL,
                f"struct simverbs_fault of {library.load()} has {self.fault.size} bytes, this "
                f"package knows {ctypes.sizeof(FaultStruct)}: they are of different versions",
            )
        self.fault.action = row.number

    def fill(self, keyword: str, value: Any) -> None:
        what = f"{self.action}: {keyword}"
        if keyword in self.members:
            self.set(self.members[keyword], keyword, value, what)
        elif keyword == "when" and not self.row.is_match:
            self.fill_trigger(value, what)
        elif keyword == "count":
            self.fault.count = _EVERY if value == "every" else _number(value, 64, what, 1)
        elif keyword == "nth":
            self.fault.nth = _number(value, 64, what, 1)
        elif keyword == "chance":
            self.fault.chance, self.fault.chance_of = _chance(value, what)
        elif keyword == "after":
            self.fault.after = _fault_id(value, what)
        elif keyword == "name":
            self.fault.name = library.encoded(value, what)
        elif keyword in ("at", "until", "after_delay") or (
            keyword == "delay" and not self.row.is_match
        ):
            member = {"at": "from_ps", "until": "until_ps"}.get(keyword, f"{keyword}_ps")
            setattr(self.fault, member, picoseconds(value, what))
        else:
            known = [*self.members, *([] if self.row.is_match else ["when", "delay"])]
            known += ["at", "until", "after", "after_delay", "nth", "count", "chance", "name"]
            raise TypeError(f"{self.action} has no {keyword!r}; it has {', '.join(known)}")

    def fill_trigger(self, when: When, what: str) -> None:
        name = _TRIGGERS.get(type(when))
        if name is None:
            names = ", ".join(each.__name__ for each in _TRIGGERS)
            raise TypeError(f"{what}: {when!r} is none of {names}")
        trigger = tables.TRIGGERS[name]
        self.fault.on = trigger.number
        for keyword, member in trigger.members.items():
            self.words.setdefault(keyword, member)
            value = getattr(when, keyword)
            if value is not None:
                self.set(member, keyword, value, f"{what}: {type(when).__name__}: {keyword}")

    def set(self, member: str, keyword: str, value: Any, what: str) -> None:
        part, _, name = member.partition(".")
        struct = getattr(self.fault, part)
        if keyword == "rate":
            struct.width, struct.speed = rate_of(value, what)
        elif keyword in _WORDS:
            setattr(struct, name, _word(value, _WORDS[keyword], what))
        elif keyword == "status":
            setattr(struct, name, _status(value, what))
        elif keyword == "errno":
            setattr(struct, name, _errno(value, what))
        elif keyword == "fault":
            setattr(struct, name, _fault_id(value, what))
        elif name.endswith("_ps"):
            setattr(struct, name, picoseconds(value, what))
        else:
            kind = dict(type(struct)._fields_)[name]
            if kind is ctypes.c_char_p:
                setattr(struct, name, library.encoded(value, what))
            else:
                setattr(struct, name, _number(value, 8 * ctypes.sizeof(kind), what))

    def in_words(self, refused: str) -> str:
        """The reason in the words of this package instead of those of <simverbs/fault.h>."""
        text = refused.removeprefix("simverbs_inject: ").removeprefix(f"{self.action}: ")
        text = f"{self.action}: {text}"
        for api, python in tables.PHRASES:
            text = text.replace(api, python)
        for keyword, member in self.words.items():
            text = re.sub(rf"\b{re.escape(member)}\b", keyword, text)
        return text


_WORDS: dict[str, Mapping[str, int]] = {
    "direction": tables.DIRECTIONS,
    "queue": tables.QUEUES,
    "nak": tables.NAKS,
    "field": tables.HEADER_FIELDS,
}


def _word(value: str, words: Mapping[str, int], what: str) -> int:
    if value not in words:
        raise Error(errno.EINVAL, f"{what}: {value!r} is none of {', '.join(words)}")
    return words[value]


def _number(value: int, bits: int, what: str, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what}: {value!r} is {type(value).__name__}, not an int")
    if not least <= value < 2**bits:
        raise Error(errno.EINVAL, f"{what}: {value} is not from {least} to {2**bits - 1}")
    return value


def _status(value: WcStatus, what: str) -> int:
    if isinstance(value, str):
        return _word(value, tables.WC_STATUSES, what)
    return _number(value, 32, what)


def _errno(value: Errno, what: str) -> int:
    if not isinstance(value, str):
        return _number(value, 32, what)
    number = getattr(errno, value, None)
    if not isinstance(number, int):
        raise Error(errno.EINVAL, f"{what}: {value!r} is no name of an errno, such as ENOMEM")
    return number


def _fault_id(value: Union[Fault, int], what: str) -> int:
    return value.id if isinstance(value, Fault) else _number(value, 32, what)


def _chance(value: Chance, what: str) -> tuple[int, int]:
    if isinstance(value, str):
        found = re.fullmatch(r"(\d+)/(\d+)", value)
        if found is None:
            raise Error(errno.EINVAL, f"{what}: {value!r}: expected two numbers, as in '1/100'")
        value = (int(found[1]), int(found[2]))
    if not isinstance(value, tuple) or len(value) != 2:
        raise TypeError(f"{what}: {value!r} is neither a text ('1/100') nor two numbers (1, 100)")
    return _number(value[0], 32, what), _number(value[1], 32, what, 1)


def rate_of(text: str, what: str = "rate") -> tuple[int, int]:
    """The width and speed of "4x EDR", in the encoding of ibv_port_attr. Raises Error (EINVAL)."""
    found = re.fullmatch(r"(\w+?x) ?(\w+)", text) if isinstance(text, str) else None
    if found is None or found[1] not in tables.LINK_WIDTHS or found[2] not in tables.LINK_SPEEDS:
        raise Error(
            errno.EINVAL,
            f"{what}: {text!r}: expected a width and a speed, such as '4x EDR'; widths are "
            f"{' '.join(tables.LINK_WIDTHS)}, speeds {' '.join(tables.LINK_SPEEDS)}",
        )
    return tables.LINK_WIDTHS[found[1]], tables.LINK_SPEEDS[found[2]]


def faults_of_world() -> list[Fault]:
    """The faults that were put in place in the present world, in this order."""
    return [each for each in _of_worlds if each._world == library.current_world()]


def clear_faults() -> None:
    """Takes all faults back, in the order in which they were put in place."""
    library.call("simverbs_clear_faults")
