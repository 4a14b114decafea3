#include "fabric/mad/management_port.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/net/node.hpp"

namespace fabric {

namespace {

using mad::Class;
using mad::Datagram;

constexpr std::uint8_t kMaxClass = 0x4F;

constexpr bool is_smp_class(std::uint8_t management_class) {
    return management_class == static_cast<std::uint8_t>(Class::kSubnLid) ||
           management_class == static_cast<std::uint8_t>(Class::kSubnDirected);
}

constexpr bool has_oui(std::uint8_t management_class) {
    return management_class >= static_cast<std::uint8_t>(Class::kVendorOuiFirst) &&
           management_class <= static_cast<std::uint8_t>(Class::kVendorOuiLast);
}

std::uint32_t oui_of(const AgentSpec& spec) {
    return static_cast<std::uint32_t>(spec.oui[0]) << 16 |
           static_cast<std::uint32_t>(spec.oui[1]) << 8 | spec.oui[2];
}

Datagram datagram_from(mad::ConstBytes bytes) {
    Datagram datagram;
    std::copy_n(bytes.begin(), std::min(bytes.size(), mad::kDatagramBytes), datagram.bytes.begin());
    return datagram;
}

bool is_rmpp(const AgentSpec& spec, const Datagram& datagram) {
    return spec.joins_rmpp && mad::has_rmpp_header(datagram.management_class()) &&
           datagram.get(mad::rmpp::kActive) != 0;
}

}  // namespace

ManagementPort::ManagementPort(Port& port, EventLoop& loop, DatagramCarrier& carrier)
    : port_(port),
      loop_(loop),
      carrier_(carrier),
      timer_(loop,
             EventKey(
                 EventClass::kTimer, port.node().id(),
                 PortNumber(static_cast<std::uint16_t>(kManagementPortKey + port.number().value())),
                 0),
             *this) {}

ManagementPort::~ManagementPort() = default;

const ManagementPort::Agent* ManagementPort::find(AgentId agent) const {
    const auto found = agents_.find(agent);
    return found == agents_.end() ? nullptr : &found->second;
}

// As ib_register_mad_agent() of Linux.
std::optional<AgentId> ManagementPort::register_agent(const AgentSpec& spec, AgentClient& client) {
    const bool is_ethernet = port_.attributes().link_layer == LinkLayer::kEthernet;
    if (spec.qp > kGeneralServicesQp || (is_ethernet && spec.qp != kGeneralServicesQp)) {
        return std::nullopt;
    }
    if (spec.management_class != 0) {
        const bool is_smp = is_smp_class(spec.management_class);
        if ((spec.management_class > kMaxClass && !is_smp) ||
            is_smp != (spec.qp == kSubnetManagementQp) ||
            (has_oui(spec.management_class) && oui_of(spec) == 0) || conflicts(spec)) {
            return std::nullopt;
        }
    }
    const AgentId id(spec.makes_transaction_ids ? ++last_agent_with_ids_ : ++last_agent_);
    agents_.emplace(id, Agent{spec, &client});
    return id;
}

bool ManagementPort::conflicts(const AgentSpec& spec) const {
    return std::any_of(agents_.begin(), agents_.end(), [&spec](const auto& entry) {
        const AgentSpec& other = entry.second.spec;
        return other.management_class == spec.management_class &&
               other.class_version == spec.class_version && (other.methods & spec.methods).any() &&
               (!has_oui(spec.management_class) || other.oui == spec.oui);
    });
}

void ManagementPort::unregister_agent(AgentId agent) {
    agents_.erase(agent);
    outstanding_.remove_if([agent](const Outstanding& one) { return one.agent == agent; });
    std::erase_if(receiving_,
                  [agent](const auto& entry) { return entry.first.agent == agent.value(); });
    rearm();
}

int ManagementPort::send(AgentId id, const SendRequest& request) {
    const Agent* const agent = find(id);
    if (agent == nullptr || request.bytes.size() < mad::header::kBytes) {
        return EINVAL;
    }
    const Datagram datagram = datagram_from(request.bytes);
    const bool rmpp = is_rmpp(agent->spec, datagram);
    if (datagram.is_smp() != (agent->spec.qp == kSubnetManagementQp) ||
        (!rmpp && request.bytes.size() > mad::kDatagramBytes) ||
        (rmpp && request.bytes.size() < mad::data_offset(datagram.management_class())) ||
        request.to.pkey_index >= port_.attributes().pkeys.size()) {
        return EINVAL;
    }
    Outstanding one{.agent = id,
                    .bytes = {request.bytes.begin(), request.bytes.end()},
                    .to = request.to,
                    .timeout = request.timeout,
                    .retries = request.retries,
                    .token = request.token,
                    .deadline = {},
                    .rmpp = std::nullopt};
    if (!mad::is_response(request.bytes) && !agent->spec.makes_transaction_ids) {
        mad::set(one.bytes, mad::header::kTransactionIdHigh, id.value());
    }
    if (rmpp) {
        one.rmpp.emplace(one.bytes);
    }
    if (const int error = transmit(one); error != 0) {
        return error;
    }
    if (rmpp || request.timeout > SimDuration::zero()) {
        wait_for(outstanding_.emplace_back(std::move(one)));
    }
    return 0;
}

int ManagementPort::transmit(Outstanding& one) {
    const std::uint32_t qp = find(one.agent)->spec.qp;
    if (!one.awaits_acknowledgement()) {
        return carrier_.carry(port_, datagram_from(one.bytes), qp, one.to);
    }
    int error = 0;
    while (error == 0 && one.rmpp->has_next()) {
        error = carrier_.carry(port_, one.rmpp->next(), qp, one.to);
    }
    return error;
}

void ManagementPort::wait_for(Outstanding& one) {
    const bool by_default = one.timeout == SimDuration::zero();
    const SimDuration wait =
        one.awaits_acknowledgement() && (by_default || one.timeout > kAcknowledgementTime)
            ? kAcknowledgementTime
            : one.timeout;
    one.deadline = loop_.now() + wait;
    rearm();
}

void ManagementPort::rearm() {
    if (outstanding_.empty()) {
        timer_.cancel();
        return;
    }
    const auto first = std::min_element(
        outstanding_.begin(), outstanding_.end(),
        [](const Outstanding& a, const Outstanding& b) { return a.deadline < b.deadline; });
    if (!timer_.armed() || timer_.deadline() != first->deadline) {
        timer_.arm(first->deadline);
    }
}

// All that is due, for a key fires once an instant. What it calls may send, or leave.
void ManagementPort::handle(const Event& /*event*/) {
    const auto next_due = [this] {
        return std::find_if(outstanding_.begin(), outstanding_.end(),
                            [this](const Outstanding& one) { return one.deadline <= loop_.now(); });
    };
    for (auto due = next_due(); due != outstanding_.end(); due = next_due()) {
        expire(due);
    }
    rearm();
}

void ManagementPort::expire(OutstandingList::iterator due) {
    if (due->retries == 0) {
        finish(due, SendOutcome::kTimedOut);
        return;
    }
    --due->retries;
    if (due->rmpp && due->awaits_acknowledgement()) {
        due->rmpp->rewind();
    }
    if (!due->rmpp || due->awaits_acknowledgement()) {
        transmit(*due);
    }
    wait_for(*due);
}

void ManagementPort::finish(OutstandingList::iterator one, SendOutcome outcome) {
    OutstandingList finished;
    finished.splice(finished.begin(), outstanding_, one);
    rearm();
    const Outstanding& sent = finished.front();
    if (const Agent* agent = find(sent.agent); agent != nullptr) {
        agent->client->send_finished({sent.agent, sent.token, outcome, sent.bytes});
    }
}

void ManagementPort::hold_is_sm() {
    if (sm_holders_++ == 0) {
        carrier_.mark_sm(port_, true);
    }
}

void ManagementPort::release_is_sm() {
    SIMVERBS_ASSERT(sm_holders_ != 0, "port {} of {} was not held as SM", port_.number().value(),
                    port_.node().name());
    if (--sm_holders_ == 0) {
        carrier_.mark_sm(port_, false);
    }
}

void ManagementPort::tell_link_changed() {
    std::vector<AgentClient*> told;
    for (const auto& [id, agent] : agents_) {
        if (std::find(told.begin(), told.end(), agent.client) == told.end()) {
            told.push_back(agent.client);
        }
    }
    for (AgentClient* const client : told) {
        client->link_changed();
    }
}

std::optional<AgentId> ManagementPort::taker_of(const ArrivedDatagram& arrived) const {
    const Datagram& datagram = arrived.datagram;
    if (mad::is_response(datagram.bytes)) {
        const AgentId id(static_cast<std::uint32_t>(datagram.get(mad::header::kTransactionIdHigh)));
        const Agent* agent = find(id);
        return agent != nullptr && agent->spec.qp == arrived.destination_qp ? std::optional(id)
                                                                            : std::nullopt;
    }
    const auto management_class = static_cast<std::uint8_t>(datagram.get(mad::header::kClass));
    const auto method = static_cast<std::size_t>(datagram.get(mad::header::kMethod));
    for (const auto& [id, agent] : agents_) {
        const AgentSpec& spec = agent.spec;
        if (spec.qp == arrived.destination_qp && spec.management_class == management_class &&
            spec.class_version == datagram.get(mad::header::kClassVersion) &&
            spec.methods.test(method) &&
            (!has_oui(management_class) || datagram.get(mad::vendor::kOui) == oui_of(spec))) {
            return id;
        }
    }
    return std::nullopt;
}

bool ManagementPort::deliver(const ArrivedDatagram& arrived) {
    const std::optional<AgentId> agent = taker_of(arrived);
    if (!agent) {
        return false;
    }
    if (is_rmpp(find(*agent)->spec, arrived.datagram)) {
        rmpp_arrived(*agent, arrived);
    } else {
        hand_over(*agent, arrived, arrived.datagram.bytes);
    }
    return true;
}

// An answer that nobody waits for any longer is dropped, but for segments that the client joins.
void ManagementPort::hand_over(AgentId id, const ArrivedDatagram& arrived, mad::ConstBytes bytes) {
    const Agent& agent = *find(id);
    ReceivedDatagram received{.agent = id, .bytes = bytes, .from = arrived.from};
    auto request = outstanding_.end();
    if (mad::is_response(bytes)) {
        const std::uint64_t transaction = arrived.datagram.get(mad::header::kTransactionId);
        const std::uint64_t management_class = arrived.datagram.get(mad::header::kClass);
        request =
            std::find_if(outstanding_.begin(), outstanding_.end(), [&](const Outstanding& one) {
                return one.agent == id && !mad::is_response(one.bytes) &&
                       mad::get(one.bytes, mad::header::kTransactionId) == transaction &&
                       mad::get(one.bytes, mad::header::kClass) == management_class;
            });
        const bool is_segment = mad::has_rmpp_header(arrived.datagram.management_class()) &&
                                arrived.datagram.get(mad::rmpp::kActive) != 0;
        if (request == outstanding_.end() && (agent.spec.joins_rmpp || !is_segment)) {
            return;
        }
    }
    if (request == outstanding_.end()) {
        agent.client->datagram_received(received);
        return;
    }
    received.answers = true;
    received.token = request->token;
    OutstandingList answered;
    answered.splice(answered.begin(), outstanding_, request);
    rearm();
    agent.client->datagram_received(received);
    if (const Agent* still = find(id); still != nullptr) {
        const Outstanding& sent = answered.front();
        still->client->send_finished({id, sent.token, SendOutcome::kSent, sent.bytes});
    }
}

void ManagementPort::rmpp_arrived(AgentId agent, const ArrivedDatagram& arrived) {
    switch (arrived.datagram.get(mad::rmpp::kType)) {
        case mad::rmpp::kData:
            rmpp_data(agent, arrived);
            return;
        case mad::rmpp::kAck:
            rmpp_acknowledged(agent, arrived);
            return;
        default: {  // STOP, ABORT, and what no sender may be told
            const auto message = find_message(agent, arrived);
            if (message != outstanding_.end()) {
                finish(message, SendOutcome::kAborted);
            }
        }
    }
}

void ManagementPort::rmpp_data(AgentId agent, const ArrivedDatagram& arrived) {
    const Datagram& segment = arrived.datagram;
    const std::uint32_t qp = find(agent)->spec.qp;
    const bool is_first = segment.get(mad::rmpp::kSegmentNumber) == 1;
    if (segment.get(mad::rmpp::kStatus) != 0 || is_first != (segment.get(mad::rmpp::kFirst) != 0)) {
        carrier_.carry(port_, mad::make_abort(segment, mad::rmpp::kIllegalStatus), qp,
                       arrived.from);
        return;
    }
    const mad::RmppKey key{agent.value(),
                           segment.get(mad::header::kTransactionId),
                           arrived.from.qp,
                           arrived.from.lid.value(),
                           arrived.from.global ? arrived.from.global->gid : Gid{},
                           static_cast<std::uint8_t>(segment.get(mad::header::kClass)),
                           static_cast<std::uint8_t>(segment.get(mad::header::kClassVersion)),
                           static_cast<std::uint8_t>(segment.get(mad::header::kMethod))};
    auto found = receiving_.find(key);
    if (found == receiving_.end()) {
        if (!is_first) {
            return;
        }
        std::erase_if(receiving_, [this](const auto& entry) {
            return entry.second.last_arrival() + kReceiverLife < loop_.now();
        });
        found = receiving_.try_emplace(key).first;
    }
    mad::RmppReceiver& receiver = found->second;
    const mad::RmppReceiver::Verdict verdict = receiver.segment_arrived(segment, loop_.now());
    if (verdict == mad::RmppReceiver::Verdict::kAcknowledge ||
        verdict == mad::RmppReceiver::Verdict::kComplete) {
        carrier_.carry(port_, mad::make_acknowledgement(segment, receiver), qp, arrived.from);
    }
    if (verdict == mad::RmppReceiver::Verdict::kComplete) {
        const std::vector<std::uint8_t> message = receiver.take_message();
        hand_over(agent, arrived, message);
    }
}

ManagementPort::OutstandingList::iterator ManagementPort::find_message(
    AgentId agent, const ArrivedDatagram& arrived) {
    const Datagram& answer = arrived.datagram;
    return std::find_if(outstanding_.begin(), outstanding_.end(), [&](const Outstanding& one) {
        return one.agent == agent && one.awaits_acknowledgement() &&
               one.to.lid == arrived.from.lid && one.to.qp == arrived.from.qp &&
               mad::get(one.bytes, mad::header::kTransactionId) ==
                   answer.get(mad::header::kTransactionId) &&
               mad::get(one.bytes, mad::header::kClass) == answer.get(mad::header::kClass);
    });
}

void ManagementPort::rmpp_acknowledged(AgentId agent, const ArrivedDatagram& arrived) {
    const auto message = find_message(agent, arrived);
    if (message == outstanding_.end()) {
        return;
    }
    const Datagram& ack = arrived.datagram;
    const auto answer =
        message->rmpp->acknowledged(static_cast<std::uint32_t>(ack.get(mad::rmpp::kSegmentNumber)),
                                    static_cast<std::uint32_t>(ack.get(mad::rmpp::kNewWindowLast)));
    if (answer == mad::RmppSender::Answer::kStale) {
        return;
    }
    if (answer == mad::RmppSender::Answer::kRefused || ack.get(mad::rmpp::kStatus) != 0) {
        carrier_.carry(port_, mad::make_abort(ack, mad::rmpp::kSegmentTooBig), find(agent)->spec.qp,
                       arrived.from);
        finish(message, SendOutcome::kAborted);
        return;
    }
    const bool is_request = !mad::is_response(message->bytes);
    if (message->rmpp->all_acknowledged() &&
        (!is_request || message->timeout == SimDuration::zero())) {
        finish(message, SendOutcome::kSent);
        return;
    }
    if (message->awaits_acknowledgement()) {
        transmit(*message);
    }
    wait_for(*message);
}

}  // namespace fabric
