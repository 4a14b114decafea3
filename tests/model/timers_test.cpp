// Coded times and the acknowledgement syndrome against figures written down by hand.
#include "simverbs/model/timers.hpp"

#include <array>
#include <chrono>
#include <cstdint>

#include <gtest/gtest.h>

#include "simverbs/model/aeth.hpp"
#include "simverbs/model/personalities.hpp"

namespace simverbs {
namespace {

using std::chrono::microseconds;

// ibv_modify_qp's min_rnr_timer, in microseconds.
constexpr auto kRnrMicroseconds = std::to_array<int>({
    655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,    320,
    480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
    20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
});

TEST(Timers, RnrCodesStandForTheTimesOfTheTable) {
    ASSERT_EQ(kRnrMicroseconds.size(), kRnrTimerCodes);
    for (std::uint8_t code = 0; code < kRnrTimerCodes; ++code) {
        EXPECT_EQ(rnr_timer(code), microseconds(kRnrMicroseconds[code])) << unsigned{code};
    }
}

TEST(Timers, AckTimeoutDoublesWithEachCodeAndZeroIsForEver) {
    EXPECT_FALSE(ack_timeout(0).has_value());
    EXPECT_EQ(ack_timeout(1), std::chrono::nanoseconds(8192));
    EXPECT_EQ(ack_timeout(14), std::chrono::nanoseconds(67'108'864));
    EXPECT_EQ(ack_timeout(31), std::chrono::nanoseconds(8'796'093'022'208));
    for (std::uint8_t code = 2; code < kAckTimeoutCodes; ++code) {
        EXPECT_EQ(*ack_timeout(code), *ack_timeout(static_cast<std::uint8_t>(code - 1)) * 2);
    }
}

TEST(Timers, ConnectX6GivesUpWhenItWasMeasuredToGiveUp) {
    const auto eight_tries = [](std::uint8_t code) {
        return std::chrono::duration<double>(*ack_timeout(kConnectX6, code) * 8).count();
    };
    EXPECT_NEAR(eight_tries(14), 3.67, 0.02);
    EXPECT_NEAR(eight_tries(20), 58.6, 0.1);
    EXPECT_EQ(ack_timeout(kConnectX6, 1), ack_timeout(kConnectX6, 16));
    EXPECT_FALSE(ack_timeout(kConnectX6, 0).has_value());
    EXPECT_EQ(ack_timeout(kSpec, 14), ack_timeout(14));
}

TEST(AethSyndrome, EncodesAsTheSpecificationWritesIt) {
    EXPECT_EQ(AethSyndrome::ack(kCreditsUnlimited).encoded(), 0x1F);
    EXPECT_EQ(AethSyndrome::ack(0).encoded(), 0x00);
    EXPECT_EQ(AethSyndrome::rnr_nak(0).encoded(), 0x20);
    EXPECT_EQ(AethSyndrome::rnr_nak(12).encoded(), 0x2C);
    EXPECT_EQ(AethSyndrome::nak(NakCode::kPsnSequenceError).encoded(), 0x60);
    EXPECT_EQ(AethSyndrome::nak(NakCode::kInvalidRequest).encoded(), 0x61);
    EXPECT_EQ(AethSyndrome::nak(NakCode::kRemoteAccessError).encoded(), 0x62);
    EXPECT_EQ(AethSyndrome::nak(NakCode::kRemoteOperationalError).encoded(), 0x63);
    EXPECT_EQ(AethSyndrome::nak(NakCode::kInvalidRdRequest).encoded(), 0x64);
}

TEST(AethSyndrome, DecodesWhatItEncodesAndNothingReserved) {
    unsigned decoded = 0;
    for (unsigned byte = 0; byte < 256; ++byte) {
        const auto syndrome = decode_aeth_syndrome(static_cast<std::uint8_t>(byte));
        if (!syndrome) {
            EXPECT_TRUE(byte >= 0x80 || (byte & 0x60U) == 0x40) << byte;
            continue;
        }
        ++decoded;
        EXPECT_EQ(syndrome->encoded(), byte);
    }
    EXPECT_EQ(decoded, 96U);
}

TEST(AethSyndrome, AReservedNakCodeHasNoName) {
    EXPECT_FALSE(decode_aeth_syndrome(0x65)->nak_code().has_value());
    EXPECT_EQ(decode_aeth_syndrome(0x62)->nak_code(), NakCode::kRemoteAccessError);
    EXPECT_FALSE(AethSyndrome::ack(2).nak_code().has_value());
}

TEST(AethSyndrome, CreditsAreRoundedDown) {
    EXPECT_EQ(AethSyndrome::ack_with_receives(0).value, 0);
    EXPECT_EQ(AethSyndrome::ack_with_receives(5).value, 4);
    EXPECT_EQ(AethSyndrome::ack_with_receives(6).value, 5);
    EXPECT_EQ(AethSyndrome::ack_with_receives(1000).value, 19);
    EXPECT_EQ(AethSyndrome::ack_with_receives(1'000'000).value, 30);
}

TEST(AethSyndrome, CreditCodesFollowTheSpecificationsSteps) {
    // From code 3 on, the table alternates factors of 4/3 and 3/2.
    for (std::size_t code = 5; code < kReceivesByCreditCode.size(); ++code) {
        EXPECT_EQ(kReceivesByCreditCode[code], kReceivesByCreditCode[code - 2] * 2) << code;
    }
}

}  // namespace
}  // namespace simverbs
