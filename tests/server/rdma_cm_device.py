"""Tests /dev/infiniband/rdma_cm of a served world by system calls alone, without librdmacm.

    SIMVERBS=build/dev/bin/simverbs python3 rdma_cm_device.py outside     (as ctest does)

With `outside` it starts a world and runs itself in it, on h0.
"""

import ctypes
import errno
import fcntl
import os
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

CREATE_ID, DESTROY_ID, LISTEN, GET_EVENT, SET_OPTION, MIGRATE_ID = 0, 1, 7, 12, 14, 18
BIND, RESOLVE_ADDR = 20, 21
PS_TCP = 0x0106
EVENT_BYTES = 336
ADDR_RESOLVED = 0


def address_of(ip, port=7471):
    return struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + socket.inet_aton(ip)


class Channel:
    """An open file of the device."""

    def __init__(self, flags=os.O_RDWR | os.O_CLOEXEC):
        self.file = os.open("/dev/infiniband/rdma_cm", flags)

    def write(self, command, payload, out=0):
        return os.write(self.file, struct.pack("=IHH", command, len(payload), out) + payload)

    def create(self, uid=1):
        response = ctypes.create_string_buffer(4)
        self.write(CREATE_ID, struct.pack("=QQHB5x", uid, ctypes.addressof(response), PS_TCP, 0), 4)
        return struct.unpack("=I", response.raw)[0]

    def destroy(self, number):
        response = ctypes.create_string_buffer(4)
        self.write(DESTROY_ID, struct.pack("=QI4x", ctypes.addressof(response), number), 4)

    def bind(self, number, ip):
        self.write(BIND, struct.pack("=IHH128s", number, 16, 0, address_of(ip)))

    def listen(self, number):
        self.write(LISTEN, struct.pack("=II", number, 4))

    def resolve(self, number, ip):
        self.write(RESOLVE_ADDR, struct.pack("=IIHHI128s128s", number, 2000, 0, 16, 0, b"",
                                             address_of(ip)))

    def event(self):
        """The number of the event, and the uid of its id."""
        response = ctypes.create_string_buffer(EVENT_BYTES)
        self.write(GET_EVENT, struct.pack("=Q", ctypes.addressof(response)), EVENT_BYTES)
        uid, _, event = struct.unpack_from("=QII", response.raw)
        return event, uid

    def is_readable(self, timeout_ms=0):
        look = select.poll()
        look.register(self.file, select.POLLIN)
        return bool(look.poll(timeout_ms))

    def close(self):
        os.close(self.file)


class Device(unittest.TestCase):
    def setUp(self):
        self.channel = Channel()
        self.addCleanup(lambda: self.channel.close())

    def refused(self, number, call, *arguments):
        with self.assertRaises(OSError) as caught:
            call(*arguments)
        self.assertEqual(errno.errorcode[caught.exception.errno], errno.errorcode[number])

    def resolved(self, channel=None):
        channel = channel or self.channel
        number = channel.create(uid=7)
        channel.resolve(number, "127.77.0.1")
        return number

    def test_is_a_character_device_in_every_look(self):
        copy = os.dup(self.channel.file)
        for file in (self.channel.file, copy, fcntl.fcntl(copy, fcntl.F_DUPFD, 100)):
            self.assertTrue(stat.S_ISCHR(os.fstat(file).st_mode))
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/infiniband/rdma_cm").st_mode))

    def test_is_readable_exactly_while_an_event_waits(self):
        self.assertFalse(self.channel.is_readable())
        for _ in range(2):
            self.resolved()
        self.assertTrue(self.channel.is_readable())
        self.assertEqual(self.channel.event(), (ADDR_RESOLVED, 7))
        self.assertTrue(self.channel.is_readable())
        self.assertEqual(self.channel.event(), (ADDR_RESOLVED, 7))
        self.assertFalse(self.channel.is_readable())
        number = self.resolved()
        self.assertEqual(select.select([self.channel.file], [], [], 0)[0], [self.channel.file])
        self.channel.destroy(number)
        self.assertFalse(self.channel.is_readable(), "its events go with an id")

    def test_an_event_wakes_a_thread_that_waits_for_it(self):
        found = []
        waiter = threading.Thread(target=lambda: found.append(self.channel.event()))
        waiter.start()
        self.resolved()
        waiter.join()
        self.assertEqual(found, [(ADDR_RESOLVED, 7)])

    def test_does_not_wait_if_it_is_not_to_block(self):
        os.set_blocking(self.channel.file, False)
        self.refused(errno.EAGAIN, self.channel.event)
        self.resolved()
        self.assertEqual(self.channel.event(), (ADDR_RESOLVED, 7))

    def test_a_signal_interrupts_the_wait_unless_it_restarts(self):
        class Rang(Exception):
            pass

        def ring_until_heard():  # a signal that comes before the wait interrupts nothing
            signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)

        def ring(*_):
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise Rang

        signal.signal(signal.SIGALRM, ring)
        ring_until_heard()
        self.assertRaises(Rang, self.channel.event)
        rings = []

        def resolve_once(*_):
            signal.setitimer(signal.ITIMER_REAL, 0)
            if not rings:
                rings.append(self.resolved())

        signal.signal(signal.SIGALRM, resolve_once)
        signal.siginterrupt(signal.SIGALRM, True)
        ring_until_heard()
        self.assertEqual(self.channel.event(), (ADDR_RESOLVED, 7))
        self.assertEqual(len(rings), 1)

    def test_bad_addresses_are_refused(self):
        self.refused(errno.EFAULT, self.channel.write, GET_EVENT, b"1234",
                     EVENT_BYTES)
        self.resolved()
        self.refused(errno.EFAULT, self.channel.write, GET_EVENT, struct.pack("=Q", 8), EVENT_BYTES)
        libc = ctypes.CDLL(None, use_errno=True)
        self.assertEqual(libc.write(self.channel.file, ctypes.c_void_p(8), 24), -1)
        self.assertEqual(ctypes.get_errno(), errno.EFAULT)
        number = self.channel.create()
        option = struct.pack("=QIIII", 8, number, 0, 0, 1)
        self.refused(errno.EFAULT, self.channel.write, SET_OPTION, option)
        self.refused(errno.EINVAL, os.write, self.channel.file, b"123")
        self.refused(errno.EINVAL, os.read, self.channel.file, 8)

    def test_an_option_is_read_from_the_memory_of_the_program(self):
        number = self.channel.create()
        value = ctypes.c_int(1)
        option = struct.pack("=QIIII", ctypes.addressof(value), number, 0, 1, 4)
        self.assertEqual(self.channel.write(SET_OPTION, option), 8 + len(option))

    def test_an_id_moves_to_another_file(self):
        other = Channel()
        self.addCleanup(other.close)
        number = self.resolved()
        response = ctypes.create_string_buffer(4)

        def migrate(file):
            other.write(MIGRATE_ID, struct.pack("=QII", ctypes.addressof(response), number, file), 4)

        with open("/dev/null", "rb") as none:
            self.refused(errno.EINVAL, migrate, none.fileno())
        self.refused(errno.ENOENT, migrate, 999)
        migrate(os.dup(self.channel.file))
        self.assertFalse(self.channel.is_readable())
        self.assertEqual(other.event(), (ADDR_RESOLVED, 7))
        self.refused(errno.EINVAL, self.channel.bind, number, "127.77.0.0")

    def test_threads_write_at_once(self):
        def work():
            for _ in range(50):
                self.channel.destroy(self.channel.create())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.channel.create(), 0, "all others are gone")

    def test_parent_and_child_share_a_file(self):
        child = os.fork()
        if child == 0:
            try:
                for _ in range(50):
                    self.channel.destroy(self.channel.create())
                self.resolved()
            finally:
                os._exit(0)
        for _ in range(50):
            self.channel.destroy(self.channel.create())
        self.assertEqual(self.channel.event(), (ADDR_RESOLVED, 7))
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_ids_end_with_the_last_descriptor(self):
        def bound(channel):
            channel.bind(channel.create(), "127.77.0.0")

        first = Channel()
        bound(first)
        copy = os.dup(first.file)
        first.close()
        self.refused(errno.EADDRINUSE, bound, self.channel)
        os.close(copy)
        bound(self.channel)

    def test_ids_end_with_their_process(self):
        ready, tell = os.pipe()
        child = os.fork()
        if child == 0:
            own = Channel()
            own.bind(own.create(), "127.77.0.0")
            os.write(tell, b"1")
            signal.pause()
        os.read(ready, 1)
        self.refused(errno.EADDRINUSE, self.channel.bind, self.channel.create(), "127.77.0.0")
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        self.channel.bind(self.channel.create(), "127.77.0.0")

    def test_another_file_at_the_same_number_is_another_file(self):
        number = self.channel.file
        read_end, write_end = os.pipe()
        self.channel.close()
        os.dup2(write_end, number)
        self.assertEqual(os.write(number, b"text"), 4)
        self.assertEqual(os.read(read_end, 9), b"text")
        self.assertTrue(stat.S_ISFIFO(os.fstat(number).st_mode))
        self.channel = Channel()


class WorldEnds(unittest.TestCase):
    def test_commands_and_waits_end_with_an_error(self):
        channel = Channel()
        server = int(os.environ["SERVER_PROCESS"])
        threading.Thread(target=lambda: (time.sleep(0.1), os.kill(server, signal.SIGKILL))).start()
        with self.assertRaises(OSError) as caught:
            channel.event()
        self.assertEqual(caught.exception.errno, errno.EIO)
        self.assertRaises(OSError, channel.create)
        self.assertTrue(channel.is_readable(1000), "poll ends, too")


def run_outside(schedule):
    """Starts a world; runs the tests in it."""
    simverbs = os.environ["SIMVERBS"]
    with tempfile.TemporaryDirectory() as folder:
        world = f"{folder}/worlds/w.sock"
        words = [simverbs, "up", "pair", "--foreground", "--schedule", schedule, "--world", world]
        with subprocess.Popen(words, stderr=subprocess.DEVNULL) as server:
            while subprocess.run([simverbs, "status", "--world", world],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 check=False).returncode != 0:
                time.sleep(0.05)
            status = subprocess.run(
                [simverbs, "on", "--world", world, "h0", sys.executable, "-B", __file__],
                env=dict(os.environ, SERVER_PROCESS=str(server.pid)), check=False).returncode
            server.kill()
    return status


if __name__ == "__main__":
    if sys.argv[1:2] == ["outside"]:
        sys.exit(run_outside(sys.argv[2]))
    unittest.main()
