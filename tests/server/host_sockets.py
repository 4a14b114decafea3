"""Tests sockets of programs in a served world: the address of a socket that is not bound.

    SIMVERBS=build/dev/bin/simverbs python3 host_sockets.py outside pair     (as ctest does)

With `outside` it runs itself on h1 of that topology.
"""

import ctypes
import errno
import os
import socket
import struct
import subprocess
import sys
import unittest

OWN, PEER = "127.77.0.1", "127.77.0.0"
IP_BIND_ADDRESS_NO_PORT = 24


class IfAddrs(ctypes.Structure):
    """struct ifaddrs of getifaddrs(3)."""


IfAddrs._fields_ = [
    ("next", ctypes.POINTER(IfAddrs)), ("name", ctypes.c_char_p), ("flags", ctypes.c_uint),
    ("address", ctypes.POINTER(ctypes.c_ubyte * 16)), ("netmask", ctypes.POINTER(ctypes.c_ubyte * 16)),
    ("broadcast", ctypes.POINTER(ctypes.c_ubyte * 16)), ("data", ctypes.c_void_p)]
IFF_UP, IFF_LOOPBACK = 1, 8


def ipv4_interfaces():
    """(name, flags, address, netmask, broadcast address) of each entry of IPv4, in their order."""
    libc = ctypes.CDLL(None)
    first = ctypes.POINTER(IfAddrs)()
    assert libc.getifaddrs(ctypes.byref(first)) == 0
    found, entry = [], first
    while entry:
        one = entry.contents
        if one.address and bytes(one.address.contents[:2]) == struct.pack("=H", socket.AF_INET):
            ip = [socket.inet_ntoa(bytes(part.contents[4:8])) if part else None
                  for part in (one.address, one.netmask, one.broadcast)]
            found.append((one.name.decode(), one.flags, *ip))
        entry = one.next
    libc.freeifaddrs(first)
    return found


class Interfaces(unittest.TestCase):
    def test_the_addresses_of_the_host_are_behind_those_of_the_machine(self):
        found = ipv4_interfaces()
        self.assertEqual(found[0][0], "lo")
        name, flags, *addresses = found[-1]
        self.assertEqual(name, "lo:0")
        self.assertEqual(flags & (IFF_UP | IFF_LOOPBACK), IFF_UP)
        self.assertEqual(addresses, [OWN, "255.255.0.0", "127.77.255.255"])
        self.assertEqual(sum(one[2].startswith("127.77.") for one in found), 1)

    def test_lists_are_freed(self):
        for _ in range(200):
            self.assertEqual(len(ipv4_interfaces()), len(ipv4_interfaces()))


class Sockets(unittest.TestCase):
    def make(self, kind, family=socket.AF_INET):
        made = socket.socket(family, kind)
        self.addCleanup(made.close)
        made.settimeout(60)
        return made

    def listener(self, address=PEER):
        made = self.make(socket.SOCK_STREAM)
        made.bind((address, 0))
        made.listen()
        return made

    def receiver(self, address=PEER):
        made = self.make(socket.SOCK_DGRAM)
        made.bind((address, 0))
        return made

    def accepted(self, listener):
        connection, peer = listener.accept()
        connection.close()
        return peer

    def test_tcp_leaves_from_the_address_of_its_host(self):
        listener, client = self.listener(), self.make(socket.SOCK_STREAM)
        client.connect(listener.getsockname())
        self.assertEqual(client.getsockname()[0], OWN)
        self.assertEqual(self.accepted(listener), client.getsockname())
        self.assertEqual(client.getsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT), 0)

    def test_udp_that_connects_leaves_from_the_address_of_its_host(self):
        receiver, client = self.receiver(), self.make(socket.SOCK_DGRAM)
        client.connect(receiver.getsockname())
        self.assertEqual(client.getsockname()[0], OWN)
        client.send(b"1")
        self.assertEqual(receiver.recvfrom(1), (b"1", client.getsockname()))

    def test_datagrams_leave_from_the_address_of_their_host(self):
        receiver, client = self.receiver(), self.make(socket.SOCK_DGRAM)
        client.sendto(b"12", receiver.getsockname())
        client.sendmsg([b"3", b"4"], [], 0, receiver.getsockname())
        address, port = client.getsockname()
        self.assertEqual(address, "0.0.0.0", "as in Linux")
        self.assertEqual(receiver.recvfrom(9), (b"12", (OWN, port)))
        self.assertEqual(receiver.recvfrom(9), (b"34", (OWN, port)))

    def test_a_port_alone_is_no_address(self):
        receiver, client = self.receiver(), self.receiver("0.0.0.0")
        client.sendto(b"1", receiver.getsockname())
        self.assertEqual(receiver.recvfrom(9), (b"1", (OWN, client.getsockname()[1])))

    def test_a_host_reaches_itself_from_the_address_that_is_named(self):
        listener, client = self.listener(OWN), self.make(socket.SOCK_STREAM)
        client.connect(listener.getsockname())
        self.assertEqual(client.getsockname()[0], OWN)

    def test_whoever_is_bound_stays_so(self):
        receiver, client = self.receiver(), self.receiver("127.0.0.1")
        client.sendto(b"1", receiver.getsockname())
        self.assertEqual(receiver.recvfrom(9), (b"1", client.getsockname()))
        client.connect(receiver.getsockname())
        self.assertEqual(client.getsockname()[0], "127.0.0.1")

    def test_other_addresses_are_left_alone(self):
        listener, client = self.listener("127.0.0.1"), self.make(socket.SOCK_STREAM)
        client.connect(listener.getsockname())
        self.assertEqual(client.getsockname()[0], "127.0.0.1")
        receiver, sender = self.receiver("127.0.0.1"), self.make(socket.SOCK_DGRAM)
        sender.sendto(b"1", receiver.getsockname())
        self.assertEqual(receiver.recvfrom(9)[1][0], "127.0.0.1")

    def test_connects_without_blocking(self):
        listener, client = self.listener(), self.make(socket.SOCK_STREAM)
        client.setblocking(False)
        self.assertIn(client.connect_ex(listener.getsockname()), (0, errno.EINPROGRESS))
        peer = self.accepted(listener)
        self.assertIn(client.connect_ex(listener.getsockname()), (0, errno.EISCONN))
        self.assertEqual(peer, client.getsockname())

    def test_tries_again_after_it_was_refused(self):
        listener, client = self.listener(), self.make(socket.SOCK_STREAM)
        nobody = self.listener()
        refused = nobody.getsockname()
        nobody.close()
        client.settimeout(None)
        self.assertEqual(client.connect_ex(refused), errno.ECONNREFUSED)
        client.connect(listener.getsockname())
        self.assertEqual(self.accepted(listener)[0], OWN)

    def test_errors_are_the_kernels(self):
        client = self.make(socket.SOCK_STREAM, socket.AF_INET6)
        with self.assertRaises(OSError) as caught:
            client.connect(("::1", 1))
        self.assertIn(caught.exception.errno, (errno.ECONNREFUSED, errno.EADDRNOTAVAIL))
        connect = ctypes.CDLL(None, use_errno=True).connect
        peer = struct.pack("=H", socket.AF_INET) + struct.pack("!H", 1) + socket.inet_aton(PEER)
        with open("/dev/null", "rb") as none:
            self.assertEqual(connect(none.fileno(), peer + bytes(8), 16), -1)
        self.assertEqual(ctypes.get_errno(), errno.ENOTSOCK)
        self.assertEqual(connect(client.fileno(), None, 16), -1)
        self.assertEqual(ctypes.get_errno(), errno.EFAULT)

    def test_many_connections_to_one_peer_share_no_port(self):
        listener = self.listener()
        clients = [self.make(socket.SOCK_STREAM) for _ in range(50)]
        for client in clients:
            client.connect(listener.getsockname())
            self.accepted(listener)
        self.assertEqual(len({client.getsockname() for client in clients}), 50)


if __name__ == "__main__":
    if sys.argv[1:2] == ["outside"]:
        command = [os.environ["SIMVERBS"], "run", sys.argv[2],
                   f"h1={sys.executable} -B {os.path.abspath(__file__)}"]
        sys.exit(subprocess.run(command, check=False).returncode)
    unittest.main()
