"""Tests each kind of object by Debian's pyverbs, on two hosts of an embedded world.

    LD_LIBRARY_PATH=build/dev/lib /usr/bin/python3 objects.py Objects.test_srq
"""

import unittest

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr
from pyverbs.cq import CQ, CQEX, CqInitAttrEx, PollCqAttr
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR, MW, MWBindInfo
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr, QPInitAttrEx
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr, SrqInitAttrEx
from pyverbs.wr import SGE, RecvWR, SendWR
from pyverbs.xrcd import XRCD, XRCDInitAttr

BYTES = 4096
MESSAGE = b"from one host to the other"
GRH_BYTES = 40
QKEY = 0x11111111
POLLS = 1000000
ACCESS = (
    e.IBV_ACCESS_LOCAL_WRITE
    | e.IBV_ACCESS_REMOTE_WRITE
    | e.IBV_ACCESS_REMOTE_READ
    | e.IBV_ACCESS_MW_BIND
)


class End:
    """A device with one of everything; `qp` is for the test to make."""

    def __init__(self, index):
        self.context = Context(name=get_device_list()[index].name.decode())
        self.port = self.context.query_port(1)
        self.pd = PD(self.context)
        self.mr = MR(self.pd, BYTES, ACCESS)
        self.cq = CQ(self.context, 16)
        self.qp = None

    def cap(self):
        return QPCap(max_send_wr=8, max_recv_wr=8, max_send_sge=1, max_recv_sge=1)

    def make_qp(self, kind, srq=None, cq=None):
        cq = cq or self.cq
        init = QPInitAttr(
            qp_type=kind, scq=cq, rcq=cq, srq=srq, cap=self.cap(), sq_sig_all=1
        )
        self.qp = QP(self.pd, init)

    def path_to(self, peer):
        return AHAttr(dlid=peer.port.lid, port_num=1, is_global=0)

    def connect(self, peer, qp, peer_qpn):
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = ACCESS & ~(e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_MW_BIND)
        attr.dest_qp_num = peer_qpn
        attr.path_mtu = e.IBV_MTU_1024
        attr.ah_attr = self.path_to(peer)
        attr.max_dest_rd_atomic = attr.max_rd_atomic = 1
        attr.min_rnr_timer = 12
        attr.timeout = 14
        attr.retry_cnt = attr.rnr_retry = 7
        qp.to_rts(attr)

    def sge(self, length, offset=0):
        return SGE(self.mr.buf + offset, length, self.mr.lkey)

    def receive(self, length=BYTES):
        return RecvWR(wr_id=7, num_sge=1, sg=[self.sge(length)])

    def wait(self):
        for _ in range(POLLS):
            count, completions = self.cq.poll(1)
            if count:
                return completions[0]
        raise AssertionError("no completion came")


class Objects(unittest.TestCase):
    def setUp(self):
        self.a, self.b = End(0), End(1)

    def connect(self):
        self.a.connect(self.b, self.a.qp, self.b.qp.qp_num)
        self.b.connect(self.a, self.b.qp, self.a.qp.qp_num)

    def send(self, **what):
        self.a.mr.write(MESSAGE, len(MESSAGE))
        wr = SendWR(num_sge=1, sg=[self.a.sge(len(MESSAGE))], opcode=e.IBV_WR_SEND)
        if "ah" in what:
            wr.set_wr_ud(what["ah"], self.b.qp.qp_num, QKEY)
        if "srqn" in what:
            wr.set_qp_type_xrc(what["srqn"])
        self.a.qp.post_send(wr)

    def assert_succeeds(self, end):
        completion = end.wait()
        self.assertEqual(completion.status, e.IBV_WC_SUCCESS)
        return completion

    def assert_arrived(self, offset=0):
        self.assert_succeeds(self.a)
        self.assert_succeeds(self.b)
        self.assertEqual(self.b.mr.read(len(MESSAGE), offset), MESSAGE)

    def test_device(self):
        self.assertGreater(self.a.context.query_device().max_qp, 0)
        self.assertEqual(self.a.port.state, e.IBV_PORT_ACTIVE)
        self.assertNotEqual(self.a.port.lid, self.b.port.lid)
        gids = [str(end.context.query_gid(1, 0)) for end in (self.a, self.b)]
        self.assertNotEqual(*gids)

    def test_pd(self):
        PD(self.a.context).close()

    def test_mr(self):
        self.assertNotEqual(self.a.mr.lkey, 0)
        with self.assertRaises(PyverbsRDMAError, msg="remote write needs local write"):
            MR(self.a.pd, BYTES, e.IBV_ACCESS_REMOTE_WRITE)

    def test_cq(self):
        self.assertEqual(self.a.cq.poll(1)[0], 0)
        self.a.cq.resize(100)

    def test_qp(self):
        self.a.make_qp(e.IBV_QPT_RC)
        self.b.make_qp(e.IBV_QPT_RC)
        self.connect()
        self.assertEqual(self.a.qp.query(e.IBV_QP_STATE)[0].qp_state, e.IBV_QPS_RTS)
        self.b.qp.post_recv(self.b.receive())
        self.send()
        self.assert_arrived()

    def test_ah(self):
        for end in (self.a, self.b):
            end.make_qp(e.IBV_QPT_UD)
            attr = QPAttr(port_num=1)
            attr.qkey = QKEY
            end.qp.to_rts(attr)
        self.b.qp.post_recv(self.b.receive())
        self.send(ah=AH(self.a.pd, attr=self.a.path_to(self.b)))
        self.assert_arrived(GRH_BYTES)

    def test_srq(self):
        srq = SRQ(self.b.pd, SrqInitAttr(SrqAttr(max_wr=4, max_sge=1)))
        self.a.make_qp(e.IBV_QPT_RC)
        self.b.make_qp(e.IBV_QPT_RC, srq)
        self.connect()
        srq.post_recv(self.b.receive())
        self.send()
        self.assert_arrived()

    def test_mw(self):
        self.a.make_qp(e.IBV_QPT_RC)
        self.b.make_qp(e.IBV_QPT_RC)
        self.connect()
        window = MW(self.b.pd, e.IBV_MW_TYPE_2)
        bind = SendWR(opcode=e.IBV_WR_BIND_MW)
        info = MWBindInfo(self.b.mr, self.b.mr.buf, 64, e.IBV_ACCESS_REMOTE_WRITE)
        bind.set_bind_wr(window, info)
        rkey = bind.rkey  # the window's next
        self.b.qp.post_send(bind)
        self.assertEqual(self.assert_succeeds(self.b).opcode, e.IBV_WC_BIND_MW)
        self.a.mr.write(MESSAGE, len(MESSAGE))
        wr = SendWR(num_sge=1, sg=[self.a.sge(len(MESSAGE))], opcode=e.IBV_WR_RDMA_WRITE)
        wr.set_wr_rdma(rkey, self.b.mr.buf)
        self.a.qp.post_send(wr)
        self.assert_succeeds(self.a)
        self.assertEqual(self.b.mr.read(len(MESSAGE), 0), MESSAGE)

    def test_xrc(self):
        mask = e.IBV_XRCD_INIT_ATTR_FD | e.IBV_XRCD_INIT_ATTR_OFLAGS
        domain = XRCD(self.b.context, XRCDInitAttr(mask, 0o100, -1))  # O_CREAT, no file
        of_queue = SrqInitAttrEx(max_wr=4, max_sge=1)
        of_queue.srq_type = e.IBV_SRQT_XRC
        of_queue.pd, of_queue.xrcd, of_queue.cq = self.b.pd, domain, self.b.cq
        of_queue.comp_mask = (
            e.IBV_SRQ_INIT_ATTR_TYPE
            | e.IBV_SRQ_INIT_ATTR_PD
            | e.IBV_SRQ_INIT_ATTR_CQ
            | e.IBV_SRQ_INIT_ATTR_XRCD
        )
        srq = SRQ(self.b.context, of_queue)
        target = QPInitAttrEx(
            qp_type=e.IBV_QPT_XRC_RECV, comp_mask=e.IBV_QP_INIT_ATTR_XRCD, xrcd=domain
        )
        self.b.qp = QP(self.b.context, target)
        initiator = QPInitAttrEx(
            qp_type=e.IBV_QPT_XRC_SEND,
            comp_mask=e.IBV_QP_INIT_ATTR_PD,
            pd=self.a.pd,
            scq=self.a.cq,
            cap=QPCap(max_send_wr=8, max_recv_wr=0, max_send_sge=1, max_recv_sge=0),
            sq_sig_all=1,
        )
        self.a.qp = QP(self.a.context, initiator)
        self.connect()
        srq.post_recv(self.b.receive())
        self.send(srqn=srq.get_srq_num())
        self.assert_arrived()
        for each in (self.b.qp, srq, domain):  # in the order in which they hold one another
            each.close()

    def test_extended_cq(self):
        wanted = e.IBV_WC_EX_WITH_BYTE_LEN | e.IBV_WC_EX_WITH_COMPLETION_TIMESTAMP
        cq = CQEX(self.b.context, CqInitAttrEx(cqe=16, wc_flags=wanted))
        self.a.make_qp(e.IBV_QPT_RC)
        self.b.make_qp(e.IBV_QPT_RC, cq=cq)
        self.connect()
        self.b.qp.post_recv(self.b.receive())
        self.send()
        self.assert_succeeds(self.a)
        self.assertEqual(cq.start_poll(PollCqAttr()), 0)
        self.assertEqual((cq.status, cq.wr_id), (e.IBV_WC_SUCCESS, 7))
        self.assertEqual(cq.read_byte_len(), len(MESSAGE))
        self.assertGreater(cq.read_timestamp(), 0)
        cq.end_poll()


if __name__ == "__main__":
    unittest.main()
