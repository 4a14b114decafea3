"""The simulated fabric of this process, from its beginning to its end.

    with simverbs.World(topology="star:3", personality="connectx6", seed=3) as world:
        ... plain pyverbs ...
        world.advance("10ms")
        print(world.explain())

The world lives in the process. Programs that are attached to a served world (`simverbs on`,
`simverbs run`) cannot change it: their calls raise Error (ENODEV).
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Optional, Union

from simverbs import library, tables
from simverbs.durations import Duration, picoseconds
from simverbs.errors import Error, ScenarioFailed
from simverbs.faults import clear_faults
from simverbs.port import Port, in_range
from simverbs.pyverbs_contexts import close_contexts
from simverbs.trace import Trace

KEPT_RECORDS = 16_384

_one_at_a_time = threading.Lock()
_open_world: Optional[World] = None
_process_of_open_world = 0


class World:
    """A world, with the settings that are given; others are those of the environment.

    - `topology`: the fabric: a generator ("star:3", "pair", "fat-tree:4", on Ethernet "eth-star:3")
      or the path of a topology file
    - `personality`: whose behaviour where devices differ: "spec", "connectx6" or "rxe"
    - `seed`: of every random decision
    - `routing`: "auto", "min-hop", "up-down" or "fat-tree"
    - `first_psn`, `first_qpn`: PSN in packets of what programs call PSN 0; low 16 bits of the first
      queue pair number
    - `keys`: order in which memory keys are given out: "sequential" or "random"
    - `sm`: what brings InfiniBand ports up: "startup", "sweep" or "none"
    - `schedule`: who moves time: "canonical", "free" or "serial"
    - `order`: a number of an order of threads, which then take turns
    - `spin_ms`: processor time after which a thread that watches memory counts as waiting
    - `helper_thread`: "on", or "off" for a program of one thread that never sleeps outside of
      verbs: the library then has no thread that moves time meanwhile
    - `host`: shows the devices of this host alone
    - `scenario`: a file with a fabric, faults and what to expect; `end_scenario()` judges by it
    - `kept_records`: how many of the last records are kept for `explain()`; 0 for long runs, since
      each costs time

    One at a time in a process. Raises Error: EBUSY where another one is open, or a device is;
    EINVAL where a value has no meaning; ENODEV where a variable of the environment has none, or
    where the process is attached to a served world.
    """

    def __init__(
        self,
        *,
        topology: Optional[str] = None,
        personality: Optional[str] = None,
        routing: Optional[str] = None,
        seed: Optional[int] = None,
        first_psn: Optional[int] = None,
        first_qpn: Optional[int] = None,
        keys: Optional[str] = None,
        sm: Optional[str] = None,
        schedule: Optional[str] = None,
        order: Optional[int] = None,
        spin_ms: Optional[int] = None,
        helper_thread: Optional[str] = None,
        host: Optional[str] = None,
        scenario: Union[str, Path, None] = None,
        kept_records: int = KEPT_RECORDS,
    ) -> None:
        settings = {name: value for name, value in locals().items() if name in tables.SETTINGS}
        self._is_open = False
        self._has_scenario = False
        self._unread_report = ""  # of a scenario that close() has judged
        self._trace: Optional[_TraceFile] = None
        self._process = os.getpid()
        self._take_the_place()
        try:
            library.restart()
            for name, value in settings.items():
                if value is not None:
                    _set(name, value)
            library.call("simverbs_set_kept_records", kept_records)
            if scenario is not None:
                library.call("simverbs_begin_scenario", os.fsencode(scenario))
                self._has_scenario = True
            self._is_open = True
            self.now()  # makes the world: what is wrong is told here
        except BaseException:
            self._is_open = False
            self._leave_the_place()
            try:
                library.restart()  # forgets the settings
            except Error:
                pass  # a device is open, whose world goes on
            raise

    def _take_the_place(self) -> None:
        global _open_world, _process_of_open_world
        with _one_at_a_time:
            if _open_world is not None and _process_of_open_world == os.getpid():
                raise Error(
                    errno.EBUSY, "this process has a World already; close() it before the next one"
                )
            _open_world, _process_of_open_world = self, os.getpid()

    def _leave_the_place(self) -> None:
        global _open_world
        with _one_at_a_time:
            if _open_world is self:
                _open_world = None

    # ---- its end ---------------------------------------------------------------------------

    def close(self, *, force: bool = False) -> None:
        """Ends the world, its faults, trace and time. A second call does nothing.

        Raises ScenarioFailed where it had a scenario that `end_scenario()` has not judged, and
        something was not as expected. Raises Error (EBUSY) where a device is open, and names what
        is on it: close it first. With `force` all devices are closed, with what is made on them.
        """
        if not self._is_open:
            return
        if self._process != os.getpid():  # a forked child: the world is the parent's
            self._is_open = False
            return
        if self._has_scenario:
            self._unread_report = self.end_scenario()
        self.end_trace()
        if force:
            close_contexts()
            library.functions().simverbs_close_devices()
        try:
            library.restart()
        except Error as refused:
            why = str(refused.strerror).removeprefix("simverbs_restart: ")
            why = why.replace("ibv_close_device() it", "close its context")
            raise Error(refused.errno or errno.EBUSY, f"World.close: {why}") from None
        self._is_open = False
        self._leave_the_place()
        library.call("simverbs_set_kept_records", 0)
        report, self._unread_report = self._unread_report, ""
        if report:
            raise ScenarioFailed(report)

    def __enter__(self) -> World:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        """Closes the world, in any case: what keeps it open is closed, and then raised (EBUSY)."""
        if error is not None:
            try:
                self.close(force=True)
            except ScenarioFailed as failed:
                print(failed, file=sys.stderr)  # the error of the block is raised
            return
        try:
            self.close()
        except Error:
            self.close(force=True)
            raise

    @property
    def is_open(self) -> bool:
        """False after `close()`, and in a forked child."""
        return self._is_open and self._process == os.getpid()

    @property
    def has_scenario(self) -> bool:
        """Whether there is a scenario that was not judged yet."""
        return self._has_scenario

    def _check(self) -> None:
        if self._process != os.getpid():
            raise Error(
                errno.EIO,
                f"this World belongs to process {self._process}, which forked this one; make "
                "another World here",
            )
        if not self._is_open:
            raise Error(errno.ENODEV, "this World is closed")

    def _call(self, name: str, *arguments: object) -> None:
        self._check()
        library.call(name, *arguments)

    # ---- time ------------------------------------------------------------------------------

    def now(self) -> int:
        """Virtual time in picoseconds since the world was made: the time of the last event."""
        now = ctypes.c_int64()
        self._call("simverbs_now_ps", ctypes.byref(now))
        return now.value

    def advance(self, duration: Duration) -> None:
        """Lets so much virtual time pass, with all that is due until then.

        Completions wait in their queues. Raises Error (EINVAL) where it is negative.
        """
        self._call("simverbs_advance_ps", picoseconds(duration, "advance"))

    def step(self, most: Duration) -> bool:
        """Runs all events of the next instant where that is at most so far ahead.

        False: nothing has moved. For programs of one thread that move time themselves; Raises Error
        (EBUSY) where other threads are actors.
        """
        ran = ctypes.c_int()
        self._call("simverbs_step_ps", picoseconds(most, "step"), ctypes.byref(ran))
        return ran.value != 0

    def actor(self, name: str) -> None:
        """Names the calling thread: what several threads do at one instant is ordered by name.

        Raises Error: EINVAL for a name that has not 1 to 63 bytes, EEXIST for another thread's.
        """
        self._call("simverbs_actor", library.encoded(name, "actor"))

    def expect_actors(self, count: int) -> None:
        """Lets virtual time stand until that many threads have called a verb or this API."""
        self._call("simverbs_actors", in_range(count, 0, 2**32 - 1, "expect_actors"))

    # ---- the fabric ------------------------------------------------------------------------

    def devices(self) -> dict[str, str]:
        """The host of each device, by the name of the device: {"simverbs0": "h0", ...}."""
        self._check()
        functions = library.functions()
        count = ctypes.c_int()
        devices = functions.ibv_get_device_list(ctypes.byref(count))
        if not devices:
            raise Error(errno.ENODEV, library.last_error())
        try:
            return {
                functions.ibv_get_device_name(devices[i]).decode(): functions.simverbs_device_host(
                    devices[i]
                ).decode()
                for i in range(count.value)
            }
        finally:
            functions.ibv_free_device_list(devices)

    def set_link(self, link: str, up: bool) -> None:
        """Takes a link ("h0-s0") down, with what is in flight on it, or brings it up.

        Raises Error (ENOENT) where there is no such link.
        """
        self._call("simverbs_set_link", library.encoded(link, "set_link"), int(up))

    def port(self, node: str, number: int = 1) -> Port:
        """A port of a host, to be changed as an administrator or a subnet manager does."""
        return Port(self, node, number)

    def tell_speed_changes(self, wanted: bool) -> None:
        """Sets whether programs get IBV_EVENT_DEVICE_SPEED_CHANGE; by default they do not."""
        self._call("simverbs_port_speed_events", int(wanted))

    def clear_faults(self) -> None:
        """Takes all faults back, in the order in which they were put in place."""
        self._check()
        clear_faults()

    def allow_misuse(self, name: str, allowed: bool = True) -> None:
        """With SIMVERBS_WARN=1: does not name mistakes of this kind in this world.

        Raises Error (EINVAL), which has all their names, for a name of none.
        """
        self._call("simverbs_allow_misuse", library.encoded(name, "allow_misuse"), int(allowed))

    # ---- what happened ---------------------------------------------------------------------

    def trace(self, path: Union[str, Path, None] = None) -> WorldTrace:
        """The records from here on: an iterable, and a context manager that ends it.

        They are written to `path`, or to a temporary file. Where the world has a trace file
        already, this is the part of it from here on. Raises Error: EBUSY where `path` is given and
        the world has a trace file, or where SIMVERBS_TRACE has one; or as `open()` does.
        """
        if self._trace is None or not self._trace.is_open:
            self._trace = _TraceFile(self, path)
        elif path is not None:
            raise Error(
                errno.EBUSY, f"the trace of this world goes to {self._trace.path}; close it first"
            )
        else:
            self._trace.users += 1
        return WorldTrace(self, self._trace)

    def end_trace(self) -> None:
        """Ends the trace file of this world, whoever uses it; what was recorded can still be read.

        Without one it does nothing. Raises Error with why it is not complete: ENOSPC, say.
        """
        if self._trace is not None:
            self._trace.close()

    def capture_to(self, path: Union[str, Path]) -> None:
        """Writes every packet from here on to a file for Wireshark (pcapng).

        Until `end_capture()` or the end of the world. Errors as of `trace()`.
        """
        self._call("simverbs_capture_open", os.fsencode(path))

    def end_capture(self) -> None:
        """Ends the capture. Raises Error: ENOENT where none is open; why it is not complete."""
        self._call("simverbs_capture_close")

    def explain(self, host: str = "", qp_num: int = 0) -> str:
        """Why a work request failed or a queue pair stopped, in sentences, a line each.

        From the first failure of the queue pair since it was last in RESET to what began it;
        without `host` and `qp_num` of any. "": nothing has failed. Raises Error (ENOENT) where no
        records are kept, and where libsimverbs-scenario.so does not lie beside the library.
        """
        self._check()
        name = library.encoded(host, "explain: host")
        text = library.functions().simverbs_explain(name, qp_num)
        if text is None:
            raise Error(errno.ENOENT, library.last_error())
        return bytes(text).decode(errors="replace")

    def waits(self) -> str:
        """Each queue pair, a line each below its host: its state and what it waits for."""
        self._check()
        text = library.functions().simverbs_waits()
        return "" if text is None else bytes(text).decode(errors="replace")

    def run_digest(self) -> int:
        """The digest by which runs are compared: calls, completions, states, events, firings.

        The same program, topology, personality and seed give the same one.
        """
        digest = ctypes.c_uint64()
        self._call("simverbs_run_digest", ctypes.byref(digest))
        return digest.value

    def packet_digest(self) -> int:
        """The same of packets, counted from the first call of this function on."""
        digest = ctypes.c_uint64()
        self._call("simverbs_packet_digest", ctypes.byref(digest))
        return digest.value

    def not_deterministic(self) -> str:
        """What has happened that could differ in another run; "": nothing, it is deterministic."""
        deterministic = ctypes.c_int()
        self._call("simverbs_is_deterministic", ctypes.byref(deterministic))
        return "" if deterministic.value else library.last_error().partition(": ")[2]

    def end_scenario(self) -> str:
        """Judges by the scenario of this world, and ends it; the world goes on.

        Returns what was not as expected, and why; "" where all of it was. Raises Error (ENOENT)
        where the world has no scenario, or it was judged before.
        """
        report = ctypes.c_char_p()
        self._call("simverbs_end_scenario", ctypes.byref(report))
        self._has_scenario = False
        return (report.value or b"").decode(errors="replace")


class _TraceFile:
    """The one file that the trace of a world goes to, and how many WorldTraces use it."""

    def __init__(self, world: World, path: Union[str, Path, None]) -> None:
        self._world = world
        self._folder: Optional[tempfile.TemporaryDirectory[str]] = None
        if path is None:
            self._folder = tempfile.TemporaryDirectory(prefix="simverbs-trace-")
            path = Path(self._folder.name) / "trace.jsonl"
        self.path = Path(path)
        try:
            world._call("simverbs_trace_open", os.fsencode(path))
        except Error as refused:
            if refused.errno != errno.EBUSY:
                raise
            file = os.environ.get("SIMVERBS_TRACE")
            raise Error(
                errno.EBUSY, f"World.trace: SIMVERBS_TRACE has a trace file open: {file}"
            ) from None
        self.is_open = True
        self.users = 1

    def flush(self) -> int:
        """Writes out what is buffered; returns how many bytes the file has."""
        if self.is_open:
            self._world._call("simverbs_trace_flush")
        return self.path.stat().st_size

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._world._call("simverbs_trace_close")


class WorldTrace(Trace):
    """The records of a world from `World.trace()` on, until `close()` or the end of the world.

    It may be read while the world goes on, and as long as this object lives.
    """

    def __init__(self, world: World, file: _TraceFile) -> None:
        self._file = file
        self._end_byte: Optional[int] = None
        super().__init__(file.path, file.flush() if file.users > 1 else 0)

    def close(self) -> None:
        """Ends it: what happens from here on is not in it. A second call does nothing."""
        if self._end_byte is None:
            self._end_byte = self._file.flush()
            self._file.users -= 1
            if self._file.users == 0:
                self._file.close()

    def __enter__(self) -> WorldTrace:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def _limit(self) -> Optional[int]:
        return self._file.flush() if self._end_byte is None else self._end_byte


def current() -> Optional[World]:
    """The World that is open in this process; None: there is none."""
    return _open_world if _process_of_open_world == os.getpid() else None


def _set(name: str, value: Union[str, int]) -> None:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise TypeError(f"World: {name}: {value!r} is {type(value).__name__}, not a str or an int")
    words = (name.encode(), library.encoded(str(value), f"World: {name}"))
    try:
        library.call("simverbs_set", *words)
    except Error as refused:
        why = str(refused.strerror).removeprefix("simverbs_set: ")
        raise Error(refused.errno or errno.EINVAL, f"World: {name}: {why}") from None
