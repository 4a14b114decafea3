"""Worlds: settings, time, the fabric, digests, how worlds end, forks and threads."""

from __future__ import annotations

import errno
import inspect
import ipaddress
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import simverbs
from simverbs import library, tables

simverbs.load()

import pyverbs.enums as e  # noqa: E402  the library comes first
from ends import exchange, pair  # noqa: E402
from pyverbs.device import Context  # noqa: E402


@pytest.fixture
def world() -> Iterator[simverbs.World]:
    with simverbs.World(topology="star:3", seed=3) as world:
        yield world


def refusal(call: Callable[[], Any], number: int) -> str:
    """What a call says that is refused with this errno."""
    with pytest.raises(simverbs.Error) as caught:
        call()
    assert caught.value.errno == number, caught.value
    return str(caught.value)


def test_every_setting_is_a_keyword() -> None:
    keywords = list(inspect.signature(simverbs.World).parameters)
    assert keywords == [*tables.SETTINGS, "scenario", "kept_records"]


def test_settings_make_the_world() -> None:
    with simverbs.World(topology="eth-star:4", personality="rxe", host="h2", first_qpn=77) as world:
        assert world.devices() == {"simverbs0": "h2"}
        with Context(name="simverbs0") as context:
            assert context.query_port(1).link_layer == e.IBV_LINK_LAYER_ETHERNET


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"topology": "stern:3"}, "stern:3"),
        ({"personality": "mlx9"}, "spec, connectx6, rxe"),
        ({"seed": -1}, "seed"),
        ({"first_psn": 1 << 24}, "16777215"),
        ({"topology": "star:2\0"}, "NUL"),
        ({"scenario": "there_is_none.yaml"}, "there_is_none.yaml"),
        ({"kept_records": 10**9}, "100000000"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    assert message in refusal(lambda: simverbs.World(**settings), errno.EINVAL)
    with simverbs.World() as world:  # the wrong one left nothing
        assert set(world.devices().values()) == {"h0", "h1"}


def test_a_setting_has_a_type() -> None:
    with pytest.raises(TypeError, match="seed: 1.5 is float"):
        simverbs.World(seed=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'topolgy'"):
        simverbs.World(topolgy="star:2")  # type: ignore[call-arg]


def test_a_wrong_variable_is_no_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMVERBS_SEED", "many")
    refusal(simverbs.World, errno.ENODEV)


def test_time_passes_when_asked(world: simverbs.World) -> None:
    assert world.now() == 0
    world.advance("1.5ms")
    world.advance(2 * simverbs.US)
    assert world.now() == 1_502 * simverbs.US
    assert not world.step("1us")  # nothing is due
    assert "negative" not in refusal(lambda: world.advance(-1), errno.EINVAL)


def test_links_and_ports_change(world: simverbs.World) -> None:
    context = Context(name="simverbs0")
    world.set_link("h0-s0", False)
    assert context.query_port(1).state == e.IBV_PORT_DOWN
    world.set_link("h0-s0", True)
    world.advance("2ms")
    assert context.query_port(1).state == e.IBV_PORT_ACTIVE
    port = world.port("h0")
    port.set_lid(0x77)
    assert context.query_port(1).lid == 0x77
    port.set_pkeys([0xFFFF, 0x8001])
    assert context.query_pkey(1, 1) == socket_order(0x8001)
    gid = ipaddress.IPv6Address("fe80::77")
    port.set_gid(1, gid.packed)
    assert ipaddress.IPv6Address(str(context.query_gid(1, 1))) == gid
    port.set_rate("1x HDR")
    assert context.query_port(1).active_width == 1
    port.set_sm_lid(9)
    port.reregister()
    context.close()


def socket_order(value: int) -> int:
    return int.from_bytes(value.to_bytes(2, "big"), "little")


def test_wrong_changes_are_refused(world: simverbs.World) -> None:
    assert "h0-s0" in refusal(lambda: world.set_link("h0-h1", False), errno.ENOENT)
    assert "'h9'" in refusal(lambda: world.port("h9").set_lid(3), errno.ENOENT)
    refusal(lambda: world.port("h0", 2).reregister(), errno.ENOENT)
    refusal(lambda: world.port("h0").set_lid(0xFFFF), errno.EINVAL)
    refusal(lambda: world.port("h0").set_pkeys([]), errno.EINVAL)
    assert "16 bytes" in refusal(lambda: world.port("h0").set_gid(0, b"123"), errno.EINVAL)
    assert "4x EDR" in refusal(lambda: world.port("h0").set_rate("fast"), errno.EINVAL)
    assert "no_receive_at_rtr" in refusal(lambda: world.allow_misuse("x"), errno.EINVAL)


def test_one_world_after_another_gives_one_digest() -> None:
    digests = set()
    for _ in range(2):
        with simverbs.World(topology="star:2", seed=3) as world:
            packets = world.packet_digest()
            ends = pair()
            exchange(*ends)
            assert world.not_deterministic() == ""
            assert world.packet_digest() != packets
            digests.add((world.run_digest(), world.packet_digest()))
            for end in ends:
                end.close()
    assert len(digests) == 1


def test_there_is_one_world_at_a_time(world: simverbs.World) -> None:
    assert simverbs.current() is world
    assert "already" in refusal(simverbs.World, errno.EBUSY)
    world.close()
    world.close()
    assert simverbs.current() is None
    assert not world.is_open
    assert "closed" in refusal(world.now, errno.ENODEV)


def test_an_open_device_keeps_the_world() -> None:
    world = simverbs.World()
    context = Context(name="simverbs0")
    assert "simverbs0 with 0 queue pairs" in refusal(world.close, errno.EBUSY)
    assert world.is_open
    world.close(force=True)
    context.close()  # was closed already: no harm


def test_a_block_ends_its_world_in_any_case() -> None:
    kept = []
    with pytest.raises(simverbs.Error, match="simverbs0"):
        with simverbs.World():
            kept.append(Context(name="simverbs0"))
    with pytest.raises(ZeroDivisionError):
        with simverbs.World():
            kept.append(Context(name="simverbs0"))
            raise ZeroDivisionError
    assert simverbs.current() is None


def test_a_failure_is_explained(world: simverbs.World) -> None:
    assert world.explain() == ""
    a, b = pair(retries=2)
    simverbs.drop(src="h0", psn=1, count="every", name="cut")
    b.receive()
    a.send()
    assert a.wait() == e.IBV_WC_RETRY_EXC_ERR
    why = world.explain("h0", a.qp.qp_num)
    assert "RETRY_EXC_ERR" in why
    assert '"cut" (drop)' in why
    assert f"QP {b.qp.qp_num:#x} RC RTS" in world.waits()
    a.close()
    b.close()


def test_nothing_is_explained_without_records() -> None:
    with simverbs.World(kept_records=0) as world:
        assert "no records are kept" in refusal(world.explain, errno.ENOENT)


def in_child(act: Callable[[], None]) -> int:
    """The exit status of a forked child that does this."""
    child = os.fork()
    if child == 0:
        try:
            act()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_has_a_world_of_its_own(world: simverbs.World) -> None:
    world.advance("1ms")
    fault = simverbs.drop(src="h0")

    def act() -> None:
        assert f"process {os.getppid()}" in refusal(world.now, errno.EIO)
        assert not world.is_open
        fault.remove()
        world.close()
        with simverbs.World(topology="star:2") as own:
            assert own.now() == 0
            exchange(*pair())
            own.close(force=True)

    assert in_child(act) == 0
    assert world.now() == simverbs.MS
    assert fault.fired == 0


def test_threads_are_actors(world: simverbs.World) -> None:
    a, b = pair()
    names: list[str] = []

    def serve() -> None:
        world.actor("server")
        for _ in range(3):
            b.receive()
            assert b.wait() == e.IBV_WC_SUCCESS
            names.append("server")

    world.actor("client")
    assert "'client'" in refused_in_thread(lambda: world.actor("client"))
    refusal(lambda: world.actor(""), errno.EINVAL)
    server = threading.Thread(target=serve)
    server.start()
    for _ in range(3):
        a.send()
        assert a.wait() == e.IBV_WC_SUCCESS
    server.join()
    assert names == ["server"] * 3
    a.close()
    b.close()


def refused_in_thread(call: Callable[[], Any]) -> str:
    """What a call in a thread of its own says, which is refused with EEXIST."""
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(refusal(call, errno.EEXIST)))
    thread.start()
    thread.join()
    return said[0]


def test_a_served_world_is_not_changed_by_its_programs() -> None:
    program = "import simverbs, sys; simverbs.load(); simverbs.World()"
    words = [str(library.command()), "run", "star:2", f"h0={sys.executable} -c '{program}'"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "attached to a server's (ENODEV)" in ended.stdout + ended.stderr


SCENARIO = """
fabric: star:3
faults:
  - {name: lost, action: drop, when: {qp: h0/1, psn: 1, attempt: 1}}
expect:
  fired: {lost: %d}
"""


@pytest.mark.parametrize(("expected", "report"), [(1, ""), (2, "firings of lost: 2")])
def test_a_scenario_is_judged(tmp_path: Any, expected: int, report: str) -> None:
    (tmp_path / "lost.yaml").write_text(SCENARIO % expected)
    with simverbs.World(scenario=tmp_path / "lost.yaml") as world:
        assert len(world.devices()) == 3
        ends = pair()
        exchange(*ends)
        judged = world.end_scenario()
        assert report in judged and bool(report) == bool(judged)
        refusal(world.end_scenario, errno.ENOENT)
        exchange(*ends)  # the world goes on
        for end in ends:
            end.close()


def test_a_scenario_that_is_not_judged_fails_at_the_end(tmp_path: Any) -> None:
    (tmp_path / "lost.yaml").write_text(SCENARIO % 1)
    with pytest.raises(simverbs.ScenarioFailed, match="firings of lost: 1"):
        with simverbs.World(scenario=tmp_path / "lost.yaml"):
            pass


def test_a_wrong_scenario_is_refused_with_its_place(tmp_path: Any) -> None:
    (tmp_path / "wrong.yaml").write_text("faults:\n  - {action: drip}\n")
    said = refusal(lambda: simverbs.World(scenario=tmp_path / "wrong.yaml"), errno.EINVAL)
    assert "wrong.yaml:2" in said and "drop" in said
