// Raw packets: whole Ethernet frames out of memory, onto the wire, to whom a flow rule names.
#include <cerrno>

#include <gmock/gmock.h>

#include "simverbs/hca/device_context.hpp"

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr QpAttrs kRawInit = QpAttr::kPort;

// A host with a raw queue pair in RTS.
class Station {
  public:
    explicit Station(Side& of) : side(of), qp(make()) { start(qp); }

    QueuePairHandle make() {
        return {side.host, side.host.must(CreateQp{.pd = side.pd,
                                                   .send_cq = side.send_cq.handle(),
                                                   .receive_cq = side.receive_cq.handle(),
                                                   .service = Service::kRawPacket,
                                                   .capacity = PairOptions{}.capacity})};
    }
    static void start(const QueuePairHandle& one) {
        EXPECT_EQ(one.modify_to(QpState::kInit, kRawInit, {.port = 1}), 0);
        EXPECT_EQ(one.modify_to(QpState::kRtr), 0);
        EXPECT_EQ(one.modify_to(QpState::kRts), 0);
    }
    [[nodiscard]] fabric::MacAddress mac() const {
        return side.host.hca().port(1).attributes().mac;
    }

    // Writes a frame to memory at `offset`: `length` bytes in all.
    void write_frame(std::size_t offset, const fabric::MacAddress& to, std::size_t length) {
        side.fill(offset, length, 3);
        for (std::size_t i = 0; i < 6; ++i) {
            side.memory[offset + i] = static_cast<std::byte>(to.bytes[i]);
            side.memory[offset + 6 + i] = static_cast<std::byte>(mac().bytes[i]);
        }
        side.memory[offset + 12] = std::byte{0x88};
        side.memory[offset + 13] = std::byte{0xB5};  // local experimental
    }
    std::uint32_t add_rule(const CreateFlow& rule) {
        CreateFlow command = rule;
        command.qp = command.qp == 0 ? qp.handle() : command.qp;
        return side.host.must(command).handle;
    }

    Side& side;
    QueuePairHandle qp;
};

CreateFlow to_mac(const fabric::MacAddress& mac) {
    CreateFlow rule;
    rule.layers = static_cast<std::uint32_t>(FrameLayer::kEthernet);
    rule.value.outer.destination_mac = mac.bytes;
    rule.mask.outer.destination_mac.fill(0xFF);
    return rule;
}

class RawPacket : public testing::Test {
  protected:
    void send(std::size_t length, SendFlags flags = SendFlag::kSignaled) {
        a.write_frame(0, b.mac(), length);
        Send request = send_of(pair.a, 1, 0, length);
        request.flags = flags;
        a.qp.post(request);
        pair.drive();
    }
    std::vector<Cqe> received() { return pair.b.receive_cq.poll(); }

    Pair pair{{.topology = "eth-pair,mtu=1500B", .gid_index = 3}};
    Station a{pair.a};
    Station b{pair.b};
};

TEST_F(RawPacket, AFrameGoesToTheQueuePairThatItsRuleNames) {
    b.add_rule(to_mac(b.mac()));
    b.qp.post_receive(9, {pair.b.segment(4096, 2048)});
    send(1000);
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kSuccess));
    const std::vector<Cqe> entries = received();
    ASSERT_EQ(entries.size(), 1U);
    EXPECT_EQ(entries[0].wr_id, 9U);
    EXPECT_EQ(entries[0].byte_length, 1000U);
    EXPECT_EQ(entries[0].wc_flags, 0U);
    EXPECT_EQ(pair.b.bytes(4096, 1000), pair.a.bytes(0, 1000));
}

TEST_F(RawPacket, ItsBytesAreTakenWhenItIsSent) {
    b.add_rule(to_mac(b.mac()));
    b.qp.post_receive(9, {pair.b.segment(4096, 2048)});
    a.write_frame(0, b.mac(), 500);
    const std::vector<std::byte> sent = pair.a.bytes(0, 500);
    a.qp.post(send_of(pair.a, 1, 0, 500));
    EXPECT_THAT(ids(pair.a.send_cq.poll()), ElementsAre(1));
    pair.a.fill(0, 500, 99);
    pair.drive();
    EXPECT_EQ(pair.b.bytes(4096, 500), sent);
}

TEST_F(RawPacket, AnInlineFrameInSeveralPiecesIsOne) {
    b.add_rule(to_mac(b.mac()));
    b.qp.post_receive(9, {pair.b.segment(4096, 20), pair.b.segment(8192, 2048)});
    a.write_frame(0, b.mac(), 100);
    Send request = send_of(pair.a, 1, 0, 100);
    request.flags = request.flags | SendFlag::kInline;
    request.inline_bytes = pair.a.bytes(0, 100);
    a.qp.post(request);
    pair.drive();
    EXPECT_EQ(received().size(), 1U);
    EXPECT_EQ(pair.b.bytes(4096, 20), pair.a.bytes(0, 20));
    EXPECT_EQ(pair.b.bytes(8192, 80), pair.a.bytes(20, 80));
}

TEST_F(RawPacket, WithoutARuleItIsLost) {
    b.qp.post_receive(9, {pair.b.segment(4096, 2048)});
    pair.watch_packets();
    send(64);
    EXPECT_THAT(received(), IsEmpty());
    EXPECT_THAT(pair.fates(), ElementsAre("no flow rule"));
}

TEST_F(RawPacket, WithoutAReceiveItIsLostAndTheNextIsNot) {
    b.add_rule(to_mac(b.mac()));
    send(64);
    b.qp.post_receive(9, {pair.b.segment(4096, 2048)});
    send(65);
    ASSERT_EQ(b.qp.state(), QpState::kRts);
    const std::vector<Cqe> entries = received();
    ASSERT_EQ(entries.size(), 1U);
    EXPECT_EQ(entries[0].byte_length, 65U);
}

TEST_F(RawPacket, AReceiveThatIsTooSmallIsKeptForTheNext) {
    b.add_rule(to_mac(b.mac()));
    b.qp.post_receive(9, {pair.b.segment(4096, 100)});
    send(101);
    EXPECT_THAT(received(), IsEmpty());
    send(100);
    EXPECT_THAT(ids(received()), ElementsAre(9));
}

TEST_F(RawPacket, AReceiveThatWasKeptIsFlushed) {
    b.add_rule(to_mac(b.mac()));
    b.qp.post_receive(9, {pair.b.segment(4096, 100)});
    b.qp.post_receive(10, {pair.b.segment(4096, 100)});
    send(101);
    EXPECT_EQ(b.qp.modify_to(QpState::kErr), 0);
    const std::vector<Cqe> entries = received();
    EXPECT_THAT(ids(entries), ElementsAre(9, 10));
    EXPECT_THAT(statuses(entries), ElementsAre(WcStatus::kWrFlushErr, WcStatus::kWrFlushErr));
}

TEST_F(RawPacket, ABadReceiveStopsTheReceiver) {
    b.add_rule(to_mac(b.mac()));
    Segment wrong = pair.b.segment(4096, 2048);
    wrong.lkey ^= 0x4000U;
    b.qp.post_receive(9, {wrong});
    b.qp.post_receive(10, {pair.b.segment(4096, 2048)});
    send(64);
    EXPECT_THAT(statuses(received()), ElementsAre(WcStatus::kLocProtErr, WcStatus::kWrFlushErr));
    EXPECT_EQ(b.qp.state(), QpState::kErr);
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kSuccess));
}

TEST_F(RawPacket, ABadSendStopsTheSendQueueOnly) {
    b.add_rule(to_mac(b.mac()));
    a.add_rule(to_mac(a.mac()));
    std::vector<Send> sends = {send_of(pair.a, 1, 0, 1515), send_of(pair.a, 2, 0, 64)};
    a.write_frame(0, b.mac(), 1515);
    a.qp.post(sends);  // a byte more than 14 and 1500
    EXPECT_THAT(statuses(pair.a.send_cq.poll()),
                ElementsAre(WcStatus::kLocLenErr, WcStatus::kWrFlushErr));
    EXPECT_EQ(a.qp.state(), QpState::kSqe);
    a.qp.post_receive(5, {pair.a.segment(4096, 2048)});
    b.write_frame(0, a.mac(), 64);
    b.qp.post(send_of(pair.b, 3, 0, 64));
    pair.drive();
    EXPECT_THAT(ids(pair.a.receive_cq.poll()), ElementsAre(5));
    EXPECT_EQ(a.qp.modify_to(QpState::kRts), 0);
    b.qp.post_receive(9, {pair.b.segment(4096, 2048)});
    send(1514);
    EXPECT_THAT(ids(received()), ElementsAre(9));
}

TEST_F(RawPacket, EachMistakeOfASendHasItsStatus) {
    const auto status_of = [this](const Send& request) {
        QueuePairHandle qp = a.make();
        Station::start(qp);
        qp.post(request);
        const std::vector<Cqe> entries = pair.a.send_cq.poll();
        EXPECT_EQ(entries.size(), 1U);
        return statuses(entries).at(0);
    };
    a.write_frame(0, b.mac(), 64);
    Send request = send_of(pair.a, 1, 0, 64);
    EXPECT_EQ(status_of(request), WcStatus::kSuccess);
    request.segments[0].length = 13;
    EXPECT_EQ(status_of(request), WcStatus::kLocLenErr);
    request = send_of(pair.a, 1, 0, 64);
    request.segments[0].lkey ^= 0x4000U;
    EXPECT_EQ(status_of(request), WcStatus::kLocProtErr);
    request = send_of(pair.a, 1, Side::kMemoryBytes - 10, 64);
    EXPECT_EQ(status_of(request), WcStatus::kLocProtErr);
    request = send_of(pair.a, 1, 0, 64);
    request.opcode = WrOpcode::kRdmaWrite;
    EXPECT_EQ(status_of(request), WcStatus::kLocQpOpErr);
}

TEST_F(RawPacket, ManyFramesArriveInOrderAndPaced) {
    b.add_rule(to_mac(b.mac()));
    a.write_frame(0, b.mac(), 1000);
    std::vector<Send> sends;
    for (std::uint64_t i = 0; i < 60; ++i) {
        b.qp.post_receive(100 + i, {pair.b.segment(4096, 2048)});
        sends.push_back(send_of(pair.a, i, 0, 1000));
    }
    a.qp.post(sends);
    EXPECT_LT(pair.a.send_cq.poll().size(), 60U);  // the others wait for the port
    pair.drive();
    const std::vector<std::uint64_t> got = ids(received());
    ASSERT_EQ(got.size(), 60U);
    EXPECT_EQ(got.front(), 100U);
    EXPECT_EQ(got.back(), 159U);
}

TEST_F(RawPacket, ComesBackToItsOwnPort) {
    a.add_rule(to_mac(a.mac()));
    a.write_frame(0, a.mac(), 200);
    a.qp.post_receive(5, {pair.a.segment(4096, 2048)});
    a.qp.post(send_of(pair.a, 1, 0, 200));
    pair.drive();
    EXPECT_THAT(ids(pair.a.receive_cq.poll()), ElementsAre(5));
    EXPECT_EQ(pair.a.bytes(4096, 200), pair.a.bytes(0, 200));
}

TEST_F(RawPacket, ARuleLivesAsLongAsItIsKept) {
    const std::uint32_t rule = b.add_rule(to_mac(b.mac()));
    EXPECT_EQ(pair.b.host.ask(DestroyQp{.handle = b.qp.handle()}), EBUSY);
    EXPECT_EQ(pair.b.host.ask(DestroyFlow{.handle = rule}), 0);
    EXPECT_EQ(pair.b.host.ask(DestroyFlow{.handle = rule}), ENOENT);
    EXPECT_EQ(pair.b.host.ask(DestroyQp{.handle = b.qp.handle()}), 0);
}

TEST_F(RawPacket, RulesNameWhatExists) {
    HandleReply reply;
    CreateFlow rule = to_mac(b.mac());
    EXPECT_EQ(pair.b.host.ask(rule, reply), EINVAL);  // no queue pair
    rule.qp = pair.b.qp.handle();
    EXPECT_EQ(pair.b.host.ask(rule, reply), EINVAL);  // of another service
    rule.qp = b.qp.handle();
    rule.port = 2;
    EXPECT_EQ(pair.b.host.ask(rule, reply), EINVAL);
    rule.port = 1;
    rule.type = 4;
    EXPECT_EQ(pair.b.host.ask(rule, reply), EINVAL);
}

TEST_F(RawPacket, ThereIsALimitToRules) {
    CreateFlow rule = to_mac(b.mac());
    rule.qp = b.qp.handle();
    HandleReply reply;
    std::size_t made = 0;
    while (made <= 100'000 && pair.b.host.ask(rule, reply) == 0) {
        ++made;
    }
    EXPECT_EQ(made, 4'096U);
    EXPECT_EQ(pair.b.host.ask(rule, reply), ENOMEM);
}

TEST_F(RawPacket, ThereIsALimitToQueuePairs) {
    CreateQp command{.pd = pair.b.pd,
                     .send_cq = pair.b.send_cq.handle(),
                     .receive_cq = pair.b.receive_cq.handle(),
                     .service = Service::kRawPacket,
                     .capacity = {.send_requests = 1, .receive_requests = 1}};
    CreateQpReply reply;
    std::size_t made = 1;
    while (made <= 100'000 && pair.b.host.ask(command, reply) == 0) {
        ++made;
    }
    EXPECT_EQ(made, 1'024U);
    EXPECT_EQ(pair.b.host.ask(command, reply), ENOMEM);
}

TEST_F(RawPacket, RulesGoWithTheirContext) {
    b.add_rule(to_mac(b.mac()));
    {
        Host other(pair.simulation(), 1);
        const std::uint32_t pd = other.must(AllocatePd{}).handle;
        CompletionQueueRing cq(other, 8);
        const CreateQpReply qp = other.must(CreateQp{.pd = pd,
                                                     .send_cq = cq.handle(),
                                                     .receive_cq = cq.handle(),
                                                     .service = Service::kRawPacket,
                                                     .capacity = PairOptions{}.capacity});
        CreateFlow sniffer;
        sniffer.type = static_cast<std::uint32_t>(FlowType::kSniffer);
        sniffer.qp = qp.handle;
        other.must(sniffer);
        other.close();
    }
    b.qp.post_receive(9, {pair.b.segment(4096, 2048)});
    send(64);
    EXPECT_THAT(ids(received()), ElementsAre(9));
}

TEST(RawPacketPort, IsEthernet) {
    Pair infiniband;
    CreateQp command{.pd = infiniband.a.pd,
                     .send_cq = infiniband.a.send_cq.handle(),
                     .receive_cq = infiniband.a.receive_cq.handle(),
                     .service = Service::kRawPacket,
                     .capacity = PairOptions{}.capacity};
    CreateQpReply reply;
    EXPECT_EQ(infiniband.a.host.ask(command, reply), EOPNOTSUPP);
    Pair rxe({.personality = "rxe", .topology = "eth-pair"});
    command.pd = rxe.a.pd;
    command.send_cq = rxe.a.send_cq.handle();
    command.receive_cq = rxe.a.receive_cq.handle();
    EXPECT_EQ(rxe.a.host.ask(command, reply), EOPNOTSUPP);
    Pair both({.topology = "vpi-pair"});
    command.pd = both.a.pd;
    command.send_cq = both.a.send_cq.handle();
    command.receive_cq = both.a.receive_cq.handle();
    const QueuePairHandle qp(both.a.host, both.a.host.must(command));
    EXPECT_EQ(qp.modify_to(QpState::kInit, kRawInit, {.port = 1}), EINVAL);
    EXPECT_EQ(qp.modify_to(QpState::kInit, kRawInit, {.port = 2}), 0);
}

}  // namespace
}  // namespace simverbs::test
