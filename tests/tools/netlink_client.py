"""Sends valid and invalid requests on a NETLINK_RDMA socket, with the numbers of
<rdma/rdma_netlink.h>."""

import os
import socket
import stat
import struct

NETLINK_RDMA = 20
NLDEV = 5 << 10
GET, SET, PORT_GET, SYS_GET, GET_CHARDEV = 1, 2, 5, 6, 15
REQUEST, ACK, DUMP = 1, 4, 0x300
ERROR, DONE = 2, 3
DEV_INDEX, DEV_NAME, PORT_INDEX = 1, 2, 3
CHARDEV_TYPE, CHARDEV_NAME, CHARDEV = 69, 70, 72


def attribute(number, value):
    text = struct.pack("HH", 4 + len(value), number) + value
    return text + bytes(-len(text) % 4)


def u32(number, value):
    return attribute(number, struct.pack("I", value))


def request(command, flags, *attributes, sequence=7):
    body = b"".join(attributes)
    return struct.pack("IHHII", 16 + len(body), NLDEV + command, REQUEST | flags, sequence, 0) + body


def receive(link):
    text, sender = link.recvfrom(65536)
    assert sender == (0, 0), sender
    length, kind, flags, sequence, port = struct.unpack_from("IHHII", text)
    assert length == len(text), (length, len(text))
    return kind, sequence, port, text[16:]


def attributes_of(body):
    found = {}
    while len(body) >= 4:
        length, number = struct.unpack_from("HH", body)
        found[number & 0x3FFF] = body[4:length]
        body = body[length + -length % 4 :]
    return found


def error_of(link):
    kind, _, _, body = receive(link)
    assert kind == ERROR, kind
    return -struct.unpack_from("i", body)[0]


def main():
    link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_RDMA)
    link.settimeout(30)
    link.bind((0, 0))
    port = link.getsockname()[0]
    assert port == os.getpid(), port

    # A request for one device, with an acknowledgment.
    link.send(request(GET, ACK, u32(DEV_INDEX, 0)))
    kind, sequence, to, body = receive(link)
    assert (kind, sequence) == (NLDEV + GET, 7), (kind, sequence)
    assert attributes_of(body)[DEV_NAME] == b"simverbs0\0", body
    assert error_of(link) == 0
    # To the port of the socket, whatever the request says.
    link.sendto(request(GET, 0, u32(DEV_INDEX, 0)), (0, 0))
    assert receive(link)[2] == port

    # All of them, with an end; two requests in one write.
    link.send(request(GET, DUMP) + request(PORT_GET, DUMP, u32(DEV_INDEX, 0), sequence=8))
    kinds = [receive(link)[:2] for _ in range(4)]
    assert kinds == [(NLDEV + GET, 7), (DONE, 7), (NLDEV + PORT_GET, 8), (DONE, 8)], kinds

    # The number of a device is that of its file.
    link.send(request(GET_CHARDEV, 0, attribute(CHARDEV_TYPE, b"rdma_cm\0")))
    body = attributes_of(receive(link)[3])
    number = struct.unpack("Q", body[CHARDEV])[0]
    about = os.stat("/dev/infiniband/" + body[CHARDEV_NAME].rstrip(b"\0").decode())
    assert stat.S_ISCHR(about.st_mode) and about.st_rdev == number, (about.st_rdev, number)
    with open("/dev/infiniband/rdma_cm", "r+b", buffering=0) as device:
        assert os.fstat(device.fileno()).st_rdev == number

    # Refusals name an errno: EINVAL, EOPNOTSUPP, ENODATA.
    for expected, wrong in (
        (22, request(GET, 0)),
        (22, request(GET, 0, u32(DEV_INDEX, 5))),
        (22, request(GET, 0, attribute(DEV_INDEX, b"\0"))),
        (22, request(PORT_GET, 0, u32(DEV_INDEX, 0), u32(PORT_INDEX, 9))),
        (22, request(200, 0)),
        (22, struct.pack("IHHII", 16, (2 << 10) + 1, REQUEST, 7, 0)),
        (95, request(SET, 0, u32(DEV_INDEX, 0), attribute(DEV_NAME, b"x\0"))),
        (61, request(GET_CHARDEV, 0, attribute(CHARDEV_TYPE, b"umad\0"))),
    ):
        link.send(wrong)
        found = error_of(link)
        assert found == expected, (found, expected, wrong)

    # Messages that are too short, or give a wrong length, get no answer and do no harm.
    link.send(b"\1\2\3")
    link.send(struct.pack("IHHII", 4000, NLDEV + GET, REQUEST, 7, 0))
    link.send(struct.pack("IHHII", 3, NLDEV + GET, REQUEST, 7, 0))
    link.send(struct.pack("IHHII", 16, NLDEV + GET, 0, 7, 0))  # no request
    link.send(request(GET, ACK, struct.pack("HH", 60000, DEV_INDEX), sequence=9))
    assert error_of(link) == 22
    link.send(request(SYS_GET, 0, sequence=10))
    assert receive(link)[1] == 10

    link.setsockopt(270, 10, 1)  # SOL_NETLINK, NETLINK_CAP_ACK
    copy = link.dup()
    link.close()
    copy.send(request(SYS_GET, 0, sequence=11))
    assert receive(copy)[1] == 11
    other = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    other.bind((0, 0))  # the kernel's own
    print("all as expected")


main()
