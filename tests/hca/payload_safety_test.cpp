#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

using testing::ElementsAre;

constexpr std::size_t kPayloadLength = 9 * 1024UL;

// Memory of its own that goes back to the system on request.
class Mapping {
  public:
    Mapping()
        : base_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    }
    ~Mapping() { munmap(base_, kBytes); }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    static constexpr std::size_t kBytes = 64 * 1024UL;
    [[nodiscard]] const void* data() const { return base_; }
    [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(base_); }
    // Everything from `offset`; nothing else comes to lie there.
    void unmap(std::size_t offset) {
        void* const where = static_cast<std::byte*>(base_) + offset;
        EXPECT_EQ(
            mmap(where, kBytes - offset, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            where);
    }

  private:
    void* base_;
};

Segment whole(const Mapping& mapping, const Region& region) {
    return {mapping.address(), kPayloadLength, region.lkey};
}

TEST(PayloadSafety, AnUnmappedSourceIsALocalProtectionError) {
    for (const WrOpcode opcode : {WrOpcode::kRdmaWrite, WrOpcode::kSend}) {
        Pair pair;
        Mapping mapping;
        const Region region = pair.a.register_memory(mapping.data(), Mapping::kBytes);
        mapping.unmap(0);
        pair.b.qp.post_receive(11, {pair.b.segment(0, kPayloadLength)});
        Send send = write_of(pair.a, pair.b, 1, 0, kPayloadLength);
        send.opcode = opcode;
        send.segments = {whole(mapping, region)};
        pair.a.qp.post(send);
        pair.drive();
        EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kLocProtErr));
        EXPECT_EQ(pair.b.qp.state(), QpState::kRts) << "the peer has seen nothing wrong";
    }
}

TEST(PayloadSafety, AnUnmappedTargetIsARemoteAccessError) {
    Pair pair;
    Mapping mapping;
    const Region region = pair.b.register_memory(mapping.data(), Mapping::kBytes);
    mapping.unmap(0);
    for (Send send : {write_of(pair.a, pair.b, 1, 0, kPayloadLength)}) {
        send.remote_address = mapping.address();
        send.rkey = region.rkey;
        pair.a.qp.post(send);
    }
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kRemAccessErr));
    EXPECT_THAT(pair.b.take_events(), ElementsAre(AsyncEvent::kQpAccessErr));
}

TEST(PayloadSafety, ReadsAndAtomicsOfUnmappedMemoryAreRemoteAccessErrors) {
    for (const WrOpcode opcode : {WrOpcode::kRdmaRead, WrOpcode::kAtomicFetchAndAdd}) {
        Pair pair;
        Mapping mapping;
        const Region region = pair.b.register_memory(mapping.data(), Mapping::kBytes);
        mapping.unmap(0);
        Send send = fetch_add_of(pair.a, pair.b, 1, 0, 1);
        send.opcode = opcode;
        send.remote_address = mapping.address();
        send.rkey = region.rkey;
        pair.a.qp.post(send);
        pair.drive();
        EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kRemAccessErr));
    }
}

TEST(PayloadSafety, AnUnmappedReceiveFailsOnBothSides) {
    Pair pair;
    Mapping mapping;
    const Region region = pair.b.register_memory(mapping.data(), Mapping::kBytes);
    mapping.unmap(0);
    pair.b.qp.post_receive(11, {whole(mapping, region)});
    pair.a.qp.post(send_of(pair.a, 1, 0, kPayloadLength));
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kRemOpErr));
    EXPECT_THAT(statuses(pair.b.receive_cq.poll()), ElementsAre(WcStatus::kLocProtErr));
}

TEST(PayloadSafety, AReadThatLandsInUnmappedMemoryIsALocalProtectionError) {
    Pair pair;
    Mapping mapping;
    const Region region = pair.a.register_memory(mapping.data(), Mapping::kBytes);
    mapping.unmap(0);
    Send send = read_of(pair.a, pair.b, 1, 0, kPayloadLength);
    send.segments = {whole(mapping, region)};
    pair.a.qp.post(send);
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kLocProtErr));
}

TEST(PayloadSafety, WhatLiesBeforeTheHoleHasLanded) {
    Pair pair;
    Mapping mapping;
    const Region region = pair.a.register_memory(mapping.data(), Mapping::kBytes);
    mapping.unmap(8192);
    pair.b.fill(0, 16384, 5);
    const std::vector<std::byte> before = pair.b.bytes(8192, 8192);
    Send send = write_of(pair.a, pair.b, 1, 0, 16384);
    send.segments = {{mapping.address(), 16384, region.lkey}};
    pair.a.qp.post(send);
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kLocProtErr));
    EXPECT_EQ(pair.b.bytes(0, 8192), std::vector<std::byte>(8192));
    EXPECT_EQ(pair.b.bytes(8192, 8192), before);
}

// The region is gone and its memory freed: packets on their way carry their own bytes.
TEST(PayloadSafety, DeregisteringTheSourceUnderWayKeepsWhatTravels) {
    Pair pair;
    auto heap = std::make_unique<std::vector<std::byte>>(kPayloadLength, std::byte{0x5A});
    const Region region = pair.a.register_memory(heap->data(), kPayloadLength);
    Send send = write_of(pair.a, pair.b, 1, 0, kPayloadLength);
    send.segments[0] = {reinterpret_cast<std::uint64_t>(heap->data()), kPayloadLength, region.lkey};
    pair.a.qp.post(send);
    EXPECT_EQ(pair.a.host.ask(DeregisterMr{.handle = region.handle}), 0);
    heap.reset();
    pair.drive();
    EXPECT_EQ(pair.b.bytes(0, kPayloadLength),
              std::vector<std::byte>(kPayloadLength, std::byte{0x5A}));
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kSuccess));
}

TEST(PayloadSafety, DeregisteringTheSourceFailsWhatHasToBeSentAgain) {
    Pair pair;
    pair.drop_nth(pair.a, 1);
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, kPayloadLength));
    EXPECT_EQ(pair.a.host.ask(DeregisterMr{.handle = pair.a.region.handle}), 0);
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kLocProtErr));
}

TEST(PayloadSafety, DeregisteringTheTargetUnderWayRefusesTheRest) {
    Pair pair;
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, kPayloadLength));
    EXPECT_EQ(pair.b.host.ask(DeregisterMr{.handle = pair.b.region.handle}), 0);
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kRemAccessErr));
}

TEST(PayloadSafety, DestroyingTheSenderUnderWayReadsNothingThatWasFreed) {
    Pair pair;
    auto heap = std::make_unique<std::vector<std::byte>>(kPayloadLength, std::byte{0x5A});
    const Region region = pair.a.register_memory(heap->data(), kPayloadLength);
    Send send = write_of(pair.a, pair.b, 1, 0, kPayloadLength);
    send.segments[0] = {reinterpret_cast<std::uint64_t>(heap->data()), kPayloadLength, region.lkey};
    Send small = write_of(pair.a, pair.b, 2, 65536, 0);
    small.flags = SendFlag::kSignaled | SendFlag::kInline;
    small.inline_bytes.assign(100, std::byte{0x77});
    const std::vector<Send> sends = {send, small};
    pair.a.qp.post(sends);
    pair.a.qp.destroy();
    heap.reset();
    pair.drive();
    EXPECT_EQ(pair.b.bytes(0, kPayloadLength),
              std::vector<std::byte>(kPayloadLength, std::byte{0x5A}));
    EXPECT_EQ(pair.b.bytes(65536, 100), std::vector<std::byte>(100, std::byte{0x77}));
}

TEST(PayloadSafety, DestroyingTheResponderOfAReadUnderWayReadsNothingThatWasFreed) {
    Pair pair({.retry_count = 1});
    auto heap = std::make_unique<std::vector<std::byte>>(64 * 1024, std::byte{0x5A});
    const Region region = pair.b.register_memory(heap->data(), heap->size());
    Send read = read_of(pair.a, pair.b, 1, 0, 64 * 1024UL);
    read.remote_address = reinterpret_cast<std::uint64_t>(heap->data());
    read.rkey = region.rkey;
    pair.a.qp.post(read);
    using namespace std::chrono_literals;
    pair.advance(2us);
    pair.b.qp.destroy();
    heap.reset();
    pair.drive();
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kRetryExcErr));
    EXPECT_EQ(pair.a.bytes(0, 1024), std::vector<std::byte>(1024, std::byte{0x5A}));
}

// After a retransmission copies may still be about when the completion gives the buffer back.
TEST(PayloadSafety, ABufferGivenBackAfterARetryMayBeOverwritten) {
    using namespace std::chrono_literals;
    Pair pair({.timeout = 1});  // 8.192 us: shorter than what is queued on the link
    pair.a.fill(0, 131072, 1);
    const std::vector<std::byte> sent = pair.a.bytes(0, 131072);
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 131072));
    pair.drive_until_sent(pair.a);
    EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kSuccess));
    pair.a.fill(0, 131072, 99);
    pair.drive();
    EXPECT_EQ(pair.b.bytes(0, 131072), sent);
}

TEST(PayloadSafety, ClosingTheContextUnderWayReadsNothingThatWasFreed) {
    Pair pair;
    pair.a.fill(0, kPayloadLength, 1);
    const std::vector<std::byte> sent = pair.a.bytes(0, kPayloadLength);
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, kPayloadLength));
    pair.a.host.close();
    std::vector<std::byte>().swap(pair.a.memory);
    pair.drive();
    EXPECT_EQ(pair.b.bytes(0, kPayloadLength), sent);
}

}  // namespace
}  // namespace simverbs::test
