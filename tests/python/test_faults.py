"""Faults: every action of the table, its keywords, what is refused and with which message."""

from __future__ import annotations

import ctypes
import errno
import inspect
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import simverbs
from simverbs import library, tables
from simverbs.fault_struct import FaultStruct

simverbs.load()

import pyverbs.enums as e  # noqa: E402  the library comes first
from ends import exchange, pair  # noqa: E402

PAGE = Path(__file__).parents[2] / "simverbs" / "model" / "FAULT_ACTIONS.md"
RENAMED = {"from": "src", "to": "dst"}  # words that Python reserves, and their counterpart
COMMON = ["at", "until", "after", "after_delay", "nth", "count", "chance", "name"]


@pytest.fixture
def world() -> Iterator[simverbs.World]:
    with simverbs.World(topology="star:2", seed=3) as world:
        yield world


def rows_of(heading: str) -> list[list[str]]:
    """The cells of the table of the page that begins with this cell."""
    lines = PAGE.read_text().split(f"| {heading} |")[1].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def words_of(cell: str, part: str) -> set[str]:
    """The keywords of the members of that part in a cell: "match.from (`from`)"."""
    found = re.findall(r"(match|target|with)\.(\w+) \(`(\w+)`\)", cell)
    return {
        "qp_num" if member == "qp_num" else RENAMED.get(key, key)
        for kind, member, key in found
        if kind in part
    }


TRIGGERS = {row[0].strip("`"): words_of(row[1], "match") for row in rows_of("trigger")}
ACTIONS = rows_of("no.")


@pytest.mark.parametrize("row", ACTIONS, ids=[row[1].strip("`") for row in ACTIONS])
def test_an_action_has_its_function_with_the_same_words(row: list[str]) -> None:
    name, waits_for, target = row[1].strip("`"), row[3], row[4]
    required, optional = words_of(row[5], "with"), words_of(row[6], "with")
    words = words_of(target, "target") | required | optional
    words |= {"when", "delay"} if "or another" in waits_for else TRIGGERS[waits_for]
    parameters = inspect.signature(getattr(simverbs, name)).parameters
    assert set(parameters) == words | set(COMMON)
    no_default = {key for key, each in parameters.items() if each.default is each.empty}
    assert no_default == required
    assert getattr(simverbs, name).__doc__
    assert name in simverbs.__all__
    assert tables.ACTIONS[name].number == int(row[0])


def test_triggers_have_the_same_words() -> None:
    classes = {
        "time": simverbs.OnTime,
        "packet": simverbs.OnPacket,
        "work_request": simverbs.OnWorkRequest,
        "call": simverbs.OnCall,
    }
    for name, words in TRIGGERS.items():
        assert set(inspect.signature(classes[name]).parameters) == words, name
    assert set(classes) == set(TRIGGERS)


def test_the_structure_is_that_of_the_library() -> None:
    fault = FaultStruct()
    library.functions().simverbs_fault_init(ctypes.byref(fault))
    assert fault.size == ctypes.sizeof(FaultStruct)


# Arguments of one call of each action, in a world of two hosts.
CALLS: dict[str, dict[str, Any]] = {
    "mark": {"when": simverbs.OnPacket(src="h0")},
    "drop": {"src": "h0", "dst": "h1", "opcode": "SEND", "direction": "requests"},
    "corrupt": {"link": "h0-s0", "transmitter": "s0", "offset": 3, "bits": 7},
    "rewrite": {"field": "pkey", "value": 0x8001},
    "duplicate": {"times": 3, "duration": "1us"},
    "delay": {"duration": timedelta(microseconds=3)},
    "reorder": {"duration": "1ms"},
    "hold": {"qp": 1, "psn": 2, "attempt": 1},
    "land_late": {"duration": 5 * simverbs.US},
    "mark_congestion": {},
    "notify_congestion": {},
    "nak": {"nak": "remote_access"},
    "rnr_nak": {"value": 14},
    "cm_reject": {"src": "h1", "opcode": "CM_REQ", "reason": 13},
    "release": {},  # of a fault: below
    "link_down": {"link": "h0-s0", "duration": "20ms", "at": "1ms"},
    "link_up": {"link": "h0-s0", "at": "1ms"},
    "link_flap": {"link": "h0-s0", "duration": "1ms", "interval": "2ms", "times": 3},
    "link_rate": {"link": "h0-s0", "rate": "1x EDR"},
    "pause": {"link": "h0-s0", "node": "h0", "duration": "1ms"},
    "port_error": {"node": "h0", "port": 1, "duration": "1ms"},
    "lid": {"node": "h0", "value": 0x77},
    "pkey": {"node": "h0", "value": 0x8001, "offset": 1},
    "sm_lid": {"node": "h0", "value": 9},
    "reregister": {"node": "h0"},
    "switch_death": {"node": "s0", "duration": "1ms"},
    "sm_death": {"at": "1ms"},
    "host_kill": {"node": "h1", "when": simverbs.OnPacket(src="h0", psn=3)},
    "host_restart": {"node": "h1", "delay": "1ms"},
    "process_stop": {"node": "h1", "duration": "1ms", "at": "1ms"},
    "process_kill": {"node": "h1", "at": "1s"},
    "device_fatal": {"node": "h1", "at": "1s"},
    "device_remove": {"node": "h1", "at": "1s"},
    "device_arrive": {"node": "h1", "at": "1s"},
    "qp_error": {"node": "h1", "qp": 1, "at": "1s"},
    "ring": {"node": "h1", "qp": 1, "queue": "receive", "at": "1s"},
    "srq_ring": {"node": "h1", "srq": 1, "at": "1s"},
    "cq_overrun": {"node": "h1", "cq": 1, "at": "1s"},
    "mr_invalidate": {"node": "h1", "memory": 1, "at": "1s"},
    "completion": {"status": "RETRY_EXC_ERR", "host": "h0", "queue": "send"},
    "execution": {"qp_num": 0x10001, "host": "h0"},
    "syndrome": {"qp": 1, "host": "h0"},
    "call": {"errno": "ENOMEM", "call": "ibv_reg_mr", "host": "h0"},
    "no_receive": {"dst": "h1", "at": "1ms", "until": "2ms", "count": "every"},
    "symbol_error": {"link": "h0-s0", "transmitter": "s0", "count": "every", "chance": "1/50"},
    "short_poll": {"fewer": 2, "host": "h0", "call": "ibv_poll_cq", "nth": 3},
    "complete_late": {"duration": "1ms", "host": "h0", "qp": 1, "queue": "receive"},
    "event_late": {"duration": "1ms", "host": "h0", "nth": 2},
}


@pytest.mark.parametrize("action", tables.ACTIONS)
def test_an_action_is_put_in_place(world: simverbs.World, action: str) -> None:
    keywords = dict(CALLS[action])
    if action == "release":
        keywords["fault"] = simverbs.hold()
    elif "qp_num" in keywords:
        ends = pair()
        keywords["qp_num"] = ends[0].qp.qp_num
    with getattr(simverbs, action)(**keywords, name="it") as fault:
        assert fault.action == action
        assert fault.id == (2 if action == "release" else 1)
        assert fault.missed == 0
    fault.remove()  # a second time: no harm
    with pytest.raises(simverbs.Error):
        fault.fired
    if "qp_num" in keywords:
        for end in ends:
            end.close()


def test_numbers_of_actions_are_the_librarys() -> None:
    name_of = library.functions().simverbs_fault_action_str
    name_of.restype = ctypes.c_char_p
    names = {row.number: name_of(row.number).decode() for row in tables.ACTIONS.values()}
    assert names == {row.number: name for name, row in tables.ACTIONS.items()}
    assert name_of(max(names) + 1) is None


def test_a_lost_packet_is_sent_again(world: simverbs.World) -> None:
    lost = simverbs.drop(src="h0", psn=1, attempt=1)
    ends = pair()
    exchange(*ends)
    assert (lost.fired, lost.matched, lost.missed_reason) == (1, 1, "")
    for end in ends:
        end.close()


def test_a_fault_says_what_has_come_of_it(world: simverbs.World) -> None:
    late = simverbs.drop(src="h0", nth=3, name="late")
    qp = simverbs.qp_error("h0", qp=3)
    ends = pair()
    exchange(*ends)
    assert late.describe() == '1 "late" (drop): fired 0 times, 1 matched'
    assert "2 (qp_error): fired 1 times, 1 matched; 1 of them did nothing, since" in repr(qp)
    late.remove()
    assert repr(late) == '<simverbs.Fault 1 "late" (drop): is no longer in place>'
    for end in ends:
        end.close()


def test_a_fault_comes_after_another(world: simverbs.World) -> None:
    first = simverbs.mark(when=simverbs.OnTime(), at="1ms")
    then = simverbs.link_down("h0-s0", after=first, after_delay="1ms", duration="1ms")
    world.advance("1.5ms")
    assert (first.fired, then.fired) == (1, 0)
    world.advance("1ms")
    assert then.fired == 1


def test_a_call_fails_with_its_errno(world: simverbs.World) -> None:
    from pyverbs.device import Context
    from pyverbs.pd import PD
    from pyverbs.pyverbs_error import PyverbsRDMAError

    context = Context(name="simverbs0")
    simverbs.call(call="ibv_alloc_pd", host="h0", errno=errno.ENOMEM)
    with pytest.raises(PyverbsRDMAError) as caught:
        PD(context)
    assert caught.value.error_code == errno.ENOMEM
    context.close()


def test_a_fault_that_hits_nothing_says_so(world: simverbs.World) -> None:
    fault = simverbs.qp_error("h0", qp=3)
    world.advance("1us")
    assert fault.missed == 1
    assert "queue pair" in fault.missed_reason


@pytest.mark.parametrize("status", ["REM_ABORT_ERR", e.IBV_WC_REM_ABORT_ERR])
def test_a_status_is_injected(world: simverbs.World, status: Any) -> None:
    a, b = pair()
    simverbs.completion(host="h0", qp=1, status=status)
    a.send()
    assert a.wait() == e.IBV_WC_REM_ABORT_ERR
    a.close()
    b.close()


@pytest.mark.parametrize(
    ("action", "keywords", "number", "message"),
    [
        ("drop", {"src": "h7"}, errno.ENOENT, "src: there is no host 'h7'"),
        ("drop", {"opcode": "SEND_OFF"}, errno.EINVAL, "SEND_OFF"),
        ("drop", {"at": "2ms", "until": "1ms"}, errno.EINVAL, "until is 1000000000 ps"),
        ("drop", {"chance": "3/2"}, errno.EINVAL, "a chance is at most 1/1"),
        ("drop", {"chance": "often"}, errno.EINVAL, "as in '1/100'"),
        ("drop", {"direction": "up"}, errno.EINVAL, "either, requests, responses"),
        ("drop", {"psn": 2**32}, errno.EINVAL, "from 0 to 4294967295"),
        ("drop", {"nth": 0}, errno.EINVAL, "nth: 0 is not from 1"),
        ("drop", {"name": "a\0b"}, errno.EINVAL, "NUL"),
        ("drop", {"after": 99}, errno.ENOENT, "there is no fault 99"),
        ("delay", {"duration": 0}, errno.EINVAL, "delay: duration is missing"),
        ("delay", {"duration": "5 parsec"}, errno.EINVAL, "units are ps ns us ms s min h"),
        ("delay", {"duration": "0.5ps"}, errno.EINVAL, "no whole number of picoseconds"),
        ("nak", {"nak": "no"}, errno.EINVAL, "psn_sequence"),
        ("call", {"call": "ibv_foo", "errno": "ENOMEM"}, errno.EINVAL, "ibv_reg_mr"),
        ("call", {"call": "ibv_reg_mr", "errno": "EFOO"}, errno.EINVAL, "such as ENOMEM"),
        ("completion", {"status": "SUCCESS"}, errno.EINVAL, "a status other than SUCCESS"),
        ("completion", {"status": "BAD"}, errno.EINVAL, "RETRY_EXC_ERR"),
        ("lid", {"node": "h0", "value": 0}, errno.EINVAL, "value is 0"),
        ("link_down", {}, errno.ENOENT, "h0-s0"),
        ("link_rate", {"link": "h0-s0", "rate": "9x EDR"}, errno.EINVAL, "such as '4x EDR'"),
        ("qp_error", {"node": "h0"}, errno.EINVAL, "qp_num is missing"),
        ("melt", {}, errno.EINVAL, "'melt' is no action of faults; those are mark, drop"),
    ],
)
def test_wrong_values_are_refused(
    world: simverbs.World, action: str, keywords: dict[str, Any], number: int, message: str
) -> None:
    with pytest.raises(simverbs.Error) as caught:
        simverbs.inject(action, keywords)
    assert message in str(caught.value)
    assert not re.search(r"simverbs_|SIMVERBS_|\b(match|target|with)\.", str(caught.value))
    assert caught.value.errno == number


@pytest.mark.parametrize(
    ("action", "keywords", "message"),
    [
        ("drop", {"source": "h0"}, "drop has no 'source'; it has link, transmitter, src"),
        ("drop", {"when": simverbs.OnTime()}, "drop has no 'when'"),
        ("drop", {"src": 3}, "src: 3 is int, not a str"),
        ("drop", {"psn": "first"}, "psn: 'first' is str, not an int"),
        ("drop", {"psn": True}, "psn: True is bool"),
        ("drop", {"chance": 0.5}, "chance: 0.5 is neither"),
        ("delay", {"duration": 1.5}, "duration: 1.5 is float"),
        ("link_down", {"link": "h0-s0", "when": "now"}, "none of OnTime, OnPacket"),
    ],
)
def test_wrong_types_are_refused(
    world: simverbs.World, action: str, keywords: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        simverbs.inject(action, keywords)


def test_all_faults_are_taken_back(world: simverbs.World) -> None:
    lost = simverbs.drop(src="h0", count="every")
    world.clear_faults()
    ends = pair()
    exchange(*ends)
    with pytest.raises(simverbs.Error) as caught:
        lost.fired
    assert caught.value.errno == errno.ENOENT
    for end in ends:
        end.close()


def test_a_fault_of_another_world_is_left_alone() -> None:
    with simverbs.World():
        former = simverbs.drop(src="h0")
    with simverbs.World():
        present = simverbs.drop(src="h1")
        assert present.id == former.id
        former.remove()
        assert present.fired == 0
        with pytest.raises(simverbs.Error, match="has ended") as caught:
            former.fired
    assert caught.value.errno == errno.ENOENT


@pytest.mark.parametrize(
    ("text", "value"),
    [("5ms", 5 * simverbs.MS), ("1.5 us", 1_500_000), ("2h", 7200 * simverbs.S), ("0ps", 0)],
)
def test_durations(text: str, value: int) -> None:
    assert simverbs.picoseconds(text) == value
    assert simverbs.picoseconds(simverbs.text_of(value)) == value
