#include "fabric/mad/management_port.hpp"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/faults/frame_actions.hpp"

#include "tests/fabric/mad/managed_fabric.hpp"

namespace fabric {
namespace {

using mad::Datagram;
using mad::Method;
using test::make_datagram;
using test::make_directed;
using test::ManagedFabric;
using test::RecordingClient;
using test::smp_agent;

constexpr std::uint8_t kPingClass = mad::vendor::kOpenIbPing;

AgentSpec ping_server() {
    AgentSpec spec{.management_class = kPingClass, .oui = {0x00, 0x14, 0x05}};
    spec.methods.set(static_cast<std::size_t>(Method::kGet));
    return spec;
}
AgentSpec sa_server() {
    AgentSpec spec{.management_class = static_cast<std::uint8_t>(mad::Class::kSubnAdm),
                   .class_version = 2,
                   .joins_rmpp = true};
    spec.methods.set(static_cast<std::size_t>(Method::kGetTable));
    return spec;
}

Datagram ping() {
    Datagram made = make_datagram(static_cast<mad::Class>(kPingClass), Method::kGet, 0);
    made.set(mad::vendor::kOui, mad::vendor::kOpenIbOui);
    return made;
}
Datagram answer_to(const RecordingClient::Received& request) {
    Datagram answer;
    std::copy_n(request.bytes.begin(), mad::kDatagramBytes, answer.bytes.begin());
    answer.set(mad::header::kMethod, static_cast<std::uint64_t>(Method::kGetResp));
    return answer;
}

// Two hosts with LIDs, brought up by hand.
class TwoPorts : public testing::Test {
  protected:
    TwoPorts() {
        for (std::uint16_t i = 0; i < 2; ++i) {
            PortAttributes& attributes = fabric.port_of(i).mutable_attributes();
            attributes.lid = Lid{static_cast<std::uint16_t>(i + 1)};
            fabric.port_of(i).apply(PortTrigger::kSetArmed);
            fabric.port_of(i).apply(PortTrigger::kSetActive);
        }
    }
    static DatagramAddress gsi(std::uint16_t lid) {
        return {.lid = Lid{lid}, .qp = kGeneralServicesQp, .qkey = kWellKnownQkey};
    }

    ManagedFabric fabric{"pair"};
};

TEST_F(TwoPorts, AnAnswerFindsItsRequest) {
    RecordingClient server(fabric, fabric.port(1), ping_server());
    RecordingClient client(fabric, fabric.port(0),
                           {.management_class = kPingClass, .oui = {0, 0x14, 5}});
    ASSERT_EQ(client.send(ping(), gsi(2)), 0);
    fabric.run();
    ASSERT_EQ(server.received.size(), 1U);
    EXPECT_FALSE(server.received[0].answers);
    EXPECT_EQ(server.received[0].from.lid, Lid{1});
    EXPECT_EQ(mad::get(server.received[0].bytes, mad::header::kTransactionId),
              std::uint64_t{client.agent.value()} << 32 | 0x1234'5678);
    ASSERT_EQ(client.finished.size(), 1U) << "nobody has answered yet, and time was up";
    EXPECT_EQ(client.finished[0].outcome, SendOutcome::kTimedOut);

    client.finished.clear();
    ASSERT_EQ(client.send(ping(), gsi(2)), 0);
    while (server.received.size() < 2) {
        fabric.loop.run_instant();
    }
    ASSERT_EQ(server.send(answer_to(server.received[1]), server.received[1].from, {}), 0);
    fabric.run();
    ASSERT_EQ(client.received.size(), 1U);
    EXPECT_TRUE(client.received[0].answers);
    EXPECT_EQ(client.received[0].token, 2U);
    ASSERT_EQ(client.finished.size(), 1U);
    EXPECT_EQ(client.finished[0].outcome, SendOutcome::kSent);
    EXPECT_TRUE(fabric.loop.empty());
}

TEST_F(TwoPorts, RepeatsAndGivesUpInVirtualTime) {
    RecordingClient server(fabric, fabric.port(1), ping_server());
    RecordingClient client(fabric, fabric.port(0), {});
    const SimTime begin = fabric.loop.now();
    ASSERT_EQ(client.send(ping(), gsi(2), 20_ms, 3), 0);
    fabric.run();
    EXPECT_EQ(server.received.size(), 4U);
    ASSERT_EQ(client.finished.size(), 1U);
    EXPECT_EQ(client.finished[0].outcome, SendOutcome::kTimedOut);
    EXPECT_EQ(fabric.loop.now(), begin + 80_ms);
}

TEST_F(TwoPorts, WhatWasSentTogetherIsGivenUpTogether) {
    RecordingClient server(fabric, fabric.port(1), ping_server());
    RecordingClient client(fabric, fabric.port(0), {});
    const SimTime begin = fabric.loop.now();
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(client.send(ping(), gsi(2), 20_ms, 1), 0);
    }
    fabric.run();
    ASSERT_EQ(client.finished.size(), 3U);
    for (const auto& sent : client.finished) {
        EXPECT_EQ(sent.outcome, SendOutcome::kTimedOut);
    }
    EXPECT_EQ(fabric.loop.now(), begin + 40_ms);
}

TEST_F(TwoPorts, ALateAnswerIsNobodys) {
    RecordingClient server(fabric, fabric.port(1), ping_server());
    RecordingClient client(fabric, fabric.port(0), {});
    ASSERT_EQ(client.send(ping(), gsi(2), 20_ms), 0);
    fabric.run();
    ASSERT_EQ(server.send(answer_to(server.received.at(0)), server.received[0].from, {}), 0);
    fabric.run();
    EXPECT_TRUE(client.received.empty());
}

TEST_F(TwoPorts, WhatNobodyTakesIsRefusedAsLinuxDoes) {
    RecordingClient client(fabric, fabric.port(0), {});
    const auto answer = client.ask(ping(), gsi(2));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->method(), Method::kGetResp);
    EXPECT_EQ(answer->get(mad::header::kStatus), 0x000CU);
    Datagram report = ping();
    report.set(mad::header::kMethod, static_cast<std::uint64_t>(Method::kReport));
    EXPECT_FALSE(client.ask(report, gsi(2))) << "only Get and Set are answered";
}

TEST_F(TwoPorts, WithoutItsQkeyNothingIsTaken) {
    RecordingClient server(fabric, fabric.port(1), ping_server());
    RecordingClient client(fabric, fabric.port(0), {});
    DatagramAddress to = gsi(2);
    to.qkey = 1;
    EXPECT_FALSE(client.ask(ping(), to));
    EXPECT_TRUE(server.received.empty());
}

TEST_F(TwoPorts, TalksToItself) {
    RecordingClient server(fabric, fabric.port(0), ping_server());
    RecordingClient client(fabric, fabric.port(0), {});
    ASSERT_EQ(client.send(ping(), gsi(1), {}), 0);
    fabric.run();
    ASSERT_EQ(server.received.size(), 1U);
    EXPECT_EQ(fabric.port_of(0).counters().xmit_packets, 0U);
}

// Communication management has the method Send in all its messages, answers included.
AgentSpec communication_agent() {
    AgentSpec spec{.management_class = static_cast<std::uint8_t>(mad::Class::kCommunication),
                   .class_version = 2,
                   .makes_transaction_ids = true};
    spec.methods.set(static_cast<std::size_t>(Method::kSend));
    return spec;
}
Datagram communication_message(std::uint64_t transaction) {
    Datagram made = make_datagram(mad::Class::kCommunication, Method::kSend, 0x0010);
    made.set(mad::header::kClassVersion, 2);
    made.set(mad::header::kTransactionId, transaction);
    return made;
}

TEST_F(TwoPorts, AClientThatMakesItsTransactionIdsKeepsThem) {
    constexpr std::uint64_t kOfThePeer = 0xDEAD'BEEF'0123'4567;
    RecordingClient active(fabric, fabric.port(0), communication_agent());
    RecordingClient passive(fabric, fabric.port(1), communication_agent());
    RecordingClient other(fabric, fabric.port(1), ping_server());
    ASSERT_EQ(active.send(communication_message(kOfThePeer), gsi(2), {}), 0);
    fabric.run();
    ASSERT_EQ(passive.received.size(), 1U);
    EXPECT_EQ(mad::get(passive.received[0].bytes, mad::header::kTransactionId), kOfThePeer);
    EXPECT_FALSE(passive.received[0].answers);
    EXPECT_EQ(passive.received[0].from.lid, Lid{1});
    EXPECT_TRUE(other.received.empty());
    EXPECT_TRUE(fabric.loop.empty());
}

TEST_F(TwoPorts, AClientThatMakesItsTransactionIdsGetsItsAnswers) {
    AgentSpec asking{.makes_transaction_ids = true};
    RecordingClient client(fabric, fabric.port(0), asking);
    Datagram question = ping();
    question.set(mad::header::kTransactionId, std::uint64_t{client.agent.value()} << 32 | 5);
    const auto answer = client.ask(question, gsi(2));
    ASSERT_TRUE(answer) << "refused, since nobody takes it";
    EXPECT_EQ(answer->get(mad::header::kTransactionId),
              std::uint64_t{client.agent.value()} << 32 | 5);
}

TEST_F(TwoPorts, AgentsThatMakeTheirTransactionIdsAreNumberedApart) {
    RecordingClient first(fabric, fabric.port(0), communication_agent());
    RecordingClient second(fabric, fabric.port(0), {});
    EXPECT_EQ(second.agent, AgentId{1}) << "as if there were no other";
    EXPECT_EQ(first.agent, AgentId{0x80'0000});
}

TEST_F(TwoPorts, TwoAgentsDoNotTakeTheSame) {
    RecordingClient server(fabric, fabric.port(0), ping_server());
    EXPECT_FALSE(fabric.port(0).register_agent(ping_server(), server));
    AgentSpec other = ping_server();
    other.oui = {0, 0x14, 6};
    EXPECT_TRUE(fabric.port(0).register_agent(other, server));
    EXPECT_FALSE(fabric.port(0).register_agent({.qp = 2}, server));
    EXPECT_FALSE(fabric.port(0).register_agent({.qp = 1, .management_class = 0x81}, server));
    EXPECT_FALSE(fabric.port(0).register_agent({.management_class = 0x50}, server));
}

TEST_F(TwoPorts, RefusesWhatIsNoDatagram) {
    RecordingClient client(fabric, fabric.port(0), {});
    const std::vector<std::uint8_t> much(300);
    EXPECT_EQ(fabric.port(0).send(client.agent, {.bytes = much, .to = gsi(2)}), EINVAL);
    EXPECT_EQ(fabric.port(0).send(client.agent, {.bytes = std::span(much).first(23)}), EINVAL);
    EXPECT_EQ(fabric.port(0).send(AgentId{99}, {.bytes = ping().bytes, .to = gsi(2)}), EINVAL);
    DatagramAddress to = gsi(2);
    to.pkey_index = 5;
    EXPECT_EQ(client.send(ping(), to), EINVAL);
    RecordingClient smps(fabric, fabric.port(0), smp_agent());
    EXPECT_EQ(smps.send(make_directed(Method::kGet, mad::Attribute::kNodeInfo, {2}),
                        {.lid = kPermissiveLid}),
              EINVAL)
        << "the route begins at another port";
    EXPECT_TRUE(fabric.loop.empty());
}

class LongMessages : public TwoPorts {
  protected:
    LongMessages() {
        message_.resize(mad::sa::kDataOffset + 200 * 100UL + 17);
        for (std::size_t i = mad::sa::kDataOffset; i < message_.size(); ++i) {
            message_[i] = static_cast<std::uint8_t>(i * 7);
        }
    }
    // The whole of a table as an answer of the server's.
    void answer() {
        const RecordingClient::Received request = server_.received.at(0);
        std::copy_n(request.bytes.begin(), mad::header::kBytes, message_.begin());
        mad::set(message_, mad::header::kMethod, static_cast<std::uint64_t>(Method::kGetTableResp));
        mad::set(message_, mad::rmpp::kVersion, 1);
        mad::set(message_, mad::rmpp::kType, mad::rmpp::kData);
        mad::set(message_, mad::rmpp::kActive, 1);
        ASSERT_EQ(
            fabric.port(1).send(
                server_.agent,
                {.bytes = message_, .to = request.from, .timeout = {}, .retries = 3, .token = 77}),
            0);
    }
    void expect_whole() {
        ASSERT_EQ(client_.received.size(), 1U);
        EXPECT_TRUE(client_.received[0].answers);
        const auto& got = client_.received[0].bytes;
        ASSERT_EQ(got.size(), message_.size());
        EXPECT_TRUE(std::equal(got.begin() + mad::sa::kDataOffset, got.end(),
                               message_.begin() + mad::sa::kDataOffset));
        ASSERT_EQ(server_.finished.size(), 1U);
        EXPECT_EQ(server_.finished[0].outcome, SendOutcome::kSent);
        EXPECT_TRUE(fabric.loop.empty());
    }
    void ask() {
        Datagram request = make_datagram(mad::Class::kSubnAdm, Method::kGetTable, 0x11);
        ASSERT_EQ(client_.send(request, gsi(2), 5_s), 0);
        while (server_.received.empty()) {
            fabric.loop.run_instant();
        }
    }

    // The n-th frame of a host.
    FrameFault losing(std::size_t host, std::uint64_t nth) {
        return {fabric.bus,
                FaultId(1),
                std::make_unique<EveryFrame>(),
                OccasionRules{.nth = nth},
                std::make_unique<DropFrame>(),
                {&fabric.network.link(0).direction_from(fabric.port_of(host))}};
    }

    RecordingClient server_{fabric, fabric.port(1), sa_server()};
    RecordingClient client_{
        fabric, fabric.port(0), {.management_class = 3, .class_version = 2, .joins_rmpp = true}};
    std::vector<std::uint8_t> message_;
};

TEST_F(LongMessages, ArriveInOnePiece) {
    ask();
    answer();
    fabric.run();
    expect_whole();
}

TEST_F(LongMessages, SurviveTheLossOfSegmentsAndAcknowledgements) {
    ask();
    const FrameFault segment = losing(1, 40);
    const FrameFault acknowledgement = losing(0, 1);
    answer();
    fabric.run();
    expect_whole();
}

TEST_F(LongMessages, AreGivenUpWhenNobodyAcknowledges) {
    ask();
    fabric.network.link(0).set_state(LinkState::kDown);
    answer();
    fabric.run();
    ASSERT_EQ(server_.finished.size(), 1U);
    EXPECT_EQ(server_.finished[0].outcome, SendOutcome::kTimedOut);
    EXPECT_EQ(client_.finished.at(0).outcome, SendOutcome::kTimedOut);
}

}  // namespace
}  // namespace fabric
