"""What the tests share: a publisher on h0 and subscribers on h1 and h2."""

import pyverbs.enums as e
from pyverbs.addr import AHAttr
from pyverbs.device import Context
from pyverbs.qp import QPAttr

from publish_subscribe import Publisher, Subscriber


def connect(qp, lid, peer_qp, peer_lid):
    """Connects two queue pairs so that either may read from the other."""
    for own, other, dlid in ((qp, peer_qp, peer_lid), (peer_qp, qp, lid)):
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = e.IBV_ACCESS_REMOTE_READ
        attr.dest_qp_num = other.qp_num
        attr.path_mtu = e.IBV_MTU_1024
        attr.ah_attr = AHAttr(dlid=dlid, port_num=1)
        attr.max_dest_rd_atomic = attr.max_rd_atomic = 1
        attr.min_rnr_timer = 12
        attr.timeout = 8  # 1 ms
        attr.retry_cnt = attr.rnr_retry = 7
        own.to_rts(attr)


class Hosts:
    def __init__(self, **options):
        self._contexts = [Context(name=f"simverbs{i}") for i in range(3)]
        lids = [context.query_port(1).lid for context in self._contexts]
        self.publisher = Publisher(self._contexts[0])
        self.subscribers = []
        for context, lid in zip(self._contexts[1:], lids[1:]):
            subscriber = Subscriber(context, self.publisher.place, **options)
            address = AHAttr(dlid=lid, port_num=1)
            reader = self.publisher.add_subscriber(address, subscriber.qp_num)
            connect(subscriber.reader, lid, reader, lids[0])
            self.subscribers.append(subscriber)
