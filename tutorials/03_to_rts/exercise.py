"""Lesson 3: bring a queue pair from RESET to RTS by hand, at both ends, and send a greeting."""

from collections import namedtuple

import lab
import pyverbs.enums as e
from pyverbs.addr import AHAttr
from pyverbs.qp import QPAttr

# What one end has to know of the other. Two programs would send it over a socket.
Address = namedtuple("Address", "lid qpn psn")


def to_init(host):
    # YOUR TURN 1: to INIT: a QPAttr with qp_state, pkey_index (0), port_num (1) and
    # qp_access_flags (0), and host.qp.modify(attr, mask). For each attribute there is a bit in
    # the mask: e.IBV_QP_STATE, e.IBV_QP_PKEY_INDEX, e.IBV_QP_PORT, e.IBV_QP_ACCESS_FLAGS.
    pass


def post_receive(host):
    host.qp.post_recv(lab.receive(host.sge(0, 64)))


def to_rtr(host, peer):
    # YOUR TURN 2: to RTR. ah_attr is AHAttr(dlid=peer.lid, port_num=1); dest_qp_num, rq_psn (the
    # peer's PSN), path_mtu (e.IBV_MTU_1024), max_dest_rd_atomic (1), min_rnr_timer (12). The
    # bits: IBV_QP_AV for ah_attr, IBV_QP_DEST_QPN, IBV_QP_RQ_PSN, IBV_QP_PATH_MTU,
    # IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER, and IBV_QP_STATE.
    pass


def to_rts(host, own):
    # YOUR TURN 3: to RTS: sq_psn (the own PSN), timeout (14), retry_cnt (7), rnr_retry (7),
    # max_rd_atomic (1). The bits: IBV_QP_SQ_PSN, IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT,
    # IBV_QP_RNR_RETRY, IBV_QP_MAX_QP_RD_ATOMIC, and IBV_QP_STATE.
    pass


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

# YOUR TURN 4: call the functions above for both ends, in the right order: to_init(),
# post_receive(), to_rtr(), to_rts(). Whose address does each get?
to_init(h0)
to_rtr(h0, of_h1)
to_rts(h0, of_h0)

lab.must(h0.qp.qp_state == e.IBV_QPS_RTS, "a queue pair in RTS")
greet(h0, h1, "hello from h0")
greet(h1, h0, "hello from h1")
h0.close()
h1.close()
