"""Lesson 5: one-sided operations. h1 keeps a table of numbers; h0 reads it, adds it up, writes the
sum behind it, and tells h1 that it is there. h1's program does nothing until then."""

import socket
import struct

import lab
import pyverbs.enums as e

NUMBERS = 8
BYTES_OF_ONE = 8
TICKET = 4711

h0, h1 = lab.Host(0), lab.Host(1)
lab.prepare(h0, h1)
table = struct.pack(f"={NUMBERS}Q", *(100 * (i + 1) for i in range(NUMBERS)))
h1.mr.write(table, len(table))
# What h1 told h0 beforehand: where the table is, and the key that opens it. The sum lies behind the
# numbers.
table_address, table_rkey = h1.mr.buf, h1.mr.rkey


def carry_out(wr):
    h0.qp.post_send(wr)
    lab.wait_success(h0.cq)


def read_and_add():
    wr = lab.request(h0.sge(0, NUMBERS * BYTES_OF_ONE), e.IBV_WR_RDMA_READ)
    wr.set_wr_rdma(table_rkey, table_address)
    carry_out(wr)
    return sum(struct.unpack(f"={NUMBERS}Q", h0.mr.read(NUMBERS * BYTES_OF_ONE, 0)))


def write_sum(total):
    h0.mr.write(struct.pack("=Q", total), BYTES_OF_ONE)
    wr = lab.request(h0.sge(0, BYTES_OF_ONE), e.IBV_WR_RDMA_WRITE)
    wr.set_wr_rdma(table_rkey, table_address + NUMBERS * BYTES_OF_ONE)
    carry_out(wr)


def tell():
    wr = lab.request(h0.sge(512, 8), e.IBV_WR_RDMA_WRITE_WITH_IMM)
    wr.imm_data = socket.htonl(TICKET)
    wr.set_wr_rdma(table_rkey, table_address + 512)
    carry_out(wr)


h1.qp.post_recv(lab.receive(h1.sge(1024, 8)))
lab.join(h0, h1)
total = read_and_add()
print("h0 adds up:", total)
write_sum(total)
tell()

completion = lab.wait_success(h1.cq)
print("ticket", socket.ntohl(completion.imm_data))
found = struct.unpack("=Q", h1.mr.read(BYTES_OF_ONE, NUMBERS * BYTES_OF_ONE))[0]
print("h1 finds:", found)
h0.close()
h1.close()
