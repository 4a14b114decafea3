#include "simverbs/faults/fault_request.hpp"

#include <cerrno>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "simverbs/faults/host_programs.hpp"
#include "simverbs/faults/named.hpp"
#include "simverbs/model/fault_phrases.hpp"
#include "simverbs/model/statuses.hpp"

namespace simverbs {
namespace {

constexpr std::uint32_t kMaxPsn = 1U << 23;

// Returns false for commands that are no verb of a program, or are never refused.
bool is_refusable(CommandCode code) {
    return code != CommandCode::kCloseContext && code != CommandCode::kReportMisuse &&
           code != CommandCode::kResolveEthernet;
}

// It asks the device for nothing: its events are what matches.
constexpr std::string_view kEventVerb = "ibv_get_cq_event";
constexpr std::string_view kPollVerb = "ibv_poll_cq";

std::string names_of_calls() {
    std::string names;
    for (const auto& [code, verb] : kCommandNames) {
        if (is_refusable(code)) {
            names += fmt::format("{}ibv_{}", names.empty() ? "" : ", ", verb);
        }
    }
    names += fmt::format(", {}", kEventVerb);
    return names;
}

// Returns the command behind a verb's name; extended forms ask the device for the same.
std::optional<CommandCode> command_of(std::string_view verb) {
    if (verb.starts_with("ibv_")) {
        verb.remove_prefix(4);
    }
    for (const std::string_view ending : {"_ex", "_iova", "_iova2"}) {
        if (verb.ends_with(ending)) {
            verb.remove_suffix(ending.size());
        }
    }
    for (const auto& [code, name] : kCommandNames) {
        if (name == verb && is_refusable(code)) {
            return code;
        }
    }
    return std::nullopt;
}

// The verb that an action is done to alone; "": several.
std::string_view only_call_of(FaultSubject subject) {
    switch (subject) {
        case FaultSubject::kPoll:
            return kPollVerb;
        case FaultSubject::kCompletionEvent:
            return kEventVerb;
        default:
            return {};
    }
}

bool can_fail(std::string_view verb) {
    return verb != kPollVerb && verb != kEventVerb;
}

}  // namespace

int FaultRequest::read() {
    for (const auto step :
         {&FaultRequest::read_action, &FaultRequest::read_time, &FaultRequest::read_count,
          &FaultRequest::read_trigger, &FaultRequest::read_members, &FaultRequest::read_target,
          &FaultRequest::read_arguments}) {
        if (const int error = (this->*step)(); error != 0) {
            return error;
        }
    }
    return 0;
}

int FaultRequest::read_action() {
    const int number = number_of(asked_.action);
    action_ = find_fault_action(number);
    if (action_ == nullptr) {
        const auto number_and_name = [](const FaultActionRow& row) {
            return fmt::format("{} ({})", row.name, static_cast<int>(row.action));
        };
        return fail(EINVAL, "action {} is none; {} to {} are", number,
                    number_and_name(kFaultActions.front()), number_and_name(kFaultActions.back()));
    }
    spec_.action = action_->action;
    spec_.name = text_of(asked_.name);
    return 0;
}

int FaultRequest::read_time() {
    const fabric::FaultId after(asked_.after);
    if (asked_.after != 0 && !board_.has(after)) {
        return fail(ENOENT, "after: there is no fault {}", asked_.after);
    }
    for (const auto& [member, value] : {std::pair{"after_delay_ps", asked_.after_delay_ps},
                                        {"from_ps", asked_.from_ps},
                                        {"until_ps", asked_.until_ps},
                                        {"delay_ps", asked_.delay_ps},
                                        {"with.duration_ps", asked_.with.duration_ps},
                                        {"with.interval_ps", asked_.with.interval_ps}}) {
        if (value < 0) {
            return fail(EINVAL, "{} is {}; times are 0 or more", member, value);
        }
    }
    if (asked_.until_ps != 0 && asked_.until_ps <= asked_.from_ps) {
        return fail(EINVAL, "{} is {} ps, not behind {}, {} ps", api_words(FaultPhrase::kUntil),
                    asked_.until_ps, api_words(FaultPhrase::kFrom), asked_.from_ps);
    }
    spec_.after = after;
    spec_.after_delay = fabric::SimDuration(asked_.after_delay_ps);
    spec_.when.from = fabric::kSimStart + fabric::SimDuration(asked_.from_ps);
    if (asked_.until_ps != 0) {
        spec_.when.until = fabric::kSimStart + fabric::SimDuration(asked_.until_ps);
    }
    spec_.delay = fabric::SimDuration(asked_.delay_ps);
    return 0;
}

int FaultRequest::read_count() {
    if (asked_.chance > asked_.chance_of) {
        return fail(EINVAL, "a chance of {} in {}; {}", asked_.chance, asked_.chance_of,
                    api_words(FaultPhrase::kChance));
    }
    spec_.when.nth = std::max<std::uint64_t>(asked_.nth, 1);
    spec_.when.count = std::max<std::uint64_t>(asked_.count, 1);
    if (asked_.chance_of != 0) {
        spec_.when.chance = {asked_.chance, asked_.chance_of};
        spec_.when.count = asked_.count == 0 ? fabric::kEveryTime : asked_.count;
    }
    return 0;
}

int FaultRequest::read_trigger() {
    const FaultSubjectRow& subject = row_of(action_->subject);
    const int asked = number_of(asked_.on);
    const int on = asked == SIMVERBS_ON_DEFAULT ? subject.usual_trigger : asked;
    if (subject.is_the_match && (on != subject.usual_trigger || asked_.delay_ps != 0)) {
        return fail(
            EINVAL, "{} is done to what matches, when it matches; {}", action_->name,
            api_words(on != subject.usual_trigger ? FaultPhrase::kOn : FaultPhrase::kDelay));
    }
    trigger_ = find_fault_trigger(on);
    if (trigger_ == nullptr) {
        return fail(EINVAL, "on is {}; {}", on, api_words(FaultPhrase::kTriggers));
    }
    switch (trigger_->trigger) {
        case SIMVERBS_ON_PACKET:
            return read_packets();
        case SIMVERBS_ON_WORK_REQUEST:
            return read_work_request();
        case SIMVERBS_ON_CALL:
            return read_call();
        case SIMVERBS_ON_TIME:
        case SIMVERBS_ON_DEFAULT:
            break;
    }
    spec_.on = OnTime{};
    return 0;
}

// A member that would be ignored is refused, so that nobody looks for its effect.
int FaultRequest::read_members() {
    const FaultMembers read = members_of(*action_, *trigger_);
    for (const GivenMember& given : given_members(asked_)) {
        if (given.value == 0 || read.intersects(members_named(given.name))) {
            continue;
        }
        const bool needs_match =
            trigger_->trigger == SIMVERBS_ON_TIME && given.name.starts_with("match.");
        return fail(EINVAL, "{} does not read {}{}{}", action_->name, given.name,
                    needs_match ? "; it waits for a time unless " : "",
                    needs_match ? api_words(FaultPhrase::kTriggersThatMatch) : "");
    }
    return 0;
}

// A host's devices, or one by its name.
int FaultRequest::read_hosts(const char* member, const char* name,
                             std::vector<fabric::NodeId>& nodes) {
    if (!is_given(name)) {
        return 0;
    }
    for (const std::size_t index : environment_.hcas_of(name)) {
        nodes.push_back(environment_.hca(index).node());
    }
    if (nodes.empty()) {
        const std::string what = fmt::format("match.{}", member);
        const auto hca = find_device(environment_, what.c_str(), name);
        if (!hca) {
            return fail(ENOENT, "{}", hca.error());
        }
        nodes.push_back((*hca)->node());
    }
    return 0;
}

int FaultRequest::read_opcode(PacketPattern& pattern) {
    const std::string_view name = text_of(asked_.match.opcode);
    if (name.empty()) {
        return 0;
    }
    if (name == "MAD") {
        pattern.management = true;
        return 0;
    }
    if (const auto messages = cm_messages_named(name); messages.any()) {
        pattern.cm_messages = messages;
        return 0;
    }
    pattern.opcodes = opcodes_named(name);
    if (pattern.opcodes->none()) {
        std::string names;
        for (const WireOperation& row : kWireOperations) {
            names += fmt::format("{}, ", row.name);
        }
        for (const CmMessageProperties& row : kCmMessages) {
            names += fmt::format("{}, ", row.operation);
        }
        return fail(EINVAL,
                    "match.opcode '{}' is no operation; these are: {}CNP; 'SEND' "
                    "is all that begin with it, 'UD' all of that service, 'UD_SEND' both, "
                    "'MAD' management datagrams",
                    name, names);
    }
    return 0;
}

int FaultRequest::read_packets() {
    const simverbs_fault_match& match = asked_.match;
    OnPacket on;
    PacketPattern& pattern = on.pattern;
    if (const int error = read_hosts("from", match.from, pattern.from); error != 0) {
        return error;
    }
    if (const int error = read_hosts("to", match.to, pattern.to); error != 0) {
        return error;
    }
    if (const int error = read_opcode(pattern); error != 0) {
        return error;
    }
    const PacketDirectionRow* way = find_packet_direction(number_of(match.direction));
    if (way == nullptr) {
        return fail(EINVAL, "match.direction is {}; {}", number_of(match.direction),
                    api_words(FaultPhrase::kDirections));
    }
    if (match.psn > kMaxPsn) {
        return fail(EINVAL, "match.psn is {}; from 1 to {}, relative to the first", match.psn,
                    kMaxPsn);
    }
    pattern.direction = way->direction;
    pattern.ordinal = match.qp;
    pattern.qpn = match.qp_num;
    pattern.relative_psn = match.psn;
    pattern.attempt = match.attempt;
    if (is_given(match.link)) {
        const auto found = find_link(environment_, "match.link", match.link);
        if (!found) {
            return fail(ENOENT, "{}", found.error());
        }
        fabric::Link& link = **found;
        if (is_given(match.transmitter)) {
            const auto direction = find_direction(link, "match.transmitter", match.transmitter);
            if (!direction) {
                return fail(ENOENT, "{}", direction.error());
            }
            on.directions = {*direction};
        } else {
            on.directions = {&link.direction_from(link.end(0)), &link.direction_from(link.end(1))};
        }
    } else if (is_given(match.transmitter)) {
        return fail(EINVAL,
                    "match.transmitter is an end of match.link, which is "
                    "missing");
    } else {
        on.directions = directions_from_hosts(environment_.network(), pattern.from);
    }
    spec_.on = std::move(on);
    return 0;
}

int FaultRequest::read_queue(const char* member, int queue, CompletedQueue& into) const {
    if (queue != SIMVERBS_SEND_QUEUE && queue != SIMVERBS_RECEIVE_QUEUE) {
        return fail(EINVAL, "{} is {}; {}", member, queue, api_words(FaultPhrase::kQueues));
    }
    into = queue == SIMVERBS_SEND_QUEUE ? CompletedQueue::kSend : CompletedQueue::kReceive;
    return 0;
}

int FaultRequest::read_work_request() {
    const simverbs_fault_match& match = asked_.match;
    OnWorkRequest on;
    if (is_given(match.node)) {
        const auto hca = find_device(environment_, "match.node", match.node);
        if (!hca) {
            return fail(ENOENT, "{}", hca.error());
        }
        on.hca = *hca;
        if (match.qp_num != 0) {
            if (const auto qp = find_queue_pair(*on.hca, "match.qp_num", match.qp_num); !qp) {
                return fail(ENOENT, "{}", qp.error());
            }
        }
    }
    on.qp = {.qpn = match.qp_num, .ordinal = match.qp};
    on.as_it_completes = action_->subject == FaultSubject::kCompletion;
    if (const int error = read_queue("match.queue", number_of(match.queue), on.queue); error != 0) {
        return error;
    }
    if (action_->subject == FaultSubject::kSendRequest && on.queue != CompletedQueue::kSend) {
        return fail(EINVAL, "{} is of sends; {}", action_->name,
                    api_words(FaultPhrase::kSendQueue));
    }
    spec_.on = on;
    return 0;
}

int FaultRequest::read_call() {
    OnCall on;
    if (is_given(asked_.match.node)) {
        const auto hca = find_device(environment_, "match.node", asked_.match.node);
        if (!hca) {
            return fail(ENOENT, "{}", hca.error());
        }
        on.hca = *hca;
    }
    std::string_view verb = text_of(asked_.match.call);
    if (const std::string_view only = only_call_of(action_->subject); !only.empty()) {
        if (!verb.empty() && verb != only) {
            return fail(EINVAL, "match.call '{}': {} is of {} alone", verb, action_->name, only);
        }
        verb = only;
    } else if (action_->subject == FaultSubject::kCall && !can_fail(verb)) {
        return fail(EINVAL, "match.call '{}' never fails; short_poll and event_late are of such",
                    verb);
    }
    if (verb == kEventVerb) {
        spec_.on = OnCompletionEvent{on.hca};
        return 0;
    }
    const auto command = command_of(verb);
    if (!command) {
        return fail(EINVAL,
                    "match.call '{}' is no verb that asks the device; these are: "
                    "{}",
                    verb, names_of_calls());
    }
    const bool is_poll = *command == CommandCode::kPollCq;
    if ((is_poll || is_post(*command)) &&
        (environment_.programs() == nullptr || !environment_.programs()->can_ask_when_working())) {
        return fail(EINVAL, "match.call '{}': {} of other processes do not ask the device", verb,
                    is_poll ? "polls" : "posts");
    }
    on.command = *command;
    spec_.on = on;
    return 0;
}

}  // namespace simverbs
