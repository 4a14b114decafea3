"""simverbs: RDMA verbs on simulated devices, for tests in Python.

    import simverbs

    simverbs.load()  # before pyverbs, which then has the simulated devices
    import pyverbs.device

    with simverbs.World(topology="star:2", seed=3) as world:
        lost = simverbs.drop(src="h0", psn=1, attempt=1)
        ...
        world.advance("10ms")

Tests of pytest get their worlds by the fixture `simverbs_world`: see `simverbs.pytest_plugin`.
Refusals are raised as `Error`, with the errno and a reason. Times are picoseconds or texts with
units: see `simverbs.durations`.
"""

from simverbs.build_places import VERSION as __version__
from simverbs.command import ScenarioResult, draw_ladder, explain_trace, run_scenario
from simverbs.durations import MIN, MS, NS, PS, US, Duration, H, S, picoseconds, text_of
from simverbs.errors import Error, ScenarioFailed
from simverbs.fabric_faults import (
    cq_overrun,
    device_arrive,
    device_fatal,
    device_remove,
    host_kill,
    host_restart,
    lid,
    link_down,
    link_flap,
    link_rate,
    link_up,
    mark,
    mr_invalidate,
    pause,
    pkey,
    port_error,
    process_kill,
    process_stop,
    qp_error,
    release,
    reregister,
    ring,
    sm_death,
    sm_lid,
    srq_ring,
    switch_death,
)
from simverbs.faults import Fault, OnCall, OnPacket, OnTime, OnWorkRequest, clear_faults, inject
from simverbs.library import load
from simverbs.packet_faults import (
    call,
    cm_reject,
    complete_late,
    completion,
    corrupt,
    delay,
    drop,
    duplicate,
    event_late,
    execution,
    hold,
    land_late,
    mark_congestion,
    nak,
    no_receive,
    notify_congestion,
    reorder,
    rewrite,
    rnr_nak,
    short_poll,
    symbol_error,
    syndrome,
)
from simverbs.port import Port
from simverbs.trace import Record, Trace, read_trace
from simverbs.world import World, WorldTrace, current

__all__ = [
    "MIN", "MS", "NS", "PS", "US", "H", "S",
    "Duration", "Error", "Fault", "OnCall", "OnPacket", "OnTime", "OnWorkRequest", "Port", "Record",
    "ScenarioFailed", "ScenarioResult", "Trace", "World", "WorldTrace", "__version__",
    "call", "clear_faults", "cm_reject", "complete_late", "completion", "corrupt", "cq_overrun",
    "current", "delay", "device_arrive", "device_fatal", "device_remove", "draw_ladder", "drop",
    "duplicate", "event_late", "execution", "explain_trace", "hold", "host_kill", "host_restart",
    "inject", "land_late", "lid", "link_down", "link_flap", "link_rate", "link_up", "load", "mark",
    "mark_congestion", "mr_invalidate", "nak", "no_receive", "notify_congestion", "pause",
    "picoseconds", "pkey", "port_error", "process_kill", "process_stop", "qp_error", "read_trace",
    "release", "reorder", "reregister", "rewrite", "ring", "rnr_nak", "run_scenario", "short_poll",
    "sm_death", "sm_lid", "srq_ring", "switch_death", "symbol_error", "syndrome", "text_of",
]
