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
    wr = lab.request(SGE(local.buf, LENGTH, local.lkey), opcode)
    wr.set_wr_rdma(rkey, remote_addr)
    h0.qp.post_send(wr)
    return lab.status_name(lab.wait(h0.cq).status)


letter = MR(h0.pd, LENGTH, 0)
letter.write(LETTER, len(LETTER))

mailbox = MR(h1.pd, LENGTH, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE)

print("write:", attempt(e.IBV_WR_RDMA_WRITE, letter, mailbox.buf, mailbox.rkey))
words = mailbox.read(LENGTH, 0).rstrip(b"\0").decode()
print(f'mailbox: "{words}"')

# A stranger who tries to read what is in the mailbox. This one has to fail.
print("read:", attempt(e.IBV_WR_RDMA_READ, h0.mr, mailbox.buf, mailbox.rkey))

letter.close()
mailbox.close()
h0.close()
h1.close()
