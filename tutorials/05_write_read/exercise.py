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
    # YOUR TURN 1: READ the NUMBERS numbers into the beginning of h0's memory: lab.request(sge,
    # e.IBV_WR_RDMA_READ), then wr.set_wr_rdma(rkey, address) and carry_out(). Only then add them
    # up.
    return sum(struct.unpack(f"={NUMBERS}Q", h0.mr.read(NUMBERS * BYTES_OF_ONE, 0)))


def write_sum(total):
    h0.mr.write(struct.pack("=Q", total), BYTES_OF_ONE)
    # YOUR TURN 2: WRITE the sum to its place behind the numbers (e.IBV_WR_RDMA_WRITE).


def tell():
    # YOUR TURN 4: tell h1 with a WRITE with immediate data: opcode e.IBV_WR_RDMA_WRITE_WITH_IMM,
    # and wr.imm_data = socket.htonl(TICKET). It takes a receive at h1. pyverbs wants an element;
    # write 8 bytes where nobody looks, from offset 512 to table_address + 512.
    pass


# YOUR TURN 3: post the receive at h1 that the notification takes. It needs no memory, but
# pyverbs wants an element: lab.receive(h1.sge(1024, 8)).
lab.join(h0, h1)
total = read_and_add()
print("h0 adds up:", total)
write_sum(total)
tell()

# YOUR TURN 5: wait for h1's completion, and print the immediate data, "ticket 4711":
# socket.ntohl() of completion.imm_data. Then the sum stands in the table.
found = struct.unpack("=Q", h1.mr.read(BYTES_OF_ONE, NUMBERS * BYTES_OF_ONE))[0]
print("h1 finds:", found)
h0.close()
h1.close()
