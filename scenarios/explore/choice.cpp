#include "scenarios/explore/choice.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "fabric/yaml/quantities.hpp"

namespace scenarios {

namespace {

constexpr std::int64_t kMicrosecond = 1'000'000;
// How long a link is down "for a moment"; then the subnet manager brings its ports up again.
constexpr std::int64_t kMoment = kMicrosecond;
constexpr std::int64_t kPortsComeUp = 2'000 * kMicrosecond;
// A packet that is sent behind the next one leaves at last when there is no next one.
constexpr std::int64_t kReorderWithin = 10 * kMicrosecond;
// How late a completion or an event is: those of other queues pass it.
constexpr std::int64_t kLateCompletion = 100 * kMicrosecond;
// How late a packet is where the ACK timeout is not known. Most programs have 67 ms or less.
constexpr std::int64_t kLate = 100'000 * kMicrosecond;

std::string duration_text(std::int64_t picoseconds) {
    return fabric::yaml::duration_text(fabric::SimDuration(picoseconds));
}

// Members of what a subnet manager changes: a P_Key that nobody has used yet, and a LID that is far
// above those of hosts.
constexpr std::string_view kFurtherPkey = ", value: 0x8001, offset: 1";
constexpr std::string_view kOtherLid = ", value: 0xb000";

// "No resources available" (IBA 12.6.7.2), which both sides may say.
constexpr std::string_view kNoResources = ", reason: 3";

constexpr std::string_view kPoll = "ibv_poll_cq";

// Calls that fail with ENOMEM, and those that also fail with EIO, where the device does not answer.
struct CallErrors {
    std::string_view call;
    bool asks_device;
    ChoiceGroup group = ChoiceGroup::kCalls;
};
constexpr CallErrors kCallErrors[] = {
    {"ibv_alloc_pd", false},
    {"ibv_reg_mr", false},
    {"ibv_rereg_mr", false},
    {"ibv_alloc_mw", false},
    {"ibv_alloc_dm", false},
    {"ibv_reg_dm_mr", false},
    {"ibv_create_comp_channel", false},
    {"ibv_create_cq", false},
    {"ibv_resize_cq", false},
    {"ibv_create_qp", false},
    {"ibv_open_qp", false},
    {"ibv_modify_qp", true},
    {"ibv_query_qp", true},
    {"ibv_query_port", true},
    {"ibv_query_gid", true},
    {"ibv_query_pkey", true},
    {"ibv_create_ah", false},
    {"ibv_attach_mcast", false},
    {"ibv_create_srq", false},
    {"ibv_modify_srq", true},
    {"ibv_open_xrcd", false},
    {"ibv_create_wq", false},
    {"ibv_create_rwq_ind_table", false},
    {"ibv_create_flow", false},
    {"ibv_post_send", false, ChoiceGroup::kPosts},
    {"ibv_post_recv", false, ChoiceGroup::kPosts},
    {"ibv_post_srq_recv", false, ChoiceGroup::kPosts},
    {"ibv_post_wq_recv", false, ChoiceGroup::kPosts},
};

// Returns true for the packet at which a responder finds that no receive is posted.
bool takes_a_receive(std::string_view opcode) {
    return opcode.starts_with("SEND_FIRST") || opcode.starts_with("SEND_ONLY") ||
           (opcode.starts_with("RDMA_WRITE") && opcode.ends_with("_IMM"));
}

// Returns true for a message by which a connection manager asks for a connection, or grants it.
bool can_be_refused(std::string_view opcode) {
    return opcode == "CM_REQ" || opcode == "CM_REP";
}

// "when: {...}": this packet and no other. It is told by its PSN and transmission, which other
// faults do not change, unless it has none.
std::string trigger(const Place& place) {
    const PacketHit& packet = place.packet;
    if (place.call == kSendCompletion || place.call == kReceiveCompletion) {
        return fmt::format("when: {{on: work_request, qp: {}, queue: {}, nth: {}}}", packet.end,
                           place.call == kSendCompletion ? "send" : "receive", place.nth);
    }
    if (place.call == kCompletionEvent) {
        return fmt::format("when: {{on: call, call: ibv_get_cq_event, nth: {}}}", place.nth);
    }
    if (!place.call.empty()) {
        return fmt::format("when: {{on: call, host: {}, call: {}, nth: {}}}", packet.host,
                           place.call, place.nth);
    }
    if (packet.end.empty()) {
        return fmt::format("when: {{on: packet, nth: {}}}", place.nth);
    }
    return fmt::format("when: {{on: packet, qp: {}, direction: {}, psn: {}, attempt: {}}}",
                       packet.end, packet.is_response ? "responses" : "requests", packet.psn,
                       packet.attempt);
}

}  // namespace

std::string place_text(const Place& place) {
    const PacketHit& packet = place.packet;
    if (!place.call.empty()) {
        return fmt::format("{} {} of {}", place.call, place.nth,
                           !packet.end.empty()   ? packet.end
                           : packet.host.empty() ? "the run"
                                                 : packet.host);
    }
    if (packet.end.empty()) {
        return fmt::format("{}, packet {} of the run", packet.opcode, place.nth);
    }
    return fmt::format("{}{}, PSN {} of {}, transmission {}", packet.opcode,
                       packet.is_response ? " (response)" : "", packet.psn, packet.end,
                       packet.attempt);
}

std::vector<Choice> orders(std::uint64_t count) {
    std::vector<Choice> all;
    for (std::uint64_t number = 1; number <= count; ++number) {
        all.push_back({.group = ChoiceGroup::kOrders,
                       .harm = Harm::kRepaired,
                       .action = "order",
                       .name = fmt::format("order {} of threads", number),
                       .order = number});
    }
    return all;
}

std::size_t place_behind(const std::vector<Choice>& choices) {
    return choices.empty() || choices.back().order ? 0 : choices.back().place + 1;
}

Choices::Choices(const Surroundings& surroundings, std::vector<ChoiceGroup> groups,
                 std::string host)
    : groups_(std::move(groups)), host_(std::move(host)) {
    add_actions(surroundings);
}

void Choices::add(ChoiceGroup group, Harm harm, std::string name, std::string words, std::string of,
                  std::string host) {
    if (std::ranges::find(groups_, group) != groups_.end()) {
        actions_.push_back(
            {std::move(name), std::move(of), std::move(words), std::move(host), group, harm});
    }
}

void Choices::add_actions(const Surroundings& surroundings) {
    using enum ChoiceGroup;
    const std::int64_t late =
        surroundings.ack_timeout_ps ? *surroundings.ack_timeout_ps / 2 * 3 : kLate;
    add(kPackets, Harm::kRepaired, "drop");
    add(kPackets, Harm::kRepaired, "corrupt");
    if (surroundings.repaired_faults > 0) {
        // UC and UD take a packet that was doubled or overtaken for a new message, and drop one
        // that finds no receive.
        add(kPackets, Harm::kRepaired, "duplicate");
        add(kPackets, Harm::kRepaired, "reorder",
            fmt::format(", duration: {}", duration_text(kReorderWithin)));
        // It arrives after the requester has sent it again.
        add(kPackets, Harm::kRepaired, "delay", fmt::format(", duration: {}", duration_text(late)));
        add(kReceives, Harm::kRepaired, "no_receive");
    }
    for (const std::string& end : surroundings.ends) {
        add(kQueuePairs, Harm::kLasting, "qp_error", ", qp: " + end, " of " + end,
            host_of_end(end));
    }
    const bool bears_a_moment =
        surroundings.patience_ps.value_or(kLate) / 2 > kPortsComeUp + kMoment;
    for (const auto& [link, host] : surroundings.links) {
        const std::string words = fmt::format(", link: \"{}\"", link);
        add(kLinks, bears_a_moment ? Harm::kRepaired : Harm::kLasting, "link_down",
            fmt::format("{}, duration: {}", words, duration_text(kMoment)),
            fmt::format(" of {} for {}", link, duration_text(kMoment)), host);
        add(kLinks, Harm::kLasting, "link_down", words, " of " + link, host);
    }
    std::set<std::string> owners;
    for (const std::string& host : surroundings.hosts) {
        const auto owned = surroundings.owners.find(host);
        const std::string& owner = owned == surroundings.owners.end() ? host : owned->second;
        if (owners.insert(owner).second) {
            add(kHosts, Harm::kLasting, "process_kill", ", node: " + owner, " of " + owner, owner);
        }
        for (const char* const action : {"host_kill", "device_fatal"}) {
            add(kHosts, Harm::kLasting, action, ", node: " + host, " of " + host, host);
        }
    }
    add(kEvents, Harm::kLasting, "cm_reject", std::string(kNoResources));
    for (const auto& [host, number] : surroundings.managed) {
        const std::string words = fmt::format(", node: {}, port: {}", host, number);
        const std::string of = fmt::format(" of port {} of {}", number, host);
        add(kEvents, Harm::kRepaired, "reregister", words, of, host);
        add(kEvents, Harm::kRepaired, "pkey", fmt::format("{}{}", words, kFurtherPkey), of, host);
        add(kEvents, Harm::kLasting, "lid", fmt::format("{}{}", words, kOtherLid), of, host);
    }
}

bool Choices::takes(ChoiceGroup group, const Place& place) const {
    return std::ranges::find(groups_, group) != groups_.end() &&
           (host_.empty() || host_ == place.packet.host);
}

// It comes late, or a poll leaves it out. Programs must bear both.
std::vector<Choice> Choices::delays_of_completion(std::size_t index, const Place& place) const {
    if (!takes(ChoiceGroup::kPolls, place)) {
        return {};
    }
    const bool is_poll = place.call == kPoll;
    const std::string_view action = is_poll                          ? "short_poll"
                                    : place.call == kCompletionEvent ? "event_late"
                                                                     : "complete_late";
    const std::string words =
        is_poll ? "" : fmt::format(", duration: {}", duration_text(kLateCompletion));
    return {{.place = index,
             .group = ChoiceGroup::kPolls,
             .harm = Harm::kRepaired,
             .action = std::string(action),
             .name = fmt::format("{} of {}", action, place_text(place)),
             .fault = fmt::format("action: {}{}, {}", action, words, trigger(place))}};
}

// Its errors, each a choice. A program may give up, but not crash or hang.
std::vector<Choice> Choices::failures_of_call(std::size_t index, const Place& place) const {
    std::vector<Choice> all;
    const auto* const row = std::ranges::find(kCallErrors, place.call, &CallErrors::call);
    if (row == std::end(kCallErrors) || !takes(row->group, place)) {
        return all;
    }
    constexpr std::string_view kErrors[] = {"ENOMEM", "EIO"};
    for (const std::string_view error : std::span(kErrors).first(row->asks_device ? 2 : 1)) {
        all.push_back({.place = index,
                       .group = row->group,
                       .harm = Harm::kLasting,
                       .action = place.call + " fails",
                       .name = fmt::format("{} fails with {}", place_text(place), error),
                       .fault = fmt::format("action: call, errno: {}, {}", error, trigger(place))});
    }
    return all;
}

bool Choices::applies(const Action& action, const Place& place) const {
    const std::string& where = action.host.empty() ? place.packet.host : action.host;
    if (!host_.empty() && where != host_) {
        return false;
    }
    if (action.name == "cm_reject") {
        return can_be_refused(place.packet.opcode);
    }
    return action.group != ChoiceGroup::kReceives ||
           (!place.packet.is_response && takes_a_receive(place.packet.opcode));
}

std::vector<Choice> Choices::at(std::size_t index, const Place& place) const {
    if (!place.call.empty()) {
        return place.call.starts_with("ibv_") && place.call != kPoll
                   ? failures_of_call(index, place)
                   : delays_of_completion(index, place);
    }
    std::vector<Choice> all;
    for (const Action& action : actions_) {
        if (!applies(action, place)) {
            continue;
        }
        const bool is_of_packet = action.of.empty();
        all.push_back(
            {.place = index,
             .group = action.group,
             .harm = action.harm,
             .action = action.name,
             .name = is_of_packet ? fmt::format("{} of {}", action.name, place_text(place))
                                  : fmt::format("{}{} when {} is sent", action.name, action.of,
                                                place_text(place)),
             .fault = fmt::format("action: {}{}, {}", action.name, action.words, trigger(place))});
    }
    return all;
}

}  // namespace scenarios
