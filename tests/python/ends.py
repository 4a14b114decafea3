"""Two hosts with a reliable connection between them, by plain pyverbs."""

from __future__ import annotations

from typing import Any

import pyverbs.enums as e
from pyverbs.addr import AHAttr
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

MESSAGE = b"from one host to the other"


class End:
    """A device with a queue pair; `connect()` brings it to RTS."""

    def __init__(self, device: str) -> None:
        self.context = Context(name=device)
        self.pd = PD(self.context)
        self.mr = MR(self.pd, 4096, e.IBV_ACCESS_LOCAL_WRITE)
        self.cq = CQ(self.context, 16)
        cap = QPCap(max_send_wr=8, max_recv_wr=8, max_send_sge=1, max_recv_sge=1)
        init = QPInitAttr(
            qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap, sq_sig_all=1
        )
        self.qp = QP(self.pd, init)

    def connect(self, peer: End, retries: int) -> None:
        attr = QPAttr(port_num=1)
        attr.dest_qp_num = peer.qp.qp_num
        attr.path_mtu = e.IBV_MTU_1024
        attr.ah_attr = AHAttr(dlid=peer.context.query_port(1).lid, port_num=1, is_global=0)
        attr.max_dest_rd_atomic = attr.max_rd_atomic = 1
        attr.min_rnr_timer = 12
        attr.timeout = 14
        attr.retry_cnt = retries
        attr.rnr_retry = 7
        self.qp.to_rts(attr)

    def sge(self) -> Any:
        return SGE(self.mr.buf, len(MESSAGE), self.mr.lkey)

    def receive(self) -> None:
        self.qp.post_recv(RecvWR(wr_id=7, num_sge=1, sg=[self.sge()]))

    def send(self) -> None:
        self.mr.write(MESSAGE, len(MESSAGE))
        self.qp.post_send(SendWR(num_sge=1, sg=[self.sge()], opcode=e.IBV_WR_SEND))

    def wait(self) -> Any:
        """The status of the next completion. Empty polls move virtual time."""
        for _ in range(1_000_000):
            count, completions = self.cq.poll(1)
            if count:
                return completions[0].status
        raise AssertionError("no completion came")

    def close(self) -> None:
        self.context.close()


def pair(retries: int = 7) -> tuple[End, End]:
    """The first two hosts, connected."""
    a, b = End("simverbs0"), End("simverbs1")
    a.connect(b, retries)
    b.connect(a, retries)
    return a, b


def exchange(a: End, b: End) -> None:
    """A message from one to the other, which arrives."""
    b.receive()
    a.send()
    assert a.wait() == e.IBV_WC_SUCCESS
    assert b.wait() == e.IBV_WC_SUCCESS
    assert b.mr.read(len(MESSAGE), 0) == MESSAGE
