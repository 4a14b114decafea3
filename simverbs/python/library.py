"""Finds and loads the simulated libibverbs.so.1, and the control API behind it.

The loader takes the libibverbs.so.1 that a process has loaded for every extension module that needs
one by this name. `load()` therefore comes before the first import of pyverbs.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t
from ctypes import c_uint8, c_uint16, c_uint32, c_uint64
from pathlib import Path
from typing import Optional

from simverbs.build_places import COMMAND, IBVERBS_FOLDER
from simverbs.errors import Error
from simverbs.fault_struct import FaultStruct

_VERBS = "libibverbs.so.1"
_CONTROL = "libsimverbs.so.0"
_RTLD_NOLOAD = 4
_PACKAGE = Path(__file__).absolute().parent

# The functions that return an errno, with the types of their arguments.
_CHECKED = {
    "simverbs_set": (c_char_p, c_char_p),
    "simverbs_set_kept_records": (c_size_t,),
    "simverbs_restart": (),
    "simverbs_now_ps": (POINTER(c_int64),),
    "simverbs_advance_ps": (c_int64,),
    "simverbs_step_ps": (c_int64, POINTER(c_int)),
    "simverbs_actor": (c_char_p,),
    "simverbs_actors": (ctypes.c_uint,),
    "simverbs_set_link": (c_char_p, c_int),
    "simverbs_port_set_lid": (c_char_p, c_uint8, c_uint16),
    "simverbs_port_set_pkeys": (c_char_p, c_uint8, POINTER(c_uint16), c_size_t),
    "simverbs_port_set_gid": (c_char_p, c_uint8, ctypes.c_uint, c_char_p),
    "simverbs_port_set_sm_lid": (c_char_p, c_uint8, c_uint16),
    "simverbs_port_reregister": (c_char_p, c_uint8),
    "simverbs_port_set_rate": (c_char_p, c_uint8, ctypes.c_uint, ctypes.c_uint),
    "simverbs_port_speed_events": (c_int,),
    "simverbs_trace_open": (c_char_p,),
    "simverbs_trace_close": (),
    "simverbs_trace_flush": (),
    "simverbs_capture_open": (c_char_p,),
    "simverbs_capture_close": (),
    "simverbs_run_digest": (POINTER(c_uint64),),
    "simverbs_packet_digest": (POINTER(c_uint64),),
    "simverbs_is_deterministic": (POINTER(c_int),),
    "simverbs_begin_scenario": (c_char_p,),
    "simverbs_end_scenario": (POINTER(c_char_p),),
    "simverbs_allow_misuse": (c_char_p, c_int),
    "simverbs_inject": (POINTER(FaultStruct), POINTER(c_uint32)),
    "simverbs_clear_fault": (c_uint32,),
    "simverbs_clear_faults": (),
    "simverbs_fault_fired": (c_uint32, POINTER(c_uint64)),
    "simverbs_fault_matched": (c_uint32, POINTER(c_uint64)),
    "simverbs_fault_missed": (c_uint32, POINTER(c_uint64), POINTER(c_char_p)),
}

_loaded: Optional[ctypes.CDLL] = None
_loaded_from = Path()
_worlds_ended = 0


def load() -> Path:
    """Loads the simulated libibverbs.so.1, once, and returns its path.

    What is taken is the one that the process has already, else the one in a folder of
    LD_LIBRARY_PATH, else the one of this installation. Raises Error: ENOENT where there is none,
    EBUSY where the process has loaded another libibverbs.so.1, the machine's own say.
    """
    global _loaded, _loaded_from
    if _loaded is None:
        path = _mapped(_VERBS)
        if path is None:
            path = _found()
        library = ctypes.CDLL(str(path))
        if not hasattr(library, "simverbs_now_ps"):
            raise Error(
                errno.EBUSY,
                f"this process has loaded {path}, which has no simulated devices (pyverbs was "
                "imported first?): call simverbs.load() before, use `pytest --simverbs`, or start "
                f"with LD_LIBRARY_PATH={_own_folder()}",
            )
        _declare(library)
        _loaded, _loaded_from = library, path
    return _loaded_from


def _own_folder() -> Path:
    return (_PACKAGE / IBVERBS_FOLDER).resolve()


def _mapped(name: str) -> Optional[Path]:
    """The library of that name that the process has mapped."""
    try:
        ctypes.CDLL(name, mode=_RTLD_NOLOAD)
    except OSError:
        return None
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")
            if path[1] and Path(path[2]).name.startswith(name):
                return Path("/" + path[2])
    return None


def _found() -> Path:
    folders = [Path(each) for each in os.environ.get("LD_LIBRARY_PATH", "").split(":") if each]
    control = _mapped(_CONTROL)  # linked or preloaded: its trampolines are the ones to take
    if control is not None:
        folders = [control.parent / "simverbs", control.parent]
    for folder in folders:
        if any((each / _CONTROL).exists() for each in (folder, folder / "..")):
            if (folder / _VERBS).exists():
                return folder / _VERBS
    own = _own_folder() / _VERBS
    if not own.exists():
        raise Error(
            errno.ENOENT,
            f"{_VERBS} of simverbs is neither in {own.parent} nor in a folder of LD_LIBRARY_PATH",
        )
    return own


def _declare(library: ctypes.CDLL) -> None:
    for name, arguments in _CHECKED.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise Error(
                errno.ENOSYS, f"{library._name} has no {name}(): it is of an older version"
            ) from None
        function.argtypes = arguments
        function.restype = c_int
    library.simverbs_last_error.restype = c_char_p
    library.simverbs_explain.argtypes = (c_char_p, c_uint32)
    library.simverbs_explain.restype = c_char_p
    library.simverbs_waits.restype = c_char_p
    library.simverbs_close_devices.restype = ctypes.c_uint
    library.simverbs_device_host.argtypes = (ctypes.c_void_p,)
    library.simverbs_device_host.restype = c_char_p
    library.simverbs_fault_init.argtypes = (POINTER(FaultStruct),)
    library.simverbs_fault_init.restype = None
    library.ibv_get_device_list.argtypes = (POINTER(c_int),)
    library.ibv_get_device_list.restype = POINTER(ctypes.c_void_p)
    library.ibv_free_device_list.argtypes = (POINTER(ctypes.c_void_p),)
    library.ibv_free_device_list.restype = None
    library.ibv_get_device_name.argtypes = (ctypes.c_void_p,)
    library.ibv_get_device_name.restype = c_char_p


def functions() -> ctypes.CDLL:
    """The functions of <simverbs/simverbs.h>; loads the library where that was not done."""
    load()
    assert _loaded is not None
    return _loaded


def last_error() -> str:
    """The reason for the last failure in this thread."""
    text: bytes = functions().simverbs_last_error()
    return text.decode(errors="replace")


def call(name: str, *arguments: object) -> None:
    """Calls a function that returns an errno; raises Error with the library's reason."""
    number: int = getattr(functions(), name)(*arguments)
    if number != 0:
        raise Error(number, last_error())


def restart() -> None:
    """Ends the world of this process. Raises Error (EBUSY) where a device is open."""
    global _worlds_ended
    call("simverbs_restart")
    _worlds_ended += 1


def current_world() -> tuple[int, int]:
    """Tells worlds apart: the process, and how many worlds have ended in it."""
    return os.getpid(), _worlds_ended


def encoded(text: str, what: str) -> bytes:
    """The bytes of a C string. Raises TypeError or, where a NUL is inside, Error (EINVAL)."""
    if not isinstance(text, str):
        raise TypeError(f"{what}: {text!r} is {type(text).__name__}, not a str")
    if "\0" in text:
        raise Error(errno.EINVAL, f"{what}: {text!r} has a NUL in it")
    return os.fsencode(text)


def command() -> Path:
    """The path of the `simverbs` command. Raises Error (ENOENT) where there is none."""
    own = (_PACKAGE / COMMAND).resolve()
    if own.exists():
        return own
    found = shutil.which("simverbs")
    if found is None:
        raise Error(errno.ENOENT, f"the command simverbs is neither {own} nor in PATH")
    return Path(found)
