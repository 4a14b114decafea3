#include <cerrno>

#include <gtest/gtest.h>

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

TEST(Objects, APdIsBusyWhileARegionOrAQueuePairIsInIt) {
    Pair pair;
    Host& host = pair.a.host;
    const std::uint32_t pd = host.must(AllocatePd{}).handle;
    const Region region = pair.a.register_memory(pair.a.memory.data(), 64, kAllRights, pd);
    EXPECT_EQ(host.ask(DeallocatePd{.handle = pd}), EBUSY);
    EXPECT_EQ(host.ask(DeregisterMr{.handle = region.handle}), 0);
    QueuePairHandle qp(host, host.must(CreateQp{.pd = pd,
                                                .send_cq = pair.a.send_cq.handle(),
                                                .receive_cq = pair.a.receive_cq.handle()}));
    EXPECT_EQ(host.ask(DeallocatePd{.handle = pd}), EBUSY);
    qp.destroy();
    EXPECT_EQ(host.ask(DeallocatePd{.handle = pd}), 0);
    EXPECT_EQ(host.ask(DeallocatePd{.handle = pd}), ENOENT);
}

TEST(Objects, ACqIsBusyWhileAQueuePairCompletesInIt) {
    Pair pair;
    Host& host = pair.a.host;
    const CompletionQueueRing cq(host, 4);
    QueuePairHandle qp(
        host, host.must(CreateQp{
                  .pd = pair.a.pd, .send_cq = pair.a.send_cq.handle(), .receive_cq = cq.handle()}));
    EXPECT_EQ(host.ask(DestroyCq{.handle = cq.handle()}), EBUSY);
    qp.destroy();
    EXPECT_EQ(host.ask(DestroyCq{.handle = cq.handle()}), 0);
}

TEST(Objects, AChannelIsBusyWhileACqReportsToIt) {
    Pair pair;
    Host& host = pair.a.host;
    const std::uint32_t channel = host.must(CreateChannel{}).handle;
    const CompletionQueueRing cq(host, 4, channel);
    EXPECT_EQ(host.ask(DestroyChannel{.handle = channel}), EBUSY);
    EXPECT_EQ(host.ask(DestroyCq{.handle = cq.handle()}), 0);
    EXPECT_EQ(host.ask(DestroyChannel{.handle = channel}), 0);
}

TEST(Objects, AQueuePairIsNeverBusyAndARegionOnlyByWindows) {
    Pair pair;
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 9 * 1024UL));
    pair.b.qp.post_receive(1, {pair.b.segment(0, 8)});
    EXPECT_EQ(pair.a.host.ask(DeregisterMr{.handle = pair.a.region.handle}), 0);
    EXPECT_EQ(pair.a.host.ask(DestroyQp{.handle = pair.a.qp.handle()}), 0);
    EXPECT_EQ(pair.b.host.ask(DestroyQp{.handle = pair.b.qp.handle()}), 0);
    pair.drive();
}

TEST(Objects, AContextClosesWithEverythingStillInUse) {
    Pair pair;
    pair.a.qp.post(write_of(pair.a, pair.b, 1, 0, 9 * 1024UL));
    pair.a.host.close();
    EXPECT_EQ(pair.a.host.rings(), 0U);
    EXPECT_EQ(pair.a.host.ask(AllocatePd{}), ENOENT);
    pair.drive();
    EXPECT_EQ(pair.b.qp.state(), QpState::kRts);
}

TEST(Objects, WhatNamesNothingIsEnoentAndEinvalForAQueuePair) {
    Pair pair;
    Host& host = pair.a.host;
    constexpr std::uint32_t kNone = 0x777777;
    EXPECT_EQ(host.ask(DeallocatePd{.handle = kNone}), ENOENT);
    EXPECT_EQ(host.ask(DeregisterMr{.handle = kNone}), ENOENT);
    EXPECT_EQ(host.ask(DestroyCq{.handle = kNone}), ENOENT);
    EXPECT_EQ(host.ask(ResizeCq{.handle = kNone, .entries = 4}), ENOENT);
    EXPECT_EQ(host.ask(DestroyChannel{.handle = kNone}), ENOENT);
    EXPECT_EQ(host.ask(CreateCq{.entries = 4, .channel = kNone}), ENOENT);
    EXPECT_EQ(host.ask(RegisterMr{.pd = kNone, .length = 8}), ENOENT);
    EXPECT_EQ(host.ask(DestroyQp{.handle = kNone}), EINVAL);
    EXPECT_EQ(host.ask(QueryQp{.handle = kNone}), EINVAL);
    EXPECT_EQ(host.ask(ModifyQp{.handle = kNone}), EINVAL);
}

TEST(Objects, OneProcessDoesNotSeeAnothersObjects) {
    Pair pair;
    Host other(pair.simulation(), 0);
    EXPECT_EQ(other.ask(DestroyQp{.handle = pair.a.qp.handle()}), EINVAL);
    EXPECT_EQ(other.ask(DeregisterMr{.handle = pair.a.region.handle}), ENOENT);
    EXPECT_EQ(other.ask(DestroyCq{.handle = 0}), ENOENT);
}

// The numbers of a process's objects never depend on another process.
TEST(Objects, NumbersAndKeysComeFromTheContextAlone) {
    const auto keys_of_second = [](std::size_t registrations_of_first) {
        Pair pair;
        for (std::size_t i = 0; i < registrations_of_first; ++i) {
            pair.a.register_memory(pair.a.memory.data(), 64);
        }
        Host second(pair.simulation(), 0);
        const std::uint32_t pd = second.must(AllocatePd{}).handle;
        const RegisterMrReply reply =
            second.must(RegisterMr{.pd = pd, .address = 4096, .length = 64, .iova = 4096});
        return std::pair(reply.lkey, reply.rkey);
    };
    EXPECT_EQ(keys_of_second(0), keys_of_second(5));
}

TEST(Objects, LocalAndRemoteKeysDifferAndAStaleKeyOpensNothing) {
    Pair pair;
    const Region first = pair.b.register_memory(pair.b.memory.data(), 64);
    EXPECT_NE(first.lkey, first.rkey);
    EXPECT_EQ(pair.b.host.ask(DeregisterMr{.handle = first.handle}), 0);
    const Region second = pair.b.register_memory(pair.b.memory.data(), 64);
    EXPECT_NE(first.rkey, second.rkey);
    Send stale = write_of(pair.a, pair.b, 1, 0, 8);
    stale.rkey = first.rkey;
    pair.a.qp.post(stale);
    pair.drive();
    EXPECT_EQ(statuses(pair.a.send_cq.poll()), std::vector{WcStatus::kRemAccessErr});
}

TEST(Objects, ARegionIsNamedByItsIovaAndReachedWhereItsBytesAre) {
    Pair pair;
    pair.b.fill(0, 64, 3);
    const RegisterMrReply reply = pair.b.host.must(RegisterMr{.pd = pair.b.pd,
                                                              .address = pair.b.address(0),
                                                              .length = 64,
                                                              .iova = 0x1000,
                                                              .access = kAllRights.bits});
    Send read = read_of(pair.a, pair.b, 1, 0, 32);
    read.remote_address = 0x1000 + 32;
    read.rkey = reply.rkey;
    pair.a.qp.post(read);
    pair.drive();
    EXPECT_EQ(pair.a.bytes(0, 32), pair.b.bytes(32, 32));
}

TEST(Objects, WhatARegistrationMayNotAskForIsEinval) {
    Pair pair;
    const auto register_with = [&pair](std::uint64_t length, AccessRights access) {
        return pair.a.host.ask(RegisterMr{.pd = pair.a.pd,
                                          .address = 4096,
                                          .length = length,
                                          .iova = 4096,
                                          .access = access.bits});
    };
    EXPECT_EQ(register_with(0, Access::kLocalWrite), EINVAL);
    EXPECT_EQ(register_with(~0ULL, Access::kLocalWrite), EINVAL);
    EXPECT_EQ(register_with(64, Access::kRemoteWrite), EINVAL);
    EXPECT_EQ(register_with(64, Access::kRemoteAtomic), EINVAL);
    EXPECT_EQ(register_with(64, AccessRights::from_bits(1U << 30)), EINVAL);
    EXPECT_EQ(register_with(64, AccessRights::from_bits(1U << 25)), 0) << "optional, to be ignored";
    EXPECT_EQ(register_with(64, Access::kRemoteRead), 0);
}

}  // namespace
}  // namespace simverbs::test
