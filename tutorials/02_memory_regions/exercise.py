"""Lesson 2: register memory, so that a device may touch it, and give away no more rights than it
takes. In pyverbs a region (MR) brings its memory along."""

import lab
import pyverbs.enums as e
from pyverbs.mr import MR
from pyverbs.wr import SGE

LENGTH = 64
LETTER = b"a letter that h0 wrote"

h0, h1 = lab.Host(0), lab.Host(1)
lab.connect(h0, h1)


def attempt(opcode, local, remote_addr, rkey):
    """Tries an RDMA operation from `local` at h0 to the place that address and rkey name."""
    # YOUR TURN 3: the element needs the lkey of the local region, and the request the remote
    # address and the rkey: wr.set_wr_rdma(rkey, remote_addr).
    wr = lab.request(SGE(local.buf, LENGTH, 0), opcode)
    wr.set_wr_rdma(0, 0)
    h0.qp.post_send(wr)
    return lab.status_name(lab.wait(h0.cq).status)


# YOUR TURN 1: the letter's region: MR(h0.pd, LENGTH, rights). h0's device only reads it, to send
# it; that needs no right at all: 0.
letter = h0.mr
letter.write(LETTER, len(LETTER))

# YOUR TURN 2: the mailbox's region, with h1's protection domain. A remote host will write into
# it, which needs two rights, and shall be able to do nothing else.
mailbox = h1.mr

print("write:", attempt(e.IBV_WR_RDMA_WRITE, letter, mailbox.buf, mailbox.rkey))
words = mailbox.read(LENGTH, 0).rstrip(b"\0").decode()
print(f'mailbox: "{words}"')

# A stranger who tries to read what is in the mailbox. This one has to fail.
print("read:", attempt(e.IBV_WR_RDMA_READ, h0.mr, mailbox.buf, mailbox.rkey))

# YOUR TURN 4: end both regions with close(): from then on their keys open nothing.
h0.close()
h1.close()
