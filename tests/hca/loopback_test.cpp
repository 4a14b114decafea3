#include <gmock/gmock.h>

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

using testing::ElementsAre;

TEST(Loopback, TwoQueuePairsOfOneDeviceExchangeData) {
    Pair pair;
    QueuePairHandle first = pair.a.make_qp();
    QueuePairHandle second = pair.a.make_qp();
    pair.connect(first, pair.a, second);
    pair.connect(second, pair.a, first);
    pair.a.fill(0, 64 * 1024UL, 1);
    Send write = write_of(pair.a, pair.a, 1, 0, 64 * 1024UL);
    write.remote_address = pair.a.address(65536);
    first.post(write);
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kSuccess));
    EXPECT_EQ(pair.a.bytes(65536, 64 * 1024UL), pair.a.bytes(0, 64 * 1024UL));
}

TEST(Loopback, NothingOfItReachesTheWire) {
    Pair pair;
    QueuePairHandle first = pair.a.make_qp();
    QueuePairHandle second = pair.a.make_qp();
    pair.connect(first, pair.a, second);
    pair.connect(second, pair.a, first);
    const std::uint64_t before = pair.a.host.hca().port(1).counters().xmit_packets;
    first.post(write_of(pair.a, pair.a, 1, 0, 64));
    pair.drive();
    EXPECT_EQ(pair.a.host.hca().port(1).counters().xmit_packets, before);
    EXPECT_GT(pair.elapsed(), fabric::SimDuration::zero());
}

TEST(Loopback, AQueuePairConnectedToItselfDoesEverything) {
    Pair pair;
    QueuePairHandle self = pair.a.make_qp();
    pair.connect(self, pair.a, self);
    pair.a.fill(0, 8192, 1);
    pair.a.set_word(131072, 40);
    self.post_receive(9, {pair.a.segment(16384, 8192)});
    Send add = fetch_add_of(pair.a, pair.a, 3, 131072, 2);
    add.segments = {pair.a.segment(139264, 8)};
    Send read = read_of(pair.a, pair.a, 2, 32768, 8192);
    read.remote_address = pair.a.address(0);
    const std::vector<Send> sends = {send_of(pair.a, 1, 0, 8192), read, add};
    self.post(sends);
    pair.drive();
    EXPECT_THAT(ids(pair.a.send_cq.poll()), ElementsAre(1, 2, 3));
    EXPECT_THAT(ids(pair.a.receive_cq.poll()), ElementsAre(9));
    EXPECT_EQ(pair.a.bytes(16384, 8192), pair.a.bytes(0, 8192));
    EXPECT_EQ(pair.a.bytes(32768, 8192), pair.a.bytes(0, 8192));
    EXPECT_EQ(pair.a.word(131072), 42U);
    EXPECT_EQ(pair.a.word(139264), 40U);
}

TEST(Loopback, ARefusalTakesTheOneQueuePairDownOnce) {
    Pair pair;
    QueuePairHandle self = pair.a.make_qp();
    pair.connect(self, pair.a, self);
    Send bad = write_of(pair.a, pair.a, 1, 0, 8);
    bad.rkey = 0xBAD;
    self.post(bad);
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kWrFlushErr))
        << "its responder went to ERR, and with it its requests";
    EXPECT_THAT(pair.a.take_events(), ElementsAre(AsyncEvent::kQpAccessErr));
    EXPECT_EQ(self.state(), QpState::kErr);
}

TEST(Loopback, AnUnreadableSourceOfItsOwnIsALocalError) {
    Pair pair;
    QueuePairHandle self = pair.a.make_qp();
    pair.connect(self, pair.a, self);
    const Region gone = pair.a.register_memory(reinterpret_cast<const void*>(4096), 4096);
    Send write = write_of(pair.a, pair.a, 1, 0, 8);
    write.segments = {{4096, 8, gone.lkey}};
    self.post(write);
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kLocProtErr));
}

TEST(Loopback, PacketsOnTheirWayKeepTheirBytesWhenTheQueuePairGoes) {
    Pair pair;
    QueuePairHandle first = pair.a.make_qp();
    QueuePairHandle second = pair.a.make_qp();
    pair.connect(first, pair.a, second);
    pair.connect(second, pair.a, first);
    pair.a.fill(0, 4096, 1);
    const std::vector<std::byte> sent = pair.a.bytes(0, 4096);
    Send write = write_of(pair.a, pair.a, 1, 0, 4096);
    write.remote_address = pair.a.address(65536);
    first.post(write);
    first.destroy();
    pair.a.fill(0, 4096, 77);
    pair.drive();
    EXPECT_EQ(pair.a.bytes(65536, 4096), sent);
}

}  // namespace
}  // namespace simverbs::test
