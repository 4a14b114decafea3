"""Lesson 6: wait for completions without burning a processor. h0 sends bursts of messages; h1
sleeps until its completion channel wakes it."""

import lab
import pyverbs.enums as e
from pyverbs.cq import CQ, CompChannel

BURSTS = 3
OF_A_BURST = 2
MESSAGES = BURSTS * OF_A_BURST
LONG_ENOUGH = 100 * 1000 * 1000  # ps: 100 us


class Channel(CompChannel):
    """A completion channel that counts the events that are taken out of it, and knows its end."""

    events_taken = 0
    is_closed = False

    def get_cq_event(self, cq):
        self.events_taken += 1
        return super().get_cq_event(cq)

    def close(self):
        self.is_closed = True
        super().close()


h0, h1 = lab.Host(0), lab.Host(1)
h1.cq.close()  # it has no channel
# YOUR TURN 1: make a completion channel, Channel(h1.context), and a completion queue of 16
# entries that reports to it: CQ(context, entries, None, channel, 0).
channel = None
h1.cq = CQ(h1.context, 16)
bursts_sent = 0
events_acknowledged = 0


def send_burst():
    global bursts_sent
    for _ in range(OF_A_BURST):
        h0.qp.post_send(lab.request(h0.sge(0, 8)))
    bursts_sent += 1
    lab.advance(LONG_ENOUGH)  # now it has arrived


def poll_h1():
    """Polls h1's queue once. It is made to be mean: at the very moment when the queue has been
    found empty, and before you can do anything about it, the next burst comes in."""
    count, completions = h1.cq.poll(1)
    if count == 0 and bursts_sent < BURSTS:
        send_burst()
    return count, completions


def acknowledge(count):
    """Acknowledges so many events of h1's completion queue, and keeps count of them."""
    global events_acknowledged
    h1.cq.ack_events(count)
    events_acknowledged += count


def arm():
    # YOUR TURN 2: ask for an event at the next completion: h1.cq.req_notify(). It holds for one
    # event.
    pass


def wait_for_event():
    # YOUR TURN 3: take the event, channel.get_cq_event(h1.cq), and acknowledge it,
    # acknowledge(1).
    pass


def drain():
    """Takes what is in the queue; how many messages it was."""
    messages = 0
    while True:
        count, completions = poll_h1()
        if count == 0:
            return messages
        status = completions[0].status
        lab.must(status == e.IBV_WC_SUCCESS, lab.status_name(status))
        messages += 1


lab.prepare(h0, h1)
for _ in range(MESSAGES):
    h1.qp.post_recv(lab.receive(h1.sge(0, 8)))
lab.join(h0, h1)
lab.must(channel is not None, "a completion channel")
lab.must(h1.cq.comp_channel is channel, "a completion queue with that channel")

arm()
send_burst()
messages = 0
events = 0
while messages < MESSAGES:
    wait_for_event()
    events += 1
    lab.must(channel.events_taken >= events, "the event is still in the channel")
    # YOUR TURN 4: arm() and messages += drain(), in the right order. Think of the burst that
    # comes in between the two.
    messages += drain()
    print(messages, "messages so far")

balance = "too few" if events_acknowledged < events else "too many"
lab.must(
    events_acknowledged == events,
    f"{events} events taken, {events_acknowledged} acknowledged: {balance}",
)

for _ in range(MESSAGES):
    lab.wait_success(h0.cq)
h0.close()
# YOUR TURN 5: end the channel with close(). Its completion queue goes first, and the queue pair
# before that; h1.close() then ends the rest.
lab.must(channel.is_closed, "the channel is still open")
h1.close()
