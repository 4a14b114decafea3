// The engine as a queue pair sees it: what it tells both its halves, and what either half tells of
// itself.
#include "simverbs/transport/message_engine.hpp"

#include <gmock/gmock.h>

#include "tests/transport/engine_under_test.hpp"

namespace simverbs::test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Field;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class NoMemory final : public AddressSpace {
  public:
    bool read(std::uint64_t /*address*/, std::byte* /*bytes*/, std::size_t /*length*/) override {
        return false;
    }
    bool write(std::uint64_t /*address*/, const std::byte* /*bytes*/,
               std::size_t /*length*/) override {
        return false;
    }
    [[nodiscard]] bool is_own() const override { return false; }
    [[nodiscard]] std::byte* reach(std::uint64_t /*address*/, std::uint64_t /*length*/) override {
        return nullptr;
    }
};

class MessageEngineTest : public testing::Test {
  protected:
    MessageEngineTest() { engine_.start_receiving(); }

    void answer_read(std::uint32_t length) {
        Packet packet = request(MessageKind::kRead, PacketPosition::kOnly, 100);
        packet.dma_length = length;
        packet.rkey = RecordingEffects::kGoodKey;
        effects_.end(engine_.receive(packet));
    }
    void transmitter_free() {
        ASSERT_EQ(effects_.timers.erase(EngineTimer::kPacing), 1U);
        effects_.end(engine_.timer_expired(EngineTimer::kPacing));
    }

    NoMemory memory_;
    NoMemory other_memory_;
    QpAttributes attributes_ = connected_attributes();
    RecordingEffects effects_{attributes_};
    MessageEngine engine_{
        attributes_,          kSpec,   send_queue_shape(4, 1, 0), {.max_segments = 1}, nullptr,
        {&memory_, &memory_}, effects_};
};

TEST_F(MessageEngineTest, IsNotIdleWhileItAnswersARead) {
    EXPECT_TRUE(engine_.idle());
    answer_read(20 * kMtu);
    EXPECT_FALSE(engine_.idle());
    transmitter_free();
    EXPECT_TRUE(engine_.idle());
}

TEST_F(MessageEngineTest, HoldsItsAnswersToTheRate) {
    RateReaction rate(effects_);
    rate.notified(100'000'000'000);
    engine_.set_rate(rate);
    answer_read(20 * kMtu);
    EXPECT_THAT(effects_.packets, SizeIs(1));
    EXPECT_EQ(effects_.timers[EngineTimer::kPacing], rate.time_of(kMtu));
}

TEST_F(MessageEngineTest, AnswersOutOfTheMemoryOfItsOwner) {
    const auto is_from = [](AddressSpace& space) {
        return Field(&Packet::payload, Field(&Payload::space, &space));
    };
    answer_read(20 * kMtu);
    EXPECT_THAT(effects_.take_packets(), AllOf(Not(IsEmpty()), Each(is_from(memory_))));
    engine_.move_memory({&other_memory_, &other_memory_});
    transmitter_free();
    EXPECT_THAT(effects_.take_packets(), AllOf(Not(IsEmpty()), Each(is_from(other_memory_))));
}

}  // namespace
}  // namespace simverbs::test
