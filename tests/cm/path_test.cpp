// Alternate paths: in the REQ, loaded later (IBA 12.8), and taken.
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

constexpr fabric::SimDuration kRequestTime = 4'429'185'024_ns;

ConnectionPath other_path() {
    return {.path = {.local_lid = fabric::Lid{11},
                     .remote_lid = fabric::Lid{12},
                     .local_gid = fabric::make_gid(1, fabric::Guid(11)),
                     .remote_gid = fabric::make_gid(1, fabric::Guid(12)),
                     .sl = 3,
                     .subnet_local = true},
            .packet_life_time = 16,
            .address = test::address_of(1)};
}
LapParameters load() {
    return {.alternate = other_path(), .remote_cm_response_timeout = 20, .private_data = {4}};
}

class CmPath : public testing::Test {
  protected:
    CmPath() {
        pair.connect();
        pair.active.seen.clear();
        pair.passive.seen.clear();
    }
    LapState active_lap() { return pair.active.connection().lap_state(); }
    LapState passive_lap() { return pair.passive.connection().lap_state(); }

    CmPair pair;
};

TEST_F(CmPath, IsLoadedAndAnswered) {
    pair.passive.on_event = [this](const CmEvent&) {
        EXPECT_EQ(pair.passive.connection().send_apr(AprStatus::kLoaded, {1}, {2}), 0);
    };
    ASSERT_EQ(pair.active.connection().send_lap(load()), 0);
    EXPECT_EQ(pair.active.connection().send_lap(load()), EINVAL) << "one at a time";
    pair.run();
    EXPECT_THAT(pair.passive.events(), ElementsAre("LAP_RECEIVED"));
    EXPECT_THAT(pair.active.events(), ElementsAre("APR_RECEIVED"));
    EXPECT_EQ(active_lap(), LapState::kIdle);
    EXPECT_EQ(passive_lap(), LapState::kIdle);
    const Path& here = *pair.passive.connection().qp_parameters().alternate;
    EXPECT_EQ(here.local_lid, fabric::Lid{12});
    EXPECT_EQ(here.remote_lid, fabric::Lid{11});
    EXPECT_EQ(here.remote_gid, other_path().path.local_gid);
    EXPECT_EQ(pair.passive.connection().qp_parameters().alternate_ack_timeout, 17);
    EXPECT_EQ(std::get<Lap>(*pair.passive.seen[0].event.message).remote_qpn, test::kPassiveQpn);
    EXPECT_EQ(pair.active.connection().qp_attributes(QpState::kRts),
              QpAttrs(QpAttr::kAltPath) | QpAttr::kPathMigState);
    EXPECT_EQ(pair.active.connection().send_lap(load()), 0) << "and another";
}

TEST_F(CmPath, EachStatusArrives) {
    for (const auto& row : kAprStatusNames) {
        pair.passive.on_event = [this, &row](const CmEvent&) {
            pair.passive.connection().send_apr(row.code, {}, {});
        };
        ASSERT_EQ(pair.active.connection().send_lap(load()), 0);
        pair.run();
        EXPECT_EQ(std::get<Apr>(*pair.active.seen.back().event.message).status, row.code);
    }
}

TEST_F(CmPath, ALoadThatNobodyAnswersIsGivenUp) {
    const fabric::SimTime begin = pair.loop.now();
    ASSERT_EQ(pair.active.connection().send_lap(load()), 0);
    pair.run();
    EXPECT_THAT(pair.passive.events(), ElementsAre("LAP_RECEIVED")) << "of four";
    EXPECT_THAT(pair.active.events(), ElementsAre("LAP_ERROR"));
    EXPECT_EQ(pair.loop.now(), begin + 4 * kRequestTime);
    EXPECT_EQ(pair.active_state(), CmState::kEstablished);
    EXPECT_EQ(active_lap(), LapState::kIdle);
}

TEST_F(CmPath, AnAcknowledgedLoadWaitsLonger) {
    pair.passive.on_event = [this](const CmEvent&) {
        EXPECT_EQ(pair.passive.connection().send_mra(22, {}, MraMoment::kNow), 0);
    };
    const fabric::SimTime begin = pair.loop.now();
    ASSERT_EQ(pair.active.connection().send_lap(load()), 0);
    pair.loop.run_until(begin + 10_us);
    EXPECT_EQ(active_lap(), LapState::kMraReceived);
    EXPECT_EQ(passive_lap(), LapState::kMraSent);
    EXPECT_EQ(std::get<Mra>(*pair.active.seen[0].event.message).answers, CmAnswered::kOther);
    pair.run();
    EXPECT_THAT(pair.active.events(), ElementsAre("MRA_RECEIVED", "LAP_ERROR"));
    EXPECT_EQ(pair.carrier.count(1, CmMessage::kMra), 4);
    EXPECT_EQ(pair.loop.now(), begin + 10_us + 4 * (17'179'869'184_ns + 134'217'728_ns));
}

TEST_F(CmPath, ADisconnectionEndsALoad) {
    ASSERT_EQ(pair.active.connection().send_lap(load()), 0);
    pair.loop.run_until(pair.loop.now() + test::kWireDelay);
    pair.disconnect();
    EXPECT_THAT(pair.active.events(), ElementsAre("DREP_RECEIVED", "TIMEWAIT_EXIT"));
    EXPECT_THAT(pair.passive.events(),
                ElementsAre("LAP_RECEIVED", "DREQ_RECEIVED", "TIMEWAIT_EXIT"));
    EXPECT_EQ(pair.carrier.count(0, CmMessage::kLap), 1);
}

TEST_F(CmPath, TheNextConnectionBeginsAnew) {
    ASSERT_EQ(pair.active.connection().send_lap(load()), 0);
    pair.run();
    pair.disconnect();
    ASSERT_EQ(pair.active_state(), CmState::kIdle);
    EXPECT_EQ(active_lap(), LapState::kUninitialized);
    pair.connect();
    EXPECT_FALSE(pair.active.connection().qp_parameters().alternate);
}

TEST_F(CmPath, MigrationTakesTheAlternatePath) {
    EXPECT_EQ(pair.active.connection().migrate(test::address_of(1)), EINVAL) << "there is none";
    pair.passive.on_event = [this](const CmEvent&) {
        pair.passive.connection().send_apr(AprStatus::kLoaded, {}, {});
    };
    pair.active.connection().send_lap(load());
    pair.run();
    Address by_other = test::address_of(1);
    by_other.remote.sl = 3;
    ASSERT_EQ(pair.active.connection().migrate(by_other), 0);
    EXPECT_EQ(pair.active.connection().qp_parameters().primary.local_lid, fabric::Lid{11});
    EXPECT_EQ(pair.active.connection().qp_parameters().ack_timeout, 17);
    EXPECT_EQ(pair.active.connection().address().remote.sl, 3);
}

TEST(CmAlternatePath, ComesWithTheRequest) {
    CmPair pair;
    ReqParameters parameters = test::request_parameters();
    parameters.alternate = other_path();
    pair.connect(parameters);
    const QpParameters& passive = pair.passive.connection().qp_parameters();
    ASSERT_TRUE(passive.alternate);
    EXPECT_EQ(passive.alternate->local_lid, fabric::Lid{12});
    EXPECT_EQ(passive.alternate->sl, 3);
    EXPECT_EQ(passive.alternate_ack_timeout, 17);
    EXPECT_EQ(pair.active.connection().qp_parameters().alternate_ack_timeout, 17);
    EXPECT_TRUE(pair.passive.connection().qp_attributes(QpState::kRtr)->contains(QpAttr::kAltPath));
    EXPECT_TRUE(
        pair.active.connection().qp_attributes(QpState::kRts)->contains(QpAttr::kPathMigState));
    EXPECT_EQ(pair.active.connection().migrate(test::address_of(1)), 0);
}

// A request from another subnet cannot know the LIDs here (Linux cm_process_routed_req).
TEST(CmAlternatePath, PermissiveLidsOfAnotherSubnetAreThoseOfTheDatagram) {
    CmPair pair;
    ReqParameters parameters = test::request_parameters();
    parameters.primary.path.subnet_local = false;
    parameters.primary.path.local_lid = fabric::kPermissiveLid;
    pair.connect(parameters);
    EXPECT_EQ(pair.passive.connection().qp_parameters().primary.remote_lid, fabric::Lid{1});
}

}  // namespace
}  // namespace simverbs::cm
