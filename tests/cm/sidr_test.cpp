// The resolution of service ids (IBA 12.11): answers, losses, repetitions.
#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cm/cm_pair.hpp"

namespace simverbs::cm {
namespace {

using test::CmPair;
using test::Fate;
using testing::ElementsAre;
using namespace fabric::literals;

SidrReqParameters resolution() {
    return {.address = test::address_of(1),
            .service_id = test::kServiceId,
            .pkey = 0xFFFF,
            .timeout = 100_ms,
            .max_cm_retries = 3,
            .private_data = {1, 2, 3}};
}

// The passive side answers with this.
void answer_with(CmPair& pair, const SidrRepParameters& parameters) {
    pair.passive.on_event = [&pair, parameters](const CmEvent& event) {
        EXPECT_EQ(pair.passive.cm.find(event.connection)->send_sidr_rep(parameters), 0);
        pair.passive.cm.destroy(event.connection);
    };
}

TEST(CmSidr, TellsTheQueuePairOfAService) {
    CmPair pair;
    answer_with(pair, {.qpn = 0x77,
                       .qkey = 0x0123'4567,
                       .ece = {.vendor_id = 0x15B3, .options = 1},
                       .info = {5},
                       .private_data = {6, 7}});
    ASSERT_EQ(pair.active.connection().send_sidr_req(resolution()), 0);
    EXPECT_EQ(pair.active_state(), CmState::kSidrReqSent);
    pair.run();
    EXPECT_THAT(pair.passive.events(), ElementsAre("SIDR_REQ_RECEIVED"));
    EXPECT_EQ(pair.passive.seen[0].event.listener, pair.listener);
    const SidrReq request = std::get<SidrReq>(*pair.passive.seen[0].event.message);
    EXPECT_EQ(request.pkey, 0xFFFF);
    EXPECT_EQ(request.private_data[2], 3);
    ASSERT_THAT(pair.active.events(), ElementsAre("SIDR_REP_RECEIVED"));
    const SidrRep reply = std::get<SidrRep>(*pair.active.seen[0].event.message);
    EXPECT_EQ(reply.status, SidrStatus::kValid);
    EXPECT_EQ(reply.qpn, 0x77U);
    EXPECT_EQ(reply.qkey, 0x0123'4567U);
    EXPECT_EQ(reply.service_id, test::kServiceId);
    EXPECT_EQ(reply.ece.vendor_id, 0x15B3U);
    EXPECT_EQ(reply.info, PrivateData{5});
    EXPECT_EQ(reply.private_data[1], 7);
    EXPECT_EQ(pair.active_state(), CmState::kIdle);
    EXPECT_EQ(pair.loop.now(), fabric::kSimStart + 10_us);
    EXPECT_EQ(pair.passive.cm.size(), 1U) << "the listener";
}

TEST(CmSidr, EachStatusArrives) {
    for (const auto& row : kSidrStatusNames) {
        CmPair pair;
        answer_with(pair, {.status = row.code});
        pair.active.connection().send_sidr_req(resolution());
        pair.run();
        EXPECT_EQ(std::get<SidrRep>(*pair.active.seen.at(0).event.message).status, row.code);
    }
}

TEST(CmSidr, AServiceThatNobodyOffersIsNotSupported) {
    CmPair pair;
    SidrReqParameters parameters = resolution();
    parameters.service_id = 4;
    pair.active.connection().send_sidr_req(parameters);
    pair.run();
    EXPECT_EQ(static_cast<int>(std::get<SidrRep>(*pair.active.seen.at(0).event.message).status), 1);
    EXPECT_TRUE(pair.passive.seen.empty());
}

TEST(CmSidr, ARequestIsRepeatedAndGivenUp) {
    CmPair pair;
    pair.carrier.judge = [](int, CmMessage, int) { return Fate{.copies = 0}; };
    pair.active.connection().send_sidr_req(resolution());
    pair.run();
    EXPECT_EQ(pair.carrier.count(0, CmMessage::kSidrReq), 4);
    EXPECT_THAT(pair.active.events(), ElementsAre("SIDR_REQ_ERROR"));
    EXPECT_EQ(pair.loop.now(), fabric::kSimStart + 400_ms);
    EXPECT_EQ(pair.active_state(), CmState::kIdle);
}

TEST(CmSidr, ARequestUnderWorkIsNotReportedTwice) {
    CmPair pair;
    pair.active.connection().send_sidr_req(resolution());
    pair.run();
    EXPECT_THAT(pair.passive.events(), ElementsAre("SIDR_REQ_RECEIVED")) << "of four";
    EXPECT_THAT(pair.active.events(), ElementsAre("SIDR_REQ_ERROR"));
}

TEST(CmSidr, ALostAnswerIsAskedForAgain) {
    CmPair pair;
    answer_with(pair, {.qpn = 1});
    pair.carrier.judge = [](int, CmMessage message, int nth) {
        return Fate{.copies = message == CmMessage::kSidrRep && nth == 0 ? 0 : 1};
    };
    pair.active.connection().send_sidr_req(resolution());
    pair.run();
    EXPECT_THAT(pair.passive.events(), ElementsAre("SIDR_REQ_RECEIVED", "SIDR_REQ_RECEIVED"));
    EXPECT_THAT(pair.active.events(), ElementsAre("SIDR_REP_RECEIVED"));
    EXPECT_EQ(pair.loop.now(), fabric::kSimStart + 100_ms + 10_us);
}

TEST(CmSidr, TheSameRequestIdOfAnotherPortIsAnotherRequest) {
    CmPair pair;
    const Datagram request = build(SidrReq{.request_id = 9, .service_id = test::kServiceId});
    Address one = test::address_of(0);
    one.remote.lid = fabric::Lid{30};
    pair.passive.cm.datagram_arrived(request, test::address_of(0));
    pair.passive.cm.datagram_arrived(request, one);
    one.remote.global = fabric::GlobalAddress{.gid = fabric::make_gid(1, fabric::Guid(2))};
    pair.passive.cm.datagram_arrived(request, one);
    pair.passive.cm.datagram_arrived(request, one);
    EXPECT_EQ(pair.passive.seen.size(), 3U);
}

TEST(CmSidr, ADestroyedResolutionIsRejected) {
    CmPair pair;
    pair.passive.on_event = [&pair](const CmEvent& event) {
        pair.passive.cm.destroy(event.connection);
    };
    pair.active.connection().send_sidr_req(resolution());
    pair.run();
    EXPECT_EQ(std::get<SidrRep>(*pair.active.seen.at(0).event.message).status,
              SidrStatus::kRejected);
    pair.active.connection().send_sidr_req(resolution());
    pair.active.cm.destroy(pair.active.id);
    EXPECT_EQ(pair.active.cm.size(), 0U);
    pair.run();
    EXPECT_EQ(pair.active.seen.size(), 1U);
}

TEST(CmSidr, DataHaveTheirLimits) {
    CmPair pair;
    SidrReqParameters parameters = resolution();
    parameters.private_data.resize(217);
    EXPECT_EQ(pair.active.connection().send_sidr_req(parameters), EINVAL);
    parameters.private_data.resize(216);
    EXPECT_EQ(pair.active.connection().send_sidr_req(parameters), 0);
    pair.loop.run_until(pair.loop.now() + test::kWireDelay);
    Connection& asked = pair.passive.connection();
    EXPECT_EQ(asked.send_sidr_rep({.private_data = PrivateData(137)}), EINVAL);
    EXPECT_EQ(asked.send_sidr_rep({.info = PrivateData(73)}), EINVAL);
    EXPECT_EQ(asked.send_sidr_rep({.info = PrivateData(72), .private_data = PrivateData(136)}), 0);
}

}  // namespace
}  // namespace simverbs::cm
