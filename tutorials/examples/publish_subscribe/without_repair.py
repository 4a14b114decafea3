"""Fails, and shows why subscribers read what they miss. pytest does not collect this file by
itself."""

import pytest
import simverbs

from hosts import Hosts
from test_publish_subscribe import messages_of, publish

pytestmark = pytest.mark.simverbs(topology="star:3")


def test_lost_messages_are_not_missed(simverbs_world):
    hosts = Hosts(repairs=False)
    simverbs.drop(link="h1-s0", opcode="SEND", nth=3, count=4)
    first, _ = publish(simverbs_world, hosts, range(1, 21))
    missing = [number for number, _ in messages_of(range(1, 21)) if number not in dict(first)]
    assert missing == []
