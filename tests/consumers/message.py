#!/usr/bin/python3
"""message.py ADDRESS [client]: uses unmodified pyverbs.cmid. The client connects and sends a
message, which the server sends back. Both check every byte."""

import sys

import pyverbs.cm_enums as ce
from pyverbs.cmid import CMID, AddrInfo
from pyverbs.qp import QPCap, QPInitAttr

PORT = "7011"
BYTES = 4096
MESSAGE = bytes(at * 7 % 251 for at in range(BYTES))


def receive(cmid, memory):
    completion = cmid.get_recv_comp()
    assert completion is not None and completion.byte_len == BYTES, completion
    assert memory.read(BYTES, 0) == MESSAGE, "the message differs"


def send(cmid, memory):
    cmid.post_send(memory, 0, BYTES)
    assert cmid.get_send_comp() is not None


def serve(address):
    info = AddrInfo(src=address, src_service=PORT, port_space=ce.RDMA_PS_TCP, flags=ce.RAI_PASSIVE)
    with CMID(creator=info, qp_init_attr=attributes()) as listener:
        listener.listen()
        print("listening", flush=True)
        cmid = listener.get_request()
        memory = cmid.reg_msgs(BYTES)
        cmid.post_recv(memory, BYTES)
        cmid.accept()
        receive(cmid, memory)
        send(cmid, memory)
        cmid.disconnect()
        memory.close()
        cmid.close()


def ask(address):
    info = AddrInfo(dst=address, dst_service=PORT, port_space=ce.RDMA_PS_TCP)
    with CMID(creator=info, qp_init_attr=attributes()) as cmid:
        memory, answer = cmid.reg_msgs(BYTES), cmid.reg_msgs(BYTES)
        memory.write(MESSAGE, BYTES)
        cmid.post_recv(answer, BYTES)
        cmid.connect()
        send(cmid, memory)
        receive(cmid, answer)
        cmid.disconnect()
        memory.close()
        answer.close()


def attributes():
    return QPInitAttr(cap=QPCap(max_send_wr=1, max_recv_wr=1))


if len(sys.argv) > 2:
    ask(sys.argv[1])
else:
    serve(sys.argv[1])
print("every byte as expected")
