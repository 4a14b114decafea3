import pytest
import simverbs

from hosts import Hosts
from publish_subscribe import TEXT_BYTES

pytestmark = pytest.mark.simverbs(topology="star:3")


def publish(world, hosts, numbers):
    """Publishes, and returns what each subscriber has taken."""
    taken = [[] for _ in hosts.subscribers]
    for number in numbers:
        assert hosts.publisher.publish(b"message %d" % number) == number
        world.advance("10us")
        for messages, subscriber in zip(taken, hosts.subscribers):
            messages += subscriber.poll()
    return taken


def messages_of(numbers):
    return [(number, b"message %d" % number) for number in numbers]


def test_every_subscriber_has_every_message(simverbs_world):
    hosts = Hosts()
    for taken in publish(simverbs_world, hosts, range(1, 101)):
        assert taken == messages_of(range(1, 101))


def test_a_long_message_is_refused(simverbs_world):
    hosts = Hosts()
    with pytest.raises(ValueError, match="at most"):
        hosts.publisher.publish(bytes(TEXT_BYTES + 1))


def test_lost_messages_are_read(simverbs_world):
    hosts = Hosts()
    lost = simverbs.drop(link="h1-s0", opcode="SEND", nth=3, count=4)
    first, second = publish(simverbs_world, hosts, range(1, 21))
    assert lost.fired == 4
    assert first == messages_of(range(1, 21))
    assert second == messages_of(range(1, 21))


def test_a_lost_last_message_is_noticed_by_its_repetition(simverbs_world):
    hosts = Hosts()
    simverbs.drop(link="h1-s0", opcode="SEND", nth=5)
    first, _ = publish(simverbs_world, hosts, range(1, 6))
    assert first == messages_of(range(1, 5))
    hosts.publisher.repeat()
    simverbs_world.advance("10us")
    assert hosts.subscribers[0].poll() == messages_of([5])


def test_messages_that_are_overwritten_are_reported(simverbs_world):
    hosts = Hosts()
    simverbs.drop(link="h1-s0", opcode="SEND", nth=2, count=40)  # there is room for 32
    first, second = publish(simverbs_world, hosts, range(1, 51))
    assert second == messages_of(range(1, 51))
    missed = hosts.subscribers[0].missed
    assert missed == list(range(2, 11))
    assert first == messages_of([1, *range(11, 51)])
