"""Lesson 3: bring a queue pair from RESET to RTS by hand, at both ends, and send a greeting."""

from collections import namedtuple

import lab
import pyverbs.enums as e
from pyverbs.addr import AHAttr
from pyverbs.qp import QPAttr

# What one end has to know of the other. Two programs would send it over a socket.
Address = namedtuple("Address", "lid qpn psn")


def to_init(host):
    attr = QPAttr(qp_state=e.IBV_QPS_INIT, port_num=1)
    attr.pkey_index = 0
    attr.qp_access_flags = 0
    host.qp.modify(
        attr, e.IBV_QP_STATE | e.IBV_QP_PKEY_INDEX | e.IBV_QP_PORT | e.IBV_QP_ACCESS_FLAGS
    )


def post_receive(host):
    host.qp.post_recv(lab.receive(host.sge(0, 64)))


def to_rtr(host, peer):
    attr = QPAttr(qp_state=e.IBV_QPS_RTR, port_num=1)
    attr.ah_attr = AHAttr(dlid=peer.lid, port_num=1)
    attr.dest_qp_num = peer.qpn
    attr.rq_psn = peer.psn
    attr.path_mtu = e.IBV_MTU_1024
    attr.max_dest_rd_atomic = 1
    attr.min_rnr_timer = 12
    host.qp.modify(
        attr,
        e.IBV_QP_STATE
        | e.IBV_QP_AV
        | e.IBV_QP_DEST_QPN
        | e.IBV_QP_RQ_PSN
        | e.IBV_QP_PATH_MTU
        | e.IBV_QP_MAX_DEST_RD_ATOMIC
        | e.IBV_QP_MIN_RNR_TIMER,
    )


def to_rts(host, own):
    attr = QPAttr(qp_state=e.IBV_QPS_RTS, port_num=1)
    attr.sq_psn = own.psn
    attr.timeout = 14
    attr.retry_cnt = attr.rnr_retry = 7
    attr.max_rd_atomic = 1
    host.qp.modify(
        attr,
        e.IBV_QP_STATE
        | e.IBV_QP_SQ_PSN
        | e.IBV_QP_TIMEOUT
        | e.IBV_QP_RETRY_CNT
        | e.IBV_QP_RNR_RETRY
        | e.IBV_QP_MAX_QP_RD_ATOMIC,
    )


def greet(sender, receiver, words):
    sender.mr.write(words.ljust(64, "\0").encode(), 64, 64)
    sender.qp.post_send(lab.request(sender.sge(64, 64)))
    lab.wait_success(sender.cq)
    lab.wait_success(receiver.cq)
    print("it says:", receiver.mr.read(64, 0).rstrip(b"\0").decode())


h0, h1 = lab.Host(0), lab.Host(1)
h0.create_qp()
h1.create_qp()
of_h0 = Address(h0.port.lid, h0.qp.qp_num, 1000)
of_h1 = Address(h1.port.lid, h1.qp.qp_num, 2000)

for end in (h0, h1):
    to_init(end)
    post_receive(end)
to_rtr(h0, of_h1)
to_rtr(h1, of_h0)
to_rts(h0, of_h0)
to_rts(h1, of_h1)

lab.must(h0.qp.qp_state == e.IBV_QPS_RTS, "a queue pair in RTS")
greet(h0, h1, "hello from h0")
greet(h1, h0, "hello from h1")
h0.close()
h1.close()
