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
    h1.qp.post_recv(lab.receive(h1.sge(i * SLOT, SLOT), i))


def post_send(i):
    """Sends line `i`."""
    words = POEM[i].encode()
    h0.mr.write(words, len(words), i * SLOT)
    h0.qp.post_send(lab.request(h0.sge(i * SLOT, len(words)), e.IBV_WR_SEND, i))


def next_completion(cq):
    for _ in range(lab.POLLS):
        count, completions = cq.poll(1)
        if count == 1:
            status = completions[0].status
            lab.must(status == e.IBV_WC_SUCCESS, lab.status_name(status))
            return completions[0]
    lab.must(False, "waiting for a completion that does not come")


lab.prepare(h0, h1)
for line in range(len(POEM)):
    post_receive(line)
lab.join(h0, h1)
for line in range(len(POEM)):
    post_send(line)

for _ in POEM:
    wc = next_completion(h1.cq)
    text = h1.mr.read(wc.byte_len, wc.wr_id * SLOT).decode()
    print(f"line {wc.wr_id}, {wc.byte_len} bytes: {text}")

for _ in POEM:
    next_completion(h0.cq)
h0.close()
h1.close()
