"""Messages for all who have subscribed, over unreliable datagrams. The publisher keeps what it has
sent in memory; a subscriber that misses a message reads it from there by RDMA READ. Plain pyverbs;
connecting the queue pairs for the READs is left to the caller."""

import struct
import zlib
from dataclasses import dataclass

import pyverbs.enums as e
from pyverbs.addr import AH
from pyverbs.cq import CQ
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

QKEY = 0x11111111
GRH_BYTES = 40  # a device writes this header before each datagram
SLOT_BYTES = 256
HEADER = struct.Struct("<QII")  # the message's number from 1 on, its length, CRC of what follows
TEXT_BYTES = SLOT_BYTES - HEADER.size
DEPTH = 64


@dataclass(frozen=True)
class Place:
    """Where a publisher keeps its messages: subscribers get it by whatever connects them."""

    address: int
    rkey: int
    slots: int


def _pack(number, text):
    if len(text) > TEXT_BYTES:
        raise ValueError(f"a message has at most {TEXT_BYTES} bytes, not {len(text)}")
    return HEADER.pack(number, len(text), zlib.crc32(text)) + text.ljust(TEXT_BYTES, b"\0")


def _unpack(slot):
    """(number, text), or (0, b"") of a slot that was written while it was read."""
    number, length, crc = HEADER.unpack_from(slot)
    text = slot[HEADER.size : HEADER.size + length]
    return (number, text) if zlib.crc32(text) == crc else (0, b"")


def _make_qp(pd, cq, kind):
    cap = QPCap(max_send_wr=DEPTH, max_recv_wr=DEPTH, max_send_sge=1, max_recv_sge=1)
    return QP(pd, QPInitAttr(qp_type=kind, scq=cq, rcq=cq, cap=cap, sq_sig_all=1))


def _make_datagram_qp(pd, cq, port):
    qp = _make_qp(pd, cq, e.IBV_QPT_UD)
    attr = QPAttr(port_num=port)
    attr.qkey = QKEY
    qp.to_rts(attr)
    return qp


def _wait_for_one(cq):
    count = 0
    while count == 0:
        count, completions = cq.poll(1)
    _require_success(completions[0])


def _require_success(completion):
    if completion.status != e.IBV_WC_SUCCESS:
        raise ConnectionError(f"completion with status {completion.status}")


class Publisher:
    """Sends messages to subscribers, and keeps the last `slots` of them."""

    def __init__(self, context, slots=32, port=1):
        self._pd = PD(context)
        self._cq = CQ(context, 2 * DEPTH)
        self._slots = slots
        rights = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_READ
        self._mr = MR(self._pd, slots * SLOT_BYTES, rights)
        self._qp = _make_datagram_qp(self._pd, self._cq, port)
        self._last = 0
        self._subscribers = []  # address handle, queue pair number, reader

    @property
    def place(self):
        return Place(self._mr.buf, self._mr.rkey, self._slots)

    def add_subscriber(self, address, qp_num):
        """Sends to that queue pair from now on; `address` is the AHAttr of its port. Returns a
        queue pair by which the subscriber reads: connect it with IBV_ACCESS_REMOTE_READ."""
        reader = _make_qp(self._pd, self._cq, e.IBV_QPT_RC)
        self._subscribers.append((AH(self._pd, attr=address), qp_num, reader))
        return reader

    def publish(self, text):
        """Sends a message; returns its number."""
        slot = _pack(self._last + 1, text)
        self._last += 1
        self._mr.write(slot, SLOT_BYTES, self._offset())
        self.repeat()
        return self._last

    def repeat(self):
        """Sends the last message again: who has missed it notices. Call it when nothing else is
        published for a while."""
        sge = SGE(self._mr.buf + self._offset(), SLOT_BYTES, self._mr.lkey)
        for address, qp_num, _ in self._subscribers:
            request = SendWR(num_sge=1, sg=[sge], opcode=e.IBV_WR_SEND)
            request.set_wr_ud(address, qp_num, QKEY)
            self._qp.post_send(request)
            _wait_for_one(self._cq)  # the memory of the slot is the device's until then

    def _offset(self):
        return self._last % self._slots * SLOT_BYTES


class Subscriber:
    """Takes the messages of one publisher in their order, from its next one on."""

    def __init__(self, context, place, repairs=True, port=1):
        self._place = place
        self._repairs = repairs
        self._pd = PD(context)
        self._cq = CQ(context, 2 * DEPTH)
        self._read_cq = CQ(context, 1)
        self._mr = MR(self._pd, (DEPTH + 1) * (GRH_BYTES + SLOT_BYTES), e.IBV_ACCESS_LOCAL_WRITE)
        self._qp = _make_datagram_qp(self._pd, self._cq, port)
        self.reader = _make_qp(self._pd, self._read_cq, e.IBV_QPT_RC)  # to be connected
        for index in range(DEPTH):
            self._post_receive(index)
        self._expected = 0  # not known before the first message
        self.missed = []  # numbers of messages that are lost for good

    @property
    def qp_num(self):
        return self._qp.qp_num

    def poll(self):
        """The messages that have come, as pairs of number and text."""
        messages = []
        while True:
            count, completions = self._cq.poll(1)
            if count == 0:
                return messages
            _require_success(completions[0])
            index = completions[0].wr_id
            place = index * (GRH_BYTES + SLOT_BYTES) + GRH_BYTES
            number, text = _unpack(self._mr.read(SLOT_BYTES, place))
            self._post_receive(index)
            messages += self._in_order(number, text)

    def _in_order(self, number, text):
        self._expected = self._expected or number
        if number < self._expected:
            return []  # a repetition
        found = [self._read(missing) for missing in range(self._expected, number)]
        self._expected = number + 1
        return [message for message in found if message] + [(number, text)]

    def _read(self, number):
        """A message that did not come, from the publisher's memory; None where it is not there any
        more."""
        message = self._read_slot(number) if self._repairs else None
        if message is None or message[0] != number:
            self.missed.append(number)
            return None
        return message

    def _read_slot(self, number):
        landing = DEPTH * (GRH_BYTES + SLOT_BYTES)
        request = SendWR(
            num_sge=1,
            sg=[SGE(self._mr.buf + landing, SLOT_BYTES, self._mr.lkey)],
            opcode=e.IBV_WR_RDMA_READ,
        )
        slot = number % self._place.slots
        request.set_wr_rdma(self._place.rkey, self._place.address + slot * SLOT_BYTES)
        self.reader.post_send(request)
        _wait_for_one(self._read_cq)
        return _unpack(self._mr.read(SLOT_BYTES, landing))

    def _post_receive(self, index):
        size = GRH_BYTES + SLOT_BYTES
        sge = SGE(self._mr.buf + index * size, size, self._mr.lkey)
        self._qp.post_recv(RecvWR(wr_id=index, num_sge=1, sg=[sge]))
