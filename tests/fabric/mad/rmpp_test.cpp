#include "fabric/mad/rmpp.hpp"

#include <numeric>

#include <gtest/gtest.h>

namespace fabric::mad {
namespace {

constexpr SimTime kNow{};

std::vector<std::uint8_t> message_of(std::size_t data_bytes) {
    std::vector<std::uint8_t> message(sa::kDataOffset + data_bytes);
    std::iota(message.begin() + sa::kDataOffset, message.end(), std::uint8_t{1});
    set(message, header::kBaseVersion, 1);
    set(message, header::kClass, static_cast<std::uint64_t>(Class::kSubnAdm));
    set(message, header::kMethod, static_cast<std::uint64_t>(Method::kGetTableResp));
    set(message, rmpp::kVersion, 1);
    return message;
}

// All but what each segment says of itself.
void expect_same_message(std::vector<std::uint8_t> got, std::vector<std::uint8_t> sent) {
    for (std::vector<std::uint8_t>* each : {&got, &sent}) {
        std::fill(each->begin() + header::kBytes, each->begin() + rmpp::kHeaderEnd, 0);
    }
    EXPECT_EQ(got, sent);
}

// Both ends without a network: how often an acknowledgement was due.
int transfer(RmppSender& sender, RmppReceiver& receiver) {
    int acknowledgements = 0;
    while (!sender.all_acknowledged()) {
        EXPECT_TRUE(sender.has_next());
        if (!sender.has_next()) {
            return -1;
        }
        while (sender.has_next()) {
            const Datagram segment = sender.next();
            const auto verdict = receiver.segment_arrived(segment, kNow);
            if (verdict == RmppReceiver::Verdict::kAcknowledge ||
                verdict == RmppReceiver::Verdict::kComplete) {
                ++acknowledgements;
                const Datagram ack = make_acknowledgement(segment, receiver);
                EXPECT_EQ(
                    sender.acknowledged(static_cast<std::uint32_t>(ack.get(rmpp::kSegmentNumber)),
                                        static_cast<std::uint32_t>(ack.get(rmpp::kNewWindowLast))),
                    RmppSender::Answer::kProgress);
            }
        }
    }
    return acknowledgements;
}

TEST(Rmpp, CutsAndJoinsMessagesOfAllLengths) {
    for (const std::size_t length : {0U, 1U, 199U, 200U, 201U, 400U, 12'999U, 40'000U}) {
        const std::vector<std::uint8_t> message = message_of(length);
        RmppSender sender(message);
        RmppReceiver receiver;
        EXPECT_EQ(sender.segment_count(), std::max<std::size_t>((length + 199) / 200, 1));
        transfer(sender, receiver);
        expect_same_message(receiver.take_message(), message);
    }
}

TEST(Rmpp, AcknowledgesTheFirstThenEvery64ThThenTheLast) {
    RmppSender sender(message_of(200 * 130UL));
    RmppReceiver receiver;
    EXPECT_EQ(transfer(sender, receiver), 4);  // after 1, 65, 129, 130
}

TEST(Rmpp, SaysTheLengthInTheFirstAndInTheLastSegment) {
    RmppSender sender(message_of(250));
    EXPECT_TRUE(sender.has_next());
    const Datagram first = sender.next();
    EXPECT_FALSE(sender.has_next()) << "the window is one segment";
    EXPECT_EQ(first.get(rmpp::kPayloadLength), 250U + 2 * 20);
    EXPECT_EQ(first.get(rmpp::kFirst), 1U);
    EXPECT_EQ(first.get(rmpp::kLast), 0U);
    EXPECT_EQ(sender.acknowledged(1, 65), RmppSender::Answer::kProgress);
    const Datagram last = sender.next();
    EXPECT_EQ(last.get(rmpp::kPayloadLength), 50U + 20);
    EXPECT_EQ(last.get(rmpp::kLast), 1U);
}

TEST(Rmpp, ASegmentBehindAGapWaits) {
    RmppSender sender(message_of(600));
    RmppReceiver receiver;
    EXPECT_EQ(receiver.segment_arrived(sender.next(), kNow), RmppReceiver::Verdict::kAcknowledge);
    sender.acknowledged(1, 65);
    const Datagram second = sender.next();
    EXPECT_EQ(receiver.segment_arrived(sender.next(), kNow), RmppReceiver::Verdict::kHold);
    EXPECT_EQ(receiver.segment_arrived(second, kNow), RmppReceiver::Verdict::kComplete);
    expect_same_message(receiver.take_message(), message_of(600));
    EXPECT_EQ(receiver.segment_arrived(second, kNow), RmppReceiver::Verdict::kAcknowledge);
}

TEST(Rmpp, RepeatsWhatWasNotAcknowledged) {
    RmppSender sender(message_of(600));
    sender.next();
    sender.acknowledged(1, 65);
    sender.next();
    sender.next();
    EXPECT_FALSE(sender.has_next());
    sender.rewind();
    EXPECT_EQ(sender.next().get(rmpp::kSegmentNumber), 2U);
}

TEST(Rmpp, RefusesAcknowledgementsOfWhatWasNotSent) {
    RmppSender sender(message_of(600));
    sender.next();
    EXPECT_EQ(sender.acknowledged(2, 65), RmppSender::Answer::kRefused) << "beyond the window";
    EXPECT_EQ(sender.acknowledged(1, 0), RmppSender::Answer::kRefused) << "a window before it";
    EXPECT_EQ(sender.acknowledged(0, 1), RmppSender::Answer::kProgress);
}

TEST(Rmpp, TurnsTheMethodRoundInAcknowledgements) {
    RmppSender sender(message_of(600));
    RmppReceiver receiver;
    const Datagram segment = sender.next();
    receiver.segment_arrived(segment, kNow);
    const Datagram ack = make_acknowledgement(segment, receiver);
    EXPECT_EQ(ack.get(header::kMethod), static_cast<std::uint64_t>(Method::kGetTable));
    EXPECT_EQ(ack.get(rmpp::kType), rmpp::kAck);
    EXPECT_EQ(ack.get(rmpp::kNewWindowLast), 65U);
    EXPECT_EQ(ack.get(rmpp::kFirst), 0U);
    EXPECT_EQ(make_abort(segment, rmpp::kTooManyRetries).get(rmpp::kStatus), 126U);
}

}  // namespace
}  // namespace fabric::mad
