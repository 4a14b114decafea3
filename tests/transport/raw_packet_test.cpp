#include "simverbs/transport/raw_packet.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simverbs/model/personalities.hpp"
#include "simverbs/wire/ethernet_headers.hpp"

#include "tests/transport/recording_effects.hpp"

namespace simverbs::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

class RawPacketEngineTest : public testing::Test {
  protected:
    RawPacketEngineTest() {
        attributes.service = Service::kRawPacket;
        attributes.state = QpState::kRts;
    }

    static PostedSend frame(std::uint32_t length, SendFlags flags = SendFlag::kSignaled) {
        PostedSend send;
        send.wqe.opcode = static_cast<std::uint8_t>(WrOpcode::kSend);
        send.wqe.flags = static_cast<std::uint8_t>(flags.bits);
        send.wqe.segment_count = 1;
        send.segments = {{0x1000, length, RecordingEffects::kGoodKey}};
        return send;
    }
    void post(const PostedSend& send) { engine.post(effects.post(send)); }
    [[nodiscard]] std::vector<WcStatus> sent() const {
        std::vector<WcStatus> all;
        for (const SendCompletion& completion : effects.sent) {
            all.push_back(completion.status);
        }
        return all;
    }
    void arrive(std::uint32_t length) {
        const MemorySpan span{0x9000, length};
        effects.end(
            engine.receive_frame({{nullptr, &span, 0, length, 1}, {}, true}, FrameHeaders()));
    }

    QpAttributes attributes;
    RecordingEffects effects{attributes};
    RawPacketEngine engine{attributes, kSpec, send_queue_shape(64, 2, 64), 2, {}, {}, effects};
};

TEST_F(RawPacketEngineTest, SendsAndCompletesAtOnce) {
    post(frame(100));
    post(frame(200, SendFlag::kIpCsum));
    effects.end(engine.run());
    ASSERT_EQ(effects.frames.size(), 2U);
    EXPECT_EQ(effects.frames[0].length, 100U);
    EXPECT_FALSE(effects.frames[0].fill_checksums);
    EXPECT_TRUE(effects.frames[1].fill_checksums);
    EXPECT_THAT(sent(), ElementsAre(WcStatus::kSuccess));  // the second is unsignaled
}

TEST_F(RawPacketEngineTest, WaitsForThePortAfterABurst) {
    for (int i = 0; i < 20; ++i) {
        post(frame(100));
    }
    effects.end(engine.run());
    EXPECT_EQ(effects.frames.size(), 16U);
    EXPECT_TRUE(effects.armed(EngineTimer::kPacing));
    effects.end(engine.run());
    EXPECT_EQ(effects.frames.size(), 20U);
}

TEST_F(RawPacketEngineTest, SendsOnlyInRts) {
    attributes.state = QpState::kSqd;
    post(frame(100));
    effects.end(engine.run());
    EXPECT_THAT(effects.frames, IsEmpty());
}

TEST_F(RawPacketEngineTest, EachMistakeHasItsStatusAndCause) {
    effects.frame_verdict = FrameVerdict::kWrongLength;
    post(frame(5000));
    effects.end(engine.run());
    effects.frame_verdict = FrameVerdict::kUnreadable;
    attributes.state = QpState::kRts;
    post(frame(100));
    effects.end(engine.run());
    effects.frame_verdict = FrameVerdict::kSent;
    attributes.state = QpState::kRts;
    PostedSend wrong = frame(100);
    wrong.segments[0].lkey = RecordingEffects::kOtherPdKey;
    post(wrong);
    effects.end(engine.run());
    attributes.state = QpState::kRts;
    wrong = frame(100);
    wrong.wqe.segment_count = 3;  // of two
    post(wrong);
    effects.end(engine.run());
    attributes.state = QpState::kRts;
    wrong = frame(100, SendFlag::kSignaled | SendFlag::kInline);
    wrong.wqe.inline_length = 65;  // of 64
    post(wrong);
    effects.end(engine.run());
    attributes.state = QpState::kRts;
    wrong = frame(100);
    wrong.wqe.opcode = static_cast<std::uint8_t>(WrOpcode::kTso);  // without a header
    post(wrong);
    effects.end(engine.run());
    attributes.state = QpState::kRts;
    wrong = frame(100);
    wrong.wqe.opcode = static_cast<std::uint8_t>(WrOpcode::kRdmaWrite);
    post(wrong);
    effects.end(engine.run());
    EXPECT_THAT(sent(),
                ElementsAre(WcStatus::kLocLenErr, WcStatus::kLocProtErr, WcStatus::kLocProtErr,
                            WcStatus::kLocQpOpErr, WcStatus::kLocQpOpErr, WcStatus::kLocQpOpErr,
                            WcStatus::kLocQpOpErr));
    EXPECT_THAT(
        effects.failures,
        ElementsAre(FaultCause::kMessageTooLong, FaultCause::kGatherRange, FaultCause::kGatherKey,
                    FaultCause::kMalformedSend, FaultCause::kMalformedSend,
                    FaultCause::kMalformedSend, FaultCause::kOpcodeNotForService));
}

TEST_F(RawPacketEngineTest, DoesNotBelieveAnIndexBeyondItsQueue) {
    engine.post(65);
    effects.end(engine.run());
    EXPECT_THAT(effects.frames, IsEmpty());
}

TEST_F(RawPacketEngineTest, FlushesWhatIsLeft) {
    attributes.state = QpState::kErr;
    post(frame(100));
    post(frame(100, {}));
    engine.flush_sends();
    EXPECT_EQ(effects.sent.size(), 2U);  // unsignaled ones too
    EXPECT_THAT(sent(), Each(WcStatus::kWrFlushErr));
    EXPECT_THAT(effects.frames, IsEmpty());
}

// A segment of the data may lie in several of the request's, and leaves the others out.
TEST_F(RawPacketEngineTest, CutsARequestIntoFramesAndCompletesItOnce) {
    RawPacketEngine cutting{attributes, kSpec, send_queue_shape(64, 2, 0, 64), 2, {}, {}, effects};
    PostedSend send = frame(0);
    send.wqe.opcode = static_cast<std::uint8_t>(WrOpcode::kTso);
    send.wqe.segment_count = 2;
    put_segmentation({.header_bytes = 54, .segment_bytes = 100}, send.wqe);
    const std::vector<Segment> segments = {{0x1000, 150, RecordingEffects::kGoodKey},
                                           {0x2000, 1850, RecordingEffects::kGoodKey}};
    std::vector<std::byte> header(54);
    header[12] = std::byte{0x08};  // IPv4
    header[14] = std::byte{0x45};
    header[23] = std::byte{6};  // TCP
    header[46] = std::byte{0x50};
    const auto bytes = std::as_bytes(std::span(segments));
    send.inline_bytes.assign(bytes.begin(), bytes.end());
    send.inline_bytes.insert(send.inline_bytes.end(), header.begin(), header.end());
    cutting.post(effects.post(send));
    effects.end(cutting.run());
    EXPECT_EQ(effects.frames.size(), 16U) << "a burst";
    EXPECT_TRUE(effects.armed(EngineTimer::kPacing));
    EXPECT_THAT(sent(), IsEmpty());
    effects.end(cutting.run());
    ASSERT_EQ(effects.frames.size(), 20U);
    for (const SentFrame& cut : effects.frames) {
        EXPECT_EQ(cut.length, 154U);
    }
    EXPECT_EQ(effects.frames[0].spans, 2U);
    EXPECT_EQ(effects.frames[1].spans, 3U);
    EXPECT_EQ(effects.frames[2].spans, 2U);
    EXPECT_THAT(sent(), ElementsAre(WcStatus::kSuccess));
    EXPECT_EQ(effects.sent[0].opcode, WcOpcode::kTso);
}

TEST_F(RawPacketEngineTest, AGapFollowsEachFrameOfAPacedQueuePair) {
    attributes.pacing = {.rate_kbps = 8'000, .burst_bytes = 0};
    post(frame(100));
    post(frame(100));
    effects.end(engine.run());
    EXPECT_EQ(effects.frames.size(), 1U);
    EXPECT_EQ(effects.timers[EngineTimer::kPacing], std::chrono::microseconds(100));
    effects.end(engine.run());  // a doorbell before its time
    EXPECT_EQ(effects.frames.size(), 1U);
    effects.disarm(EngineTimer::kPacing);
    effects.end(engine.run());
    EXPECT_EQ(effects.frames.size(), 2U);
}

TEST_F(RawPacketEngineTest, ReceivesIntoTheSegmentsThatItNeeds) {
    effects.receives.push_back(
        {7,
         {{0x1000, 64, RecordingEffects::kGoodKey}, {0x2000, 64, RecordingEffects::kReadOnlyKey}}});
    arrive(60);  // the second segment is not touched, so its key is nobody's business
    ASSERT_EQ(effects.received.size(), 1U);
    EXPECT_EQ(effects.received[0].byte_length, 60U);
    EXPECT_TRUE(effects.received[0].ip_checksum_holds);
    EXPECT_EQ(effects.messages_delivered, 1U);
}

TEST_F(RawPacketEngineTest, AReceiveWithMoreSegmentsThanTheQueueHasIsMalformed) {
    effects.receives.push_back({7, std::vector<Segment>(3)});
    arrive(60);
    ASSERT_EQ(effects.received.size(), 1U);
    EXPECT_EQ(effects.received[0].status, WcStatus::kLocQpOpErr);
    EXPECT_THAT(effects.failures, ElementsAre(FaultCause::kUnackedMalformedReceive));
}

TEST_F(RawPacketEngineTest, KeepsAReceiveThatIsTooSmall) {
    effects.receives.push_back({7, {{0x1000, 64, RecordingEffects::kGoodKey}}});
    arrive(65);
    EXPECT_THAT(effects.received, IsEmpty());
    arrive(64);
    EXPECT_EQ(effects.received.size(), 1U);
    EXPECT_THAT(effects.failures, IsEmpty());
}

}  // namespace
}  // namespace simverbs::test
