"""Lesson 4: messages. h0 sends four lines of a poem, each from a buffer of its own; h1 has a
receive for each, and prints what came."""

import lab
import pyverbs.enums as e

POEM = [
    "Posted and forgotten,",
    "a buffer waits for words,",
    "until a device far away",
    "completes it.",
]
SLOT = 128  # bytes of memory for one line, at either end

h0, h1 = lab.Host(0), lab.Host(1)


def post_receive(i):
    """A receive for line `i`, whose wr_id is i."""
    # YOUR TURN 1: post a receive to h1.qp for the SLOT bytes at offset i * SLOT:
    # lab.receive(sge, wr_id) makes it, h1.sge(offset, length) the element, h1.qp.post_recv()
    # posts it.
    pass


def post_send(i):
    """Sends line `i`."""
    words = POEM[i].encode()
    h0.mr.write(words, len(words), i * SLOT)
    # YOUR TURN 2: post a send of these bytes: lab.request(sge, e.IBV_WR_SEND, wr_id) makes it,
    # signaled, and h0.qp.post_send() posts it.


def next_completion(cq):
    # YOUR TURN 3: call cq.poll(1), which gives (how many, completions), until there is one; give
    # up (lab.must) after lab.POLLS tries. Anything but e.IBV_WC_SUCCESS in its status ends the
    # program.
    pass


lab.prepare(h0, h1)
# YOUR TURN 4: post the receives of all lines here, while the queue pairs are in INIT; and the
# sends below, once they are connected.
lab.join(h0, h1)
# YOUR TURN 4, second half.

# YOUR TURN 5: wait for the completions of h1, and print for each which line it is (wr_id), how
# many bytes came (byte_len) and the bytes: "line 0, 21 bytes: Posted and forgotten,".
# h1.mr.read(length, offset) gives bytes; decode() makes text of them.

# YOUR TURN 6: wait for the completions of h0. Until then its buffers belong to the device.
h0.close()
h1.close()
