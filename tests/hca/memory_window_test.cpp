// Windows at the device: which binding is granted, what a bound key opens, and who keeps whom
// alive.
#include "simverbs/hca/memory_window.hpp"

#include <cerrno>

#include <gtest/gtest.h>

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

constexpr AccessRights kBindable = kAllRights | Access::kMwBind;
constexpr AccessRights kReadWrite = Access::kRemoteRead | Access::kRemoteWrite;
constexpr std::size_t kOffset = 1024;
constexpr std::size_t kLength = 4096;

// A window of `b` and a region it may be bound to, in which `a` reads and writes by the window's
// key.
class Windows : public testing::Test {
  protected:
    explicit Windows(const char* personality = "spec") : pair_({.personality = personality}) {
        region_ = pair_.b.register_memory(pair_.b.memory.data(), Side::kMemoryBytes, kBindable);
        pair_.a.fill(0, 64, 1);
    }

    AllocateMwReply allocate(WindowType type) {
        return pair_.b.host.must(
            AllocateMw{.pd = pair_.b.pd, .type = static_cast<std::uint32_t>(type)});
    }
    [[nodiscard]] WindowBinding binding(const AllocateMwReply& window,
                                        AccessRights access = kReadWrite) const {
        return {.window = window.handle,
                .lkey = region_.lkey,
                .rkey = window.rkey + 1,
                .access = access.bits,
                .address = pair_.b.address(kOffset),
                .length = kLength};
    }
    WcStatus bind(const WindowBinding& wanted) {
        pair_.b.qp.post({.wr_id = 1, .opcode = WrOpcode::kBindMw, .binding = wanted});
        pair_.drive();
        return statuses(pair_.b.send_cq.poll()).at(0);
    }
    WcStatus write(std::uint32_t rkey, std::uint64_t address, std::size_t length = 64) {
        Send send = write_of(pair_.a, pair_.b, 2, 0, length);
        send.remote_address = address;
        send.rkey = rkey;
        return ask(send);
    }
    WcStatus ask(const Send& send) {
        pair_.a.qp.post(send);
        pair_.drive();
        return statuses(pair_.a.send_cq.poll()).at(0);
    }

    Pair pair_;
    Region region_;
};

TEST_F(Windows, OpenWhatTheyAreBoundToAndNoMore) {
    struct Case {
        std::size_t offset;
        std::size_t length;
        WcStatus status;
    };
    constexpr auto kCases =
        std::to_array<Case>({{kOffset, kLength, WcStatus::kSuccess},
                             {kOffset - 1, 64, WcStatus::kRemAccessErr},
                             {kOffset + kLength - 63, 64, WcStatus::kRemAccessErr}});
    for (const Case& row : kCases) {
        Pair pair;
        const Region region =
            pair.b.register_memory(pair.b.memory.data(), Side::kMemoryBytes, kBindable);
        const AllocateMwReply window = pair.b.host.must(AllocateMw{.pd = pair.b.pd, .type = 1});
        pair.b.qp.post({.opcode = WrOpcode::kBindMw,
                        .binding = {.window = window.handle,
                                    .lkey = region.lkey,
                                    .rkey = window.rkey + 1,
                                    .access = kReadWrite.bits,
                                    .address = pair.b.address(kOffset),
                                    .length = kLength}});
        pair.drive();
        const std::vector<std::byte> before = pair.b.memory;
        Send write = write_of(pair.a, pair.b, 2, 0, row.length);
        write.segments = {pair.a.segment(0, row.length)};
        pair.a.fill(0, row.length, 9);
        write.remote_address = pair.b.address(row.offset);
        write.rkey = window.rkey + 1;
        pair.a.qp.post(write);
        pair.drive();
        EXPECT_EQ(statuses(pair.a.send_cq.poll()), std::vector{row.status}) << row.offset;
        if (row.status == WcStatus::kSuccess) {
            EXPECT_EQ(pair.b.bytes(row.offset, row.length), pair.a.bytes(0, row.length));
        } else {
            EXPECT_TRUE(pair.b.memory == before) << "bytes landed outside the window";
        }
    }
}

TEST_F(Windows, GiveNoRightThatTheBindingDidNotName) {
    const AllocateMwReply window = allocate(WindowType::kType2);
    EXPECT_EQ(bind(binding(window, Access::kRemoteRead)), WcStatus::kSuccess);
    EXPECT_EQ(write(window.rkey + 1, pair_.b.address(kOffset)), WcStatus::kRemAccessErr);
}

TEST_F(Windows, OpenNothingBeforeTheyAreBound) {
    const AllocateMwReply window = allocate(WindowType::kType1);
    EXPECT_EQ(write(window.rkey, pair_.b.address(kOffset)), WcStatus::kRemAccessErr);
}

TEST_F(Windows, HaveNoLocalKey) {
    const AllocateMwReply window = allocate(WindowType::kType1);
    EXPECT_EQ(bind(binding(window)), WcStatus::kSuccess);
    Send send = send_of(pair_.b, 3, kOffset, 8);
    send.segments[0].lkey = window.rkey + 1;
    pair_.b.qp.post(send);
    pair_.drive();
    EXPECT_EQ(statuses(pair_.b.send_cq.poll()), std::vector{WcStatus::kLocProtErr});
}

TEST_F(Windows, KeepTheIndexOfTheirKeyWhateverTheBindingSays) {
    const AllocateMwReply window = allocate(WindowType::kType2);
    WindowBinding wanted = binding(window);
    wanted.rkey ^= 0x5A5A00U;
    EXPECT_EQ(bind(wanted), WcStatus::kSuccess);
    EXPECT_EQ(write(window.rkey + 1, pair_.b.address(kOffset)), WcStatus::kSuccess);
    EXPECT_EQ(write(wanted.rkey, pair_.b.address(kOffset)), WcStatus::kRemAccessErr);
}

TEST_F(Windows, OfType1AreBoundAnewAndTheOldKeyIsStale) {
    const AllocateMwReply window = allocate(WindowType::kType1);
    EXPECT_EQ(bind(binding(window)), WcStatus::kSuccess);
    WindowBinding again = binding(window);
    again.rkey = window.rkey + 2;
    EXPECT_EQ(bind(again), WcStatus::kSuccess);
    EXPECT_EQ(write(window.rkey + 2, pair_.b.address(kOffset)), WcStatus::kSuccess);
    EXPECT_EQ(write(window.rkey + 1, pair_.b.address(kOffset)), WcStatus::kRemAccessErr);
}

TEST_F(Windows, OfType1AreUnboundByLengthZero) {
    const AllocateMwReply window = allocate(WindowType::kType1);
    EXPECT_EQ(bind(binding(window)), WcStatus::kSuccess);
    EXPECT_EQ(pair_.b.host.ask(DeregisterMr{.handle = region_.handle}), EBUSY);
    WindowBinding nothing = binding(window);
    nothing.length = 0;
    nothing.rkey = window.rkey + 2;
    EXPECT_EQ(bind(nothing), WcStatus::kSuccess);
    EXPECT_EQ(write(window.rkey + 2, pair_.b.address(kOffset), 8), WcStatus::kRemAccessErr);
    EXPECT_EQ(pair_.b.host.ask(DeregisterMr{.handle = region_.handle}), 0);
}

TEST_F(Windows, OfType2ServeTheQueuePairThatBoundThem) {
    const AllocateMwReply window = allocate(WindowType::kType2);
    const QueuePairHandle other_of_b = pair_.b.make_qp();
    QueuePairHandle other_of_a = pair_.a.make_qp();
    pair_.connect(other_of_b, pair_.a, other_of_a);
    pair_.connect(other_of_a, pair_.b, other_of_b);
    EXPECT_EQ(bind(binding(window)), WcStatus::kSuccess);
    Send send = write_of(pair_.a, pair_.b, 2, kOffset, 64);
    send.rkey = window.rkey + 1;
    EXPECT_EQ(ask(send), WcStatus::kSuccess);
    other_of_a.post(send);
    pair_.drive();
    EXPECT_EQ(statuses(pair_.a.send_cq.poll()), std::vector{WcStatus::kRemAccessErr});
}

TEST_F(Windows, OfType2GoWithTheQueuePairThatBoundThem) {
    const AllocateMwReply window = allocate(WindowType::kType2);
    EXPECT_EQ(bind(binding(window)), WcStatus::kSuccess);
    EXPECT_EQ(pair_.b.host.ask(DeregisterMr{.handle = region_.handle}), EBUSY);
    pair_.b.qp.destroy();
    EXPECT_EQ(pair_.b.host.ask(DeregisterMr{.handle = region_.handle}), 0);
    EXPECT_EQ(pair_.b.host.ask(DeallocateMw{.handle = window.handle}), 0);
}

TEST_F(Windows, AreInvalidatedByTheirOwnQueuePair) {
    const AllocateMwReply window = allocate(WindowType::kType2);
    EXPECT_EQ(bind(binding(window)), WcStatus::kSuccess);
    pair_.b.qp.post({.opcode = WrOpcode::kLocalInv, .immediate = window.rkey + 1});
    pair_.drive();
    EXPECT_EQ(statuses(pair_.b.send_cq.poll()), std::vector{WcStatus::kSuccess});
    WindowBinding again = binding(window);
    again.rkey = window.rkey + 2;
    EXPECT_EQ(bind(again), WcStatus::kSuccess) << "a free window may be bound";
    EXPECT_EQ(write(window.rkey + 1, pair_.b.address(kOffset)), WcStatus::kRemAccessErr);
}

TEST_F(Windows, OfType1AreNotInvalidated) {
    const AllocateMwReply window = allocate(WindowType::kType1);
    EXPECT_EQ(bind(binding(window)), WcStatus::kSuccess);
    pair_.b.qp.post({.opcode = WrOpcode::kLocalInv, .immediate = window.rkey + 1});
    pair_.drive();
    EXPECT_EQ(statuses(pair_.b.send_cq.poll()), std::vector{WcStatus::kLocQpOpErr});
}

TEST_F(Windows, AreInvalidatedByThePeersSend) {
    const AllocateMwReply window = allocate(WindowType::kType2);
    EXPECT_EQ(bind(binding(window)), WcStatus::kSuccess);
    pair_.b.qp.post_receive(11, {pair_.b.segment(0, 64)});
    Send send = send_of(pair_.a, 3, 0, 64);
    send.opcode = WrOpcode::kSendWithInv;
    send.immediate = window.rkey + 1;
    EXPECT_EQ(ask(send), WcStatus::kSuccess);
    const std::vector<Cqe> received = pair_.b.receive_cq.poll();
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(received[0].wc_flags, static_cast<std::uint32_t>(WcFlag::kWithInv));
    EXPECT_EQ(received[0].immediate, window.rkey + 1);
    EXPECT_EQ(pair_.b.host.ask(DeregisterMr{.handle = region_.handle}), 0) << "no longer bound";
}

// The data has landed; neither ACK nor NAK tells the sender.
TEST_F(Windows, AKeyThatCannotBeInvalidatedStopsTheReceiver) {
    pair_.b.qp.post_receive(11, {pair_.b.segment(0, 64)});
    Send send = send_of(pair_.a, 3, 0, 64);
    send.opcode = WrOpcode::kSendWithInv;
    send.immediate = region_.rkey;
    EXPECT_EQ(ask(send), WcStatus::kRetryExcErr);
    const std::vector<Cqe> received = pair_.b.receive_cq.poll();
    EXPECT_EQ(statuses(received), std::vector{WcStatus::kMwBindErr});
    EXPECT_EQ(received[0].vendor_error,
              static_cast<std::uint32_t>(FaultCause::kRemoteInvalidateRefused));
    EXPECT_EQ(pair_.b.qp.state(), QpState::kErr);
    EXPECT_TRUE(pair_.b.take_events().empty());
    EXPECT_EQ(pair_.b.bytes(0, 64), pair_.a.bytes(0, 64));
    EXPECT_EQ(write(region_.rkey, pair_.b.address(0)), WcStatus::kWrFlushErr);
}

// Every rule of a binding, broken alone.
struct BadBinding {
    const char* name;
    std::function<void(Pair&, WindowBinding&)> spoil;
    WindowType type = WindowType::kType2;

    friend void PrintTo(const BadBinding& row, std::ostream* out) { *out << row.name; }
};

void to_region_with(Pair& pair, WindowBinding& binding, AccessRights rights, std::uint32_t pd = 0) {
    binding.lkey =
        pair.b.register_memory(pair.b.memory.data(), Side::kMemoryBytes, rights, pd).lkey;
}

const auto kBadBindings = std::to_array<BadBinding>({
    {"region_without_mw_bind",
     [](Pair& pair, WindowBinding& binding) { to_region_with(pair, binding, kAllRights); }},
    {"write_to_region_without_local_write",
     [](Pair& pair, WindowBinding& binding) {
         to_region_with(pair, binding, Access::kRemoteRead | Access::kMwBind);
     }},
    {"region_of_another_pd",
     [](Pair& pair, WindowBinding& binding) {
         to_region_with(pair, binding, kBindable, pair.b.host.must(AllocatePd{}).handle);
     }},
    {"zero_based_region",
     [](Pair& pair, WindowBinding& binding) {
         to_region_with(pair, binding, kBindable | Access::kZeroBased);
     }},
    {"window_of_another_pd",
     [](Pair& pair, WindowBinding& binding) {
         const std::uint32_t pd = pair.b.host.must(AllocatePd{}).handle;
         binding.window = pair.b.host.must(AllocateMw{.pd = pd, .type = 2}).handle;
     }},
    {"no_window", [](Pair&, WindowBinding& binding) { binding.window ^= 0x40; }},
    {"region_for_a_window",
     [](Pair& pair, WindowBinding& binding) { binding.window = pair.b.region.handle; }},
    {"no_region", [](Pair&, WindowBinding& binding) { binding.lkey = 0; }},
    {"remote_key_for_local", [](Pair&, WindowBinding& binding) { binding.lkey |= 1; }},
    {"before_the_region",
     [](Pair& pair, WindowBinding& binding) { binding.address = pair.b.address(0) - 1; }},
    {"past_the_region",
     [](Pair& pair, WindowBinding& binding) {
         binding.address = pair.b.address(Side::kMemoryBytes) - 1;
         binding.length = 2;
     }},
    {"longer_than_memory", [](Pair&, WindowBinding& binding) { binding.length = ~0ULL; }},
    {"an_unknown_right", [](Pair&, WindowBinding& binding) { binding.access |= 1U << 30U; }},
    {"type2_of_length_zero", [](Pair&, WindowBinding& binding) { binding.length = 0; }},
    {"type1_zero_based",
     [](Pair&, WindowBinding& binding) { binding.access |= AccessRights(Access::kZeroBased).bits; },
     WindowType::kType1},
});

class RefusedBinding : public testing::WithParamInterface<BadBinding>, public Windows {};

TEST_P(RefusedBinding, IsAMemoryManagementErrorAndChangesNothing) {
    const AllocateMwReply window = allocate(GetParam().type);
    WindowBinding wanted = binding(window);
    GetParam().spoil(pair_, wanted);
    EXPECT_EQ(bind(wanted), WcStatus::kMwBindErr);
    EXPECT_EQ(pair_.b.qp.state(), QpState::kErr);
    EXPECT_EQ(pair_.b.host.ask(DeregisterMr{.handle = region_.handle}), 0) << "bound after all";
}

INSTANTIATE_TEST_SUITE_P(Window, RefusedBinding, testing::ValuesIn(kBadBindings),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_F(Windows, OfType2ThatAreBoundAreNotBoundAgain) {
    const AllocateMwReply window = allocate(WindowType::kType2);
    EXPECT_EQ(bind(binding(window)), WcStatus::kSuccess);
    EXPECT_EQ(bind(binding(window)), WcStatus::kMwBindErr);
}

TEST_F(Windows, ZeroBasedAreNamedByOffset) {
    const AllocateMwReply window = allocate(WindowType::kType2);
    EXPECT_EQ(bind(binding(window, kReadWrite | Access::kZeroBased)), WcStatus::kSuccess);
    EXPECT_EQ(write(window.rkey + 1, 32), WcStatus::kSuccess);
    EXPECT_EQ(pair_.b.bytes(kOffset + 32, 64), pair_.a.bytes(0, 64));
    EXPECT_EQ(write(window.rkey + 1, kLength - 63), WcStatus::kRemAccessErr);
}

TEST_F(Windows, AreCountedAndKeepTheirPdAlive) {
    Host& host = pair_.b.host;
    const std::uint32_t pd = host.must(AllocatePd{}).handle;
    const std::uint32_t window = host.must(AllocateMw{.pd = pd, .type = 1}).handle;
    EXPECT_EQ(host.ask(DeallocatePd{.handle = pd}), EBUSY);
    EXPECT_EQ(host.ask(DeallocateMw{.handle = window}), 0);
    EXPECT_EQ(host.ask(DeallocateMw{.handle = window}), ENOENT);
    EXPECT_EQ(host.ask(DeallocatePd{.handle = pd}), 0);
    EXPECT_EQ(host.ask(AllocateMw{.pd = pd, .type = 1}), ENOENT);
    EXPECT_EQ(host.ask(AllocateMw{.pd = pair_.b.pd, .type = 3}), EINVAL);
    EXPECT_EQ(host.ask(DeregisterMr{.handle = allocate(WindowType::kType1).handle}), ENOENT);
}

TEST_F(Windows, AreDeallocatedWhileBound) {
    const AllocateMwReply window = allocate(WindowType::kType1);
    EXPECT_EQ(bind(binding(window)), WcStatus::kSuccess);
    EXPECT_EQ(pair_.b.host.ask(DeallocateMw{.handle = window.handle}), 0);
    EXPECT_EQ(write(window.rkey + 1, pair_.b.address(kOffset)), WcStatus::kRemAccessErr);
    EXPECT_EQ(pair_.b.host.ask(DeregisterMr{.handle = region_.handle}), 0);
}

TEST_F(Windows, AreClosedWithTheirContext) {
    EXPECT_EQ(bind(binding(allocate(WindowType::kType2))), WcStatus::kSuccess);
    pair_.b.host.close();
    pair_.drive();
}

class WindowsOfConnectX6 : public Windows {
  protected:
    WindowsOfConnectX6() : Windows("connectx6") {}
};

TEST_F(WindowsOfConnectX6, AreComparedWithTheirRegionAtTheAccess) {
    const AllocateMwReply window = allocate(WindowType::kType1);
    WindowBinding wanted = binding(window);
    wanted.address = pair_.b.address(Side::kMemoryBytes) - 64;
    wanted.length = 128;
    EXPECT_EQ(bind(wanted), WcStatus::kSuccess);
    EXPECT_EQ(write(window.rkey + 1, wanted.address, 64), WcStatus::kSuccess);
    EXPECT_EQ(write(window.rkey + 1, wanted.address + 1, 64), WcStatus::kRemAccessErr);
}

TEST_F(WindowsOfConnectX6, BoundWhollyOutsideOpenNothing) {
    const AllocateMwReply window = allocate(WindowType::kType1);
    WindowBinding wanted = binding(window);
    wanted.address = pair_.b.address(Side::kMemoryBytes) + 4096;
    EXPECT_EQ(bind(wanted), WcStatus::kSuccess);
    EXPECT_EQ(write(window.rkey + 1, wanted.address, 8), WcStatus::kRemAccessErr);
}

// libmlx5 sets the start address 0 (set_umr_mkey_seg).
TEST_F(WindowsOfConnectX6, BasedOnZeroAreNamedByOffset) {
    const AllocateMwReply window = allocate(WindowType::kType2);
    EXPECT_EQ(bind(binding(window, kReadWrite | Access::kZeroBased)), WcStatus::kSuccess);
    EXPECT_EQ(write(window.rkey + 1, 0), WcStatus::kSuccess);
    EXPECT_EQ(write(window.rkey + 1, pair_.b.address(kOffset)), WcStatus::kRemAccessErr);
}

TEST_F(WindowsOfConnectX6, ARefusedUnsignaledBindIsSilent) {
    WindowBinding wanted = binding(allocate(WindowType::kType2));
    wanted.lkey = 0;
    pair_.b.qp.post({.wr_id = 1, .opcode = WrOpcode::kBindMw, .flags = {}, .binding = wanted});
    pair_.drive();
    EXPECT_TRUE(pair_.b.send_cq.poll().empty());
    EXPECT_EQ(pair_.b.qp.state(), QpState::kErr);
}

TEST_F(Windows, ARefusedUnsignaledBindCompletes) {
    WindowBinding wanted = binding(allocate(WindowType::kType2));
    wanted.lkey = 0;
    pair_.b.qp.post({.wr_id = 1, .opcode = WrOpcode::kBindMw, .flags = {}, .binding = wanted});
    pair_.drive();
    EXPECT_EQ(statuses(pair_.b.send_cq.poll()), std::vector{WcStatus::kMwBindErr});
}

class WindowsOfRxe : public Windows {
  protected:
    WindowsOfRxe() : Windows("rxe") {}
};

TEST_F(WindowsOfRxe, OpenTheWholeRegion) {
    const AllocateMwReply window = allocate(WindowType::kType1);
    EXPECT_EQ(bind(binding(window)), WcStatus::kSuccess);
    EXPECT_EQ(write(window.rkey + 1, pair_.b.address(0)), WcStatus::kSuccess);
    EXPECT_EQ(write(window.rkey + 1, pair_.b.address(Side::kMemoryBytes) - 64), WcStatus::kSuccess);
    EXPECT_EQ(pair_.b.host.ask(DeregisterMr{.handle = region_.handle}), EINVAL);
}

TEST_F(WindowsOfRxe, ALocalInvalidateThatIsRefusedIsAnOperationError) {
    pair_.b.qp.post({.opcode = WrOpcode::kLocalInv, .immediate = region_.rkey});
    pair_.drive();
    EXPECT_EQ(statuses(pair_.b.send_cq.poll()), std::vector{WcStatus::kLocQpOpErr});
}

}  // namespace
}  // namespace simverbs::test
