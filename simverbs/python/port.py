"""Ports of hosts, and how an administrator or a subnet manager changes them."""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Iterable
from typing import TYPE_CHECKING

from simverbs import library
from simverbs.errors import Error
from simverbs.faults import rate_of

if TYPE_CHECKING:
    from simverbs.world import World


class Port:
    """A port of a host. Numbers that are no port's raise Error (ENOENT) in each function.

    Functions that are marked InfiniBand raise Error (EOPNOTSUPP) for a port of Ethernet.
    """

    def __init__(self, world: World, node: str, number: int) -> None:
        self._world = world
        self.node = node
        self.number = number
        self._port = (library.encoded(node, "port: node"), in_range(number, 0, 255, "port"))

    def set_lid(self, lid: int) -> None:
        """IBV_EVENT_LID_CHANGE. From 1 to 0xBFFF and no other port's, else EINVAL. InfiniBand."""
        lid = in_range(lid, 0, 0xFFFF, "set_lid")
        self._world._call("simverbs_port_set_lid", *self._port, lid)

    def set_pkeys(self, pkeys: Iterable[int]) -> None:
        """IBV_EVENT_PKEY_CHANGE. The table from entry 0; further entries become 0. InfiniBand.

        Raises Error (EINVAL) for none, and for more than the port has.
        """
        values = [in_range(each, 0, 0xFFFF, "set_pkeys") for each in pkeys]
        table = (ctypes.c_uint16 * len(values))(*values)
        self._world._call("simverbs_port_set_pkeys", *self._port, table, len(values))

    def set_gid(self, index: int, gid: bytes) -> None:
        """IBV_EVENT_GID_CHANGE. An entry of the table, or the first empty one. InfiniBand.

        `gid` has 16 bytes (`ipaddress.IPv6Address(text).packed`). Raises Error (EINVAL) for another
        index or length.
        """
        if len(gid) != 16:
            raise Error(errno.EINVAL, f"set_gid: a GID has 16 bytes, not {len(gid)}")
        index = in_range(index, 0, 2**32 - 1, "set_gid: index")
        self._world._call("simverbs_port_set_gid", *self._port, index, gid)

    def set_sm_lid(self, lid: int) -> None:
        """IBV_EVENT_SM_CHANGE: another master subnet manager, at that LID (1 to 0xBFFF)."""
        lid = in_range(lid, 0, 0xFFFF, "set_sm_lid")
        self._world._call("simverbs_port_set_sm_lid", *self._port, lid)

    def reregister(self) -> None:
        """IBV_EVENT_CLIENT_REREGISTER. InfiniBand."""
        self._world._call("simverbs_port_reregister", *self._port)

    def set_rate(self, rate: str) -> None:
        """Width and speed of the port's link, at both ends: "4x EDR"."""
        self._world._call("simverbs_port_set_rate", *self._port, *rate_of(rate, "set_rate"))


def in_range(value: int, least: int, most: int, what: str) -> int:
    """The value, if it is in the range. Raises TypeError and Error (EINVAL) with `what`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what}: {value!r} is {type(value).__name__}, not an int")
    if not least <= value <= most:
        raise Error(errno.EINVAL, f"{what}: {value} is not from {least} to {most}")
    return value
