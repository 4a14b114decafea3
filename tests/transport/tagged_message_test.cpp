// Messages with tag headers at the responder, and the requests of the device among a program's.
#include <cstring>

#include <gmock/gmock.h>

#include "tests/transport/engine_under_test.hpp"

namespace simverbs::test {
namespace {

using enum PacketPosition;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t kWhole = ~std::uint64_t{0};
constexpr std::uint32_t kHeader = TagHeader::kBytes;

class Tagged : public ResponderUnderTest {
  public:
    Tagged() { responder.match_tags(list); }

    void add(std::uint64_t tag, std::uint32_t length,
             std::uint32_t lkey = RecordingEffects::kGoodKey) {
        const auto handle = static_cast<std::uint8_t>(list.size());
        ASSERT_TRUE(list.add({.wr_id = 50U + handle,
                              .tag = tag,
                              .mask = kWhole,
                              .segment = {kLocal, length, lkey},
                              .handle = handle}));
    }
    // Sets the head of the messages from now on.
    void head(TagOpcode opcode, std::uint64_t tag, std::uint32_t data = 0) {
        effects.head.assign(2UL * kHeader, std::byte{0});
        build({opcode, 9, tag}, std::span(effects.head).first<TagHeader::kBytes>());
        effects.head[kHeader + 15] = static_cast<std::byte>(data);
    }
    [[nodiscard]] std::vector<WcOpcode> opcodes() const {
        std::vector<WcOpcode> found;
        for (const ReceiveCompletion& completion : effects.received) {
            found.push_back(completion.opcode);
        }
        return found;
    }
    [[nodiscard]] std::vector<std::uint32_t> flags() const {
        std::vector<std::uint32_t> found;
        for (const ReceiveCompletion& completion : effects.received) {
            found.push_back(completion.tag_flags.bits);
        }
        return found;
    }

    TagList list{8};
};

constexpr std::uint32_t kMatch = static_cast<std::uint32_t>(WcFlag::kTmMatch);
constexpr std::uint32_t kData = static_cast<std::uint32_t>(WcFlag::kTmDataValid);

TEST(TaggedMessage, OnlyWhatFollowsTheHeaderIsPlaced) {
    Tagged test;
    test.add(5, 4 * kMtu);
    test.head(TagOpcode::kEager, 5);
    test.send(kFirst, 100, kMtu);
    test.send(kMiddle, 101, kMtu);
    test.send(kLast, 102, 10);
    ASSERT_THAT(test.effects.placed, SizeIs(3));
    EXPECT_EQ(test.effects.placed[0].address, kLocal);
    EXPECT_EQ(test.effects.placed[0].length, kMtu - kHeader);
    EXPECT_EQ(test.effects.placed[1].address, kLocal + kMtu - kHeader);
    EXPECT_EQ(test.effects.placed[2].address, kLocal + 2UL * kMtu - kHeader);
    EXPECT_THAT(test.flags(), ElementsAre(kMatch, kData));
    EXPECT_EQ(test.effects.received[1].byte_length, 2 * kMtu + 10 - kHeader);
    EXPECT_EQ(test.effects.received[1].wr_id, 50U);
}

TEST(TaggedMessage, ABufferIsFullToItsLastByte) {
    Tagged test;
    test.add(5, 100);
    test.head(TagOpcode::kEager, 5);
    test.send(kOnly, 100, 100 + kHeader);
    EXPECT_THAT(test.effects.failures, IsEmpty());
    test.add(5, 100);
    test.send(kOnly, 101, 101 + kHeader);
    EXPECT_THAT(test.effects.failures, ElementsAre(FaultCause::kReceiveTooSmall));
    EXPECT_EQ(test.effects.received.back().status, WcStatus::kLocLenErr);
}

TEST(TaggedMessage, ARetriedMessageIsLookedUpAgainAndCountedOnce) {
    Tagged test;
    test.head(TagOpcode::kEager, 5);
    test.send(kOnly, 100, 64);
    test.send(kOnly, 100, 64);
    EXPECT_TRUE(test.list.synchronized()) << "nothing took it";
    test.post_receive(1, 64);
    test.send(kOnly, 100, 64);
    EXPECT_FALSE(test.list.synchronized());
    test.list.report(1);
    EXPECT_TRUE(test.list.synchronized());
    EXPECT_THAT(test.opcodes(), ElementsAre(WcOpcode::kTmRecv));
}

TEST(TaggedMessage, ADuplicateTakesNothing) {
    Tagged test;
    test.add(5, 64);
    test.add(5, 64);
    test.head(TagOpcode::kEager, 5);
    test.send(kOnly, 100, 64);
    test.send(kOnly, 100, 64);
    EXPECT_EQ(test.list.size(), 1U);
    EXPECT_THAT(test.effects.received, SizeIs(1));
}

TEST(TaggedMessage, AHeaderThatCannotBeReadIsTheSendersFault) {
    Tagged test;
    test.add(5, 64);
    test.effects.head_outcome = CopyOutcome::kSourceFault;
    test.send(kOnly, 100, 64);
    EXPECT_THAT(test.effects.source_faults, SizeIs(1));
    EXPECT_EQ(test.list.size(), 1U);
}

TEST(TaggedMessage, ARendezvousIsReadAndThenAnswered) {
    Tagged test;
    test.add(5, 64);
    test.head(TagOpcode::kRendezvous, 5, 60);
    test.send(kOnly, 100, 2 * kHeader);
    EXPECT_THAT(test.effects.placed, IsEmpty());
    ASSERT_THAT(test.effects.device_work, SizeIs(1));
    EXPECT_EQ(test.effects.device_work[0].wqe.opcode,
              static_cast<std::uint8_t>(WrOpcode::kRdmaRead));
    EXPECT_THAT(test.flags(), ElementsAre(kMatch));
    test.responder.rendezvous_ended(FaultCause::kSuccess);
    EXPECT_THAT(test.flags(), ElementsAre(kMatch, kData));
    EXPECT_EQ(test.effects.received[1].byte_length, 60U);
    ASSERT_THAT(test.effects.device_work, SizeIs(2));
    const TagHeader fin = parse_tag_header(test.effects.device_work[1].tail);
    EXPECT_EQ(fin.opcode, TagOpcode::kFinish);
    EXPECT_EQ(fin.context, 9U);
    EXPECT_EQ(fin.tag, 5U);
}

TEST(TaggedMessage, ARendezvousThatFailsHasNoAnswer) {
    Tagged test;
    test.add(5, 64);
    test.head(TagOpcode::kRendezvous, 5, 60);
    test.send(kOnly, 100, 2 * kHeader);
    test.responder.rendezvous_ended(FaultCause::kRemoteKey);
    EXPECT_EQ(test.effects.received[1].status, WcStatus::kTmRndvIncomplete);
    EXPECT_EQ(test.effects.received[1].cause, FaultCause::kRendezvousReadFailed);
    EXPECT_THAT(test.effects.device_work, SizeIs(1));
    test.responder.rendezvous_ended(FaultCause::kFlushed);
    EXPECT_THAT(test.effects.received, SizeIs(2)) << "none is left";
}

TEST(TaggedMessage, WhatDoesNotFitIsLeftToSoftware) {
    Tagged test;
    test.add(5, 59);
    test.head(TagOpcode::kRendezvous, 5, 60);
    test.send(kOnly, 100, 2 * kHeader);
    EXPECT_THAT(test.effects.device_work, IsEmpty());
    ASSERT_THAT(test.effects.received, SizeIs(1));
    EXPECT_EQ(test.effects.received[0].status, WcStatus::kTmRndvIncomplete);
    EXPECT_EQ(test.effects.received[0].cause, FaultCause::kRendezvousLeftToSoftware);
    EXPECT_EQ(test.effects.received[0].byte_length, kHeader);
    EXPECT_THAT(test.effects.failures, IsEmpty());
}

TEST(TaggedMessage, AnUnexpectedOneAsksSoftwareToReportWhenItIsFarBehind) {
    Tagged test;
    for (int i = 0; i < 0x3FFF - 1; ++i) {
        test.list.count_unexpected();
    }
    test.head(TagOpcode::kEager, 5);
    for (std::uint32_t i = 0; i < 2; ++i) {
        test.post_receive(i, 64);
        test.send(kOnly, 100 + i, 64);
    }
    EXPECT_THAT(test.flags(), ElementsAre(0, static_cast<std::uint32_t>(WcFlag::kTmSyncReq)));
}

TEST(TaggedMessage, ASolicitedRendezvousWakesWhenItsDataIsThere) {
    Tagged test;
    test.add(5, 64);
    test.head(TagOpcode::kRendezvous, 5, 60);
    Packet packet = request(MessageKind::kSend, kOnly, 100);
    packet.payload.length = 2 * kHeader;
    packet.solicited = true;
    test.give(packet);
    test.responder.rendezvous_ended(FaultCause::kSuccess);
    ASSERT_THAT(test.effects.received, SizeIs(2));
    EXPECT_FALSE(test.effects.received[0].solicited);
    EXPECT_TRUE(test.effects.received[1].solicited);
}

// ---- the requester

DeviceWork read_work(std::uint32_t length) {
    DeviceWork work;
    work.wqe.opcode = static_cast<std::uint8_t>(WrOpcode::kRdmaRead);
    work.wqe.segment_count = 1;
    work.wqe.remote_address = kRemote;
    const Segment segment{kLocal, length, RecordingEffects::kGoodKey};
    std::memcpy(work.tail.data(), &segment, sizeof segment);
    return work;
}

class WithDeviceWork : public RequesterUnderTest {
  public:
    explicit WithDeviceWork(std::uint32_t slots = 64)
        : RequesterUnderTest(connected_attributes(), slots) {
        requester.admit_device_work();
    }
};

TEST(DeviceWork, GoesBeforeWhatWasPostedAndCompletesNothingOfIt) {
    WithDeviceWork test;
    test.write(WrOpcode::kSend, 8);
    test.requester.add(read_work(8));
    test.doorbell();
    EXPECT_THAT(test.take_opcodes(), ElementsAre("RDMA_READ_REQUEST", "SEND_ONLY"));
    test.read_response(100, kOnly, 8);
    EXPECT_THAT(test.effects.rendezvous, ElementsAre(FaultCause::kSuccess));
    EXPECT_THAT(test.ids(), IsEmpty());
    test.ack(101);
    EXPECT_THAT(test.ids(), ElementsAre(0));
    EXPECT_EQ(test.effects.sent[0].freed_to, 1U) << "the first slot of the send queue";
}

TEST(DeviceWork, HasRoomBesideAFullSendQueue) {
    WithDeviceWork test(4);
    for (int i = 0; i < 4; ++i) {
        test.write(WrOpcode::kSend, 8);
    }
    for (int i = 0; i < 100; ++i) {
        test.requester.add(read_work(8));
    }
    test.doorbell();
    for (std::uint32_t psn = 100; psn < 200; ++psn) {
        test.read_response(psn, kOnly, 8);
    }
    test.ack(203);
    EXPECT_THAT(test.effects.rendezvous, SizeIs(100));
    EXPECT_THAT(test.ids(), ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(test.effects.sent.back().freed_to, 4U);
}

TEST(DeviceWork, StaysWhenTheSendQueueIsResized) {
    WithDeviceWork test(64);
    test.requester.add(read_work(8));
    test.post(WrOpcode::kSend, 8);
    test.take_psns();
    test.requester.resize(send_queue_shape(4, 4, 64));
    test.post(WrOpcode::kSend, 8);
    test.read_response(100, kOnly, 8);
    test.ack(102);
    EXPECT_THAT(test.effects.rendezvous, ElementsAre(FaultCause::kSuccess));
    EXPECT_THAT(test.ids(), ElementsAre(0, 1));
}

TEST(DeviceWork, IsFlushedWithTheRest) {
    WithDeviceWork test;
    test.post(WrOpcode::kSend, 8);
    test.requester.add(read_work(8));
    test.requester.flush(FaultCause::kFlushed);
    EXPECT_THAT(test.effects.rendezvous, ElementsAre(FaultCause::kFlushed));
    EXPECT_THAT(test.statuses(), ElementsAre(WcStatus::kWrFlushErr));
    EXPECT_FALSE(test.requester.has_outstanding());
}

TEST(DeviceWork, ThatThePeerRefusesTakesTheQueuePairDown) {
    WithDeviceWork test;
    test.requester.add(read_work(8));
    test.run();
    test.nak(100, NakCode::kRemoteAccessError, FaultCause::kRemoteKey);
    EXPECT_THAT(test.effects.rendezvous, ElementsAre(FaultCause::kRemoteKey));
    EXPECT_THAT(test.effects.failures, ElementsAre(FaultCause::kRemoteKey));
}

}  // namespace
}  // namespace simverbs::test
