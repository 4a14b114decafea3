// A connection in each of its states, and everything that can happen in it: it moves as the rows of
// cm_transitions say, and a message or a command without a row changes and sends nothing.
#include <cerrno>
#include <vector>

#include <gtest/gtest.h>

#include "simverbs/cm/connection.hpp"

namespace simverbs::cm {
namespace {

class Effects final : public ConnectionEffects {
  public:
    void send(const Address&, const Datagram& datagram) override {
        sent.push_back(parse(datagram).value());
    }
    void set_timer(ConnectionId, fabric::SimDuration) override { timer = true; }
    void stop_timer(ConnectionId) override { timer = false; }
    void release_remote_qp(const Connection&) override {}
    void release_remote(const Connection&) override {}

    std::vector<Message> sent;
    bool timer = false;
};

constexpr std::uint32_t kQpn = 0x10;

// A connection without a manager: messages that arrive are for it.
struct Subject {
    CmIdentity identity{.ca_guid = fabric::Guid(1)};
    Effects effects;
    Connection connection{ConnectionId(1), identity, effects};

    void req() {
        connection.request_arrived(Req{.local_comm_id = 9, .local_qpn = 3}, Service::kRc, {});
    }
    void rep() { connection.arrived(Rep{.local_comm_id = 9, .local_qpn = 3}, {}); }
    void mra(CmAnswered answers) { connection.arrived(Mra{.answers = answers}, {}); }
    void rej(RejectReason reason) { connection.arrived(Rej{.reason = reason}, {}); }
    int send_req() { return connection.send_req({.qpn = kQpn}); }
    int send_rep() { return connection.send_rep({.qpn = kQpn}); }
    int send_mra() { return connection.send_mra(1, {}, MraMoment::kNow); }
};

// Brings an idle connection to `state` by the shortest way. What happens again after a REQ is its
// repetition.
void bring_to(CmState state, Subject& subject) {
    Connection& connection = subject.connection;
    switch (state) {
        case CmState::kIdle:
            return;
        case CmState::kListening:
            connection.start_listening(1);
            return;
        case CmState::kReqSent:
            subject.send_req();
            return;
        case CmState::kReqReceived:
            subject.req();
            return;
        case CmState::kMraReqSent:
            subject.req();
            subject.send_mra();
            return;
        case CmState::kMraReqReceived:
            subject.send_req();
            subject.mra(CmAnswered::kReq);
            return;
        case CmState::kRepSent:
            subject.req();
            subject.send_rep();
            return;
        case CmState::kRepReceived:
            subject.send_req();
            subject.rep();
            return;
        case CmState::kMraRepSent:
            bring_to(CmState::kRepReceived, subject);
            subject.send_mra();
            return;
        case CmState::kMraRepReceived:
            bring_to(CmState::kRepSent, subject);
            subject.mra(CmAnswered::kRep);
            return;
        case CmState::kEstablished:
            bring_to(CmState::kRepReceived, subject);
            connection.send_rtu({});
            return;
        case CmState::kDreqSent:
            bring_to(CmState::kEstablished, subject);
            connection.send_dreq({});
            return;
        case CmState::kDreqReceived:
            bring_to(CmState::kEstablished, subject);
            connection.arrived(Dreq{.remote_qpn = kQpn}, {});
            return;
        case CmState::kTimewait:
            bring_to(CmState::kDreqReceived, subject);
            connection.send_drep({});
            return;
        case CmState::kSidrReqSent:
            connection.send_sidr_req({});
            return;
        case CmState::kSidrReqReceived:
            connection.request_arrived(SidrReq{.request_id = 9}, {});
            return;
    }
}

// Makes it happen. For a command the errno.
int happen(CmTrigger trigger, Subject& subject) {
    Connection& connection = subject.connection;
    switch (trigger) {
        case CmTrigger::kSendReq:
            return subject.send_req();
        case CmTrigger::kSendMra:
            return subject.send_mra();
        case CmTrigger::kSendRej:
            return connection.send_rej(RejectReason::kNoQp, {}, {});
        case CmTrigger::kSendRep:
            return subject.send_rep();
        case CmTrigger::kSendRtu:
            return connection.send_rtu({});
        case CmTrigger::kSendDreq:
            return connection.send_dreq({});
        case CmTrigger::kSendDrep:
            return connection.send_drep({});
        case CmTrigger::kSendSidrReq:
            return connection.send_sidr_req({});
        case CmTrigger::kSendSidrRep:
            return connection.send_sidr_rep({});
        case CmTrigger::kEstablish:
            return connection.establish();
        case CmTrigger::kReqAgain:
            connection.request_repeated({});
            return 0;
        case CmTrigger::kMraReq:
            subject.mra(CmAnswered::kReq);
            return 0;
        case CmTrigger::kMraRep:
            subject.mra(CmAnswered::kRep);
            return 0;
        case CmTrigger::kRep:
            subject.rep();
            return 0;
        case CmTrigger::kRtu:
            connection.arrived(Rtu{}, {});
            return 0;
        case CmTrigger::kRej:
            subject.rej(RejectReason::kNoQp);
            return 0;
        case CmTrigger::kRejStale:
            subject.rej(RejectReason::kStaleConnection);
            return 0;
        case CmTrigger::kDreq:
            connection.arrived(Dreq{.remote_qpn = kQpn}, {});
            return 0;
        case CmTrigger::kDrep:
            connection.arrived(Drep{}, {});
            return 0;
        case CmTrigger::kSidrRep:
            connection.arrived(SidrRep{}, {});
            return 0;
        case CmTrigger::kTimeout:
        case CmTrigger::kTimewaitOver:
            connection.timer_expired();
            return 0;
        case CmTrigger::kListen:
        case CmTrigger::kStopListening:
        case CmTrigger::kReq:
        case CmTrigger::kSidrReq:
            break;
    }
    return 0;
}

// Asked of the manager, which makes a connection for what no row refuses.
bool is_the_managers(CmTrigger trigger) {
    return trigger == CmTrigger::kListen || trigger == CmTrigger::kStopListening ||
           trigger == CmTrigger::kReq || trigger == CmTrigger::kSidrReq;
}
// A time can end only in a state that waits: any other end is an assertion.
bool is_time(CmTrigger trigger) {
    return trigger == CmTrigger::kTimeout || trigger == CmTrigger::kTimewaitOver;
}

TEST(CmStates, EachTriggerInEachStateLeadsWhereTheTableSays) {
    for (std::size_t from = 0; from < kCmStateNames.size(); ++from) {
        for (std::size_t t = 0; t < kCmTriggerNames.size(); ++t) {
            const auto state = static_cast<CmState>(from);
            const auto trigger = static_cast<CmTrigger>(t);
            const std::optional<CmState> to = next_state(state, trigger);
            if (is_the_managers(trigger) || (is_time(trigger) && !to)) {
                continue;
            }
            SCOPED_TRACE(std::string(to_string(state)) + " on " + std::string(to_string(trigger)));
            Subject subject;
            bring_to(state, subject);
            ASSERT_EQ(subject.connection.state(), state);
            EXPECT_EQ(subject.effects.timer, [&] {
                return next_state(state, CmTrigger::kTimeout).has_value() ||
                       state == CmState::kTimewait;
            }()) << "a timer runs where something ends by time";
            subject.effects.sent.clear();
            const int error = happen(trigger, subject);
            EXPECT_EQ(subject.connection.state(), to.value_or(state));
            if (!to) {
                EXPECT_TRUE(subject.effects.sent.empty());
                const bool is_established =
                    trigger == CmTrigger::kEstablish && state == CmState::kEstablished;
                EXPECT_EQ(error, is_established ? EISCONN : is_command(trigger) ? EINVAL : 0);
            } else {
                EXPECT_EQ(error, 0);
            }
        }
    }
}

TEST(CmStates, ARowThatStaysAnswersAgain) {
    for (const CmTransition& row : kCmTransitions) {
        if (row.from != row.to || is_the_managers(row.trigger)) {
            continue;
        }
        Subject subject;
        bring_to(row.from, subject);
        subject.effects.sent.clear();
        happen(row.trigger, subject);
        EXPECT_EQ(subject.effects.sent.size(), 1U)
            << to_string(row.from) << " on " << to_string(row.trigger);
    }
}

TEST(CmStates, ADisconnectionOfAnotherQueuePairIsDropped) {
    for (const CmState state : {CmState::kEstablished, CmState::kTimewait}) {
        Subject subject;
        bring_to(state, subject);
        subject.effects.sent.clear();
        subject.connection.arrived(Dreq{.remote_qpn = kQpn + 1}, {});
        EXPECT_EQ(subject.connection.state(), state);
        EXPECT_TRUE(subject.effects.sent.empty());
    }
}

}  // namespace
}  // namespace simverbs::cm
