// Choices of a personality that one device makes one way and another the other way.
#include <cerrno>

#include <gmock/gmock.h>

#include "simverbs/model/personalities.hpp"

#include "tests/support/pair.hpp"

namespace simverbs::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using namespace std::chrono_literals;

constexpr auto kWithImm = static_cast<std::uint32_t>(WcFlag::kWithImm);
constexpr auto kGrh = static_cast<std::uint32_t>(WcFlag::kGrh);

PairOptions of(const char* personality) {
    return {.personality = personality, .topology = "eth-pair"};
}

TEST(PersonalityChoices, AWrongCurrentStateIsRefusedOrBelieved) {
    QpValues values;
    values.current_state = static_cast<std::uint32_t>(QpState::kInit);
    values.access = kAllRights.bits;
    Pair spec(of("spec"));
    EXPECT_EQ(spec.a.qp.modify_to(QpState::kRts, QpAttr::kCurState, values), EINVAL);
    Pair rxe(of("rxe"));
    EXPECT_EQ(rxe.a.qp.modify_to(QpState::kRts, QpAttr::kCurState, values), EINVAL)
        << "there is no row from INIT to RTS";
    values.current_state = static_cast<std::uint32_t>(QpState::kSqe);
    EXPECT_EQ(rxe.a.qp.modify_to(QpState::kErr), 0);
    values.current_state = static_cast<std::uint32_t>(QpState::kRts);
    EXPECT_EQ(rxe.a.qp.modify_to(QpState::kRts, QpAttr::kCurState, values), 0);
    EXPECT_EQ(rxe.a.qp.state(), QpState::kRts);
    values.current_state = 77;
    EXPECT_EQ(rxe.a.qp.modify_to(QpState::kRts, QpAttr::kCurState, values), EINVAL);
}

// The row of the cause says which, and personalities have rows of their own.
TEST(PersonalityChoices, ABadLocalKeyIsAProtectionOrAnOperationError) {
    const auto status_of_a_bad_key = [](const char* personality) {
        Pair pair(of(personality));
        Send send = send_of(pair.a, 1, 0, 8);
        send.segments[0].lkey ^= 0x100;
        pair.a.qp.post(send);
        pair.drive();
        return statuses(pair.a.send_cq.poll());
    };
    EXPECT_THAT(status_of_a_bad_key("spec"), ElementsAre(WcStatus::kLocProtErr));
    EXPECT_THAT(status_of_a_bad_key("rxe"), ElementsAre(WcStatus::kLocQpOpErr));
}

// From RTR to RTS with these values; the retry counts afterwards.
int rts_with(Pair& pair, const QpValues& values) {
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kReset), 0);
    const PairOptions& options = pair.options();
    QpValues init = init_values(options);
    QpValues rtr = rtr_values(options, pair.b.lid(), pair.b.qp.qpn());
    rtr.path = pair.b.path_to();
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kInit, kInitAttrs, init), 0);
    EXPECT_EQ(pair.a.qp.modify_to(QpState::kRtr, kRtrAttrs, rtr), 0);
    return pair.a.qp.modify_to(QpState::kRts, kRtsAttrs, values);
}

TEST(PersonalityChoices, ValuesBeyondTheirBitsAreRefusedOrCut) {
    QpValues retries = rts_values({});
    retries.retry_count = 15;
    retries.rnr_retry = 10;
    QpValues psn = rts_values({});
    psn.sq_psn = 0x5000012;
    Pair spec(of("spec"));
    EXPECT_EQ(rts_with(spec, retries), EINVAL);
    EXPECT_EQ(rts_with(spec, psn), EINVAL);
    for (const char* personality : {"connectx6", "rxe"}) {
        Pair pair(of(personality));
        EXPECT_EQ(rts_with(pair, retries), 0) << personality;
        EXPECT_EQ(pair.a.qp.query().values.retry_count, 7);
        EXPECT_EQ(pair.a.qp.query().values.rnr_retry, 2);
    }
    Pair connectx6(of("connectx6"));
    EXPECT_EQ(rts_with(connectx6, psn), EINVAL);
    Pair rxe(of("rxe"));
    EXPECT_EQ(rts_with(rxe, psn), 0);
    EXPECT_EQ(rxe.a.qp.query().values.sq_psn, 0x12U);
    QpValues timeout = rts_values({});
    timeout.timeout = 32;
    EXPECT_EQ(rts_with(rxe, timeout), EINVAL) << "the one that rxe looks at";
}

TEST(PersonalityChoices, AnAddressHandleOfTooHighAServiceLevelIsRefusedOrCut) {
    for (const char* personality : {"spec", "rxe"}) {
        Pair pair(of(personality));
        AddressVector path = pair.b.path_to();
        path.sl = 16;
        const int error = pair.a.host.ask(CreateAh{.pd = pair.a.pd, .path = path});
        EXPECT_EQ(error, std::string_view(personality) == "rxe" ? 0 : EINVAL);
    }
}

TEST(PersonalityChoices, AFailedCompletionKeepsItsOpcodeOrHasNone) {
    for (const char* personality : {"spec", "rxe"}) {
        const bool keeps = std::string_view(personality) == "spec";
        Pair pair(of(personality));
        Send write = write_of(pair.a, pair.b, 1, 0, 8);
        write.rkey = 0x77777777;
        pair.b.qp.post_receive(2, {pair.b.segment(0, 8)});
        pair.a.qp.post(write);
        pair.drive();
        const std::vector<Cqe> failed = pair.a.send_cq.poll();
        ASSERT_THAT(statuses(failed), ElementsAre(WcStatus::kRemAccessErr));
        EXPECT_EQ(failed[0].opcode, keeps ? static_cast<std::uint32_t>(WcOpcode::kRdmaWrite) : 0U);
        const std::vector<Cqe> flushed = pair.b.receive_cq.poll();
        ASSERT_THAT(statuses(flushed), ElementsAre(WcStatus::kWrFlushErr));
        EXPECT_EQ(flushed[0].opcode, keeps ? static_cast<std::uint32_t>(WcOpcode::kRecv) : 0U);
    }
}

TEST(PersonalityChoices, LengthAndImmediateOfASendAreItsReceiversOrBoths) {
    for (const char* personality : {"spec", "rxe"}) {
        const bool both = std::string_view(personality) == "rxe";
        Pair pair(of(personality));
        Send send = send_of(pair.a, 1, 0, 24);
        send.opcode = WrOpcode::kSendWithImm;
        pair.b.qp.post_receive(2, {pair.b.segment(0, 64)});
        pair.a.qp.post(send);
        pair.drive();
        const std::vector<Cqe> sent = pair.a.send_cq.poll();
        ASSERT_THAT(statuses(sent), ElementsAre(WcStatus::kSuccess));
        EXPECT_EQ(sent[0].byte_length, both ? 24U : 0U);
        EXPECT_EQ(sent[0].wc_flags, both ? kWithImm : 0U);
        const std::vector<Cqe> received = pair.b.receive_cq.poll();
        ASSERT_THAT(statuses(received), ElementsAre(WcStatus::kSuccess));
        EXPECT_EQ(received[0].byte_length, 24U);
        EXPECT_EQ(received[0].wc_flags, both ? kWithImm | kGrh : kWithImm);
    }
}

TEST(PersonalityChoices, AnOverrunLosesTheEntryAloneAndTheQueueGoesOn) {
    PairOptions options = of("rxe");
    options.cq_entries = 3;  // as rounded there: a power of two less one
    Pair pair(options);
    for (std::uint64_t i = 0; i < 5; ++i) {
        pair.a.qp.post(write_of(pair.a, pair.b, i, 0, 8));
    }
    pair.drive();
    EXPECT_THAT(pair.a.take_events(), ElementsAre(AsyncEvent::kCqErr, AsyncEvent::kCqErr));
    EXPECT_EQ(pair.a.qp.state(), QpState::kRts);
    EXPECT_THAT(ids(pair.a.send_cq.poll()), ElementsAre(0, 1, 2));
    pair.a.qp.post(write_of(pair.a, pair.b, 9, 0, 8));
    pair.drive();
    EXPECT_THAT(ids(pair.a.send_cq.poll()), ElementsAre(9));
}

TEST(PersonalityChoices, WaitingForAReceiverCountsAgainstTheRetriesOrNot) {
    for (const char* personality : {"spec", "rxe"}) {
        PairOptions options = of(personality);
        options.timeout = 12;  // 16.8 ms a try
        options.retry_count = 2;
        Pair pair(options);
        pair.a.qp.post(send_of(pair.a, 1, 0, 8));
        pair.advance(200ms);
        const std::vector<Cqe> before = pair.a.send_cq.poll();
        pair.b.qp.post_receive(2, {pair.b.segment(0, 8)});
        pair.advance(200ms);
        const std::vector<Cqe> after = pair.a.send_cq.poll();
        if (std::string_view(personality) == "rxe") {
            EXPECT_THAT(statuses(before), ElementsAre(WcStatus::kRetryExcErr));
            EXPECT_EQ(pair.a.qp.state(), QpState::kErr);
        } else {
            EXPECT_THAT(before, IsEmpty());
            EXPECT_THAT(statuses(after), ElementsAre(WcStatus::kSuccess));
        }
    }
}

TEST(PersonalityChoices, AReadWithoutInitiatorDepthFailsOrNeverCompletes) {
    for (const char* personality : {"spec", "rxe"}) {
        PairOptions options = of(personality);
        options.max_rd_atomic = 0;
        Pair pair(options);
        pair.a.qp.post(read_of(pair.a, pair.b, 1, 0, 8));
        pair.advance(1s);
        if (std::string_view(personality) == "rxe") {
            EXPECT_THAT(pair.a.send_cq.poll(), IsEmpty());
            EXPECT_EQ(pair.a.qp.state(), QpState::kRts);
        } else {
            EXPECT_THAT(statuses(pair.a.send_cq.poll()), ElementsAre(WcStatus::kLocQpOpErr));
        }
    }
}

}  // namespace
}  // namespace simverbs::test
