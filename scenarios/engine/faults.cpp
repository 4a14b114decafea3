#include "scenarios/engine/faults.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/core.h>

#include "fabric/yaml/quantities.hpp"

#include "simverbs/model/fault_phrases.hpp"
#include "simverbs/model/statuses.hpp"
#include "simverbs/model/wire_opcodes.hpp"

#include "scenarios/engine/errno_names.hpp"
#include "scenarios/engine/fault_words.hpp"

namespace scenarios {

namespace {

using simverbs::FaultActionRow;
using simverbs::FaultMemberRow;

// "1/100". Returns what is wrong with it, or "".
std::string read_chance(std::string_view text, simverbs_fault& fault) {
    const std::size_t slash = std::min(text.find('/'), text.size());
    const auto read = [](std::string_view digits, std::uint32_t& number) {
        const char* const end = digits.data() + digits.size();
        const auto [stopped, status] = std::from_chars(digits.data(), end, number);
        return status == std::errc{} && stopped == end;
    };
    if (slash == text.size() || !read(text.substr(0, slash), fault.chance) ||
        !read(text.substr(slash + 1), fault.chance_of) || fault.chance_of == 0) {
        return fmt::format("chance \"{}\": expected two numbers, as in 1/100", text);
    }
    return fault.chance > fault.chance_of ? fmt::format("chance {} is more than 1/1", text) : "";
}

simverbs_queue queue_of(Checked body) {
    return body.text("queue") == "receive" ? SIMVERBS_RECEIVE_QUEUE : SIMVERBS_SEND_QUEUE;
}

simverbs_fault_trigger trigger_of(const simverbs_fault& fault) {
    return fault.on == SIMVERBS_ON_DEFAULT
               ? row_of(simverbs::row_of(fault.action).subject).usual_trigger
               : fault.on;
}

// The members of match stand under `when`.
std::string key_of(const FaultMemberRow& row) {
    return fmt::format("{}{}", row.name.starts_with("match.") ? "when: " : "", row.key);
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
        text.replace(at, what.size(), by);
    }
}

// Whoever refuses a fault has the words of <simverbs/fault.h>; the file has keys of its own.
std::string in_words_of_scenarios(std::string refused, const FaultActionRow& action, Checked when) {
    constexpr std::string_view kFunction = "simverbs_inject: ";
    if (refused.starts_with(kFunction)) {
        refused.erase(0, kFunction.size());
    }
    for (const simverbs::FaultPhraseRow& row : simverbs::kFaultPhrases) {
        replace_all(refused, row.api, row.scenario);
    }
    const simverbs::FaultMembers reads = action.needs | action.takes | row_of(action.subject).reads;
    for (const FaultMemberRow& row : simverbs::kFaultMembers) {
        // A queue pair fills members that have keys of their own as well.
        if (row.name.starts_with("match.") && when.has("qp") && !when.has(row.key)) {
            replace_all(refused, row.name, "when: qp");
        }
        const bool has_other_key =
            reads.intersects(simverbs::members_named(row.name)) && !reads.contains(row.member);
        if (!has_other_key) {
            replace_all(refused, row.name, key_of(row));
        }
    }
    return refused;
}

// True if `when` has a key of that name that says which packets an action on packets is done to.
bool selects_packets(const FaultActionRow& action, std::string_view key) {
    return action.subject == simverbs::FaultSubject::kPacket &&
           std::ranges::any_of(simverbs::kFaultMembers, [key](const FaultMemberRow& row) {
               return row.key == key && row.name.starts_with("match.");
           });
}

// Several keys fill one member: those that this action does not read are refused here.
std::string find_unread_key(Checked body, const FaultActionRow& action) {
    const simverbs::FaultMembers reads = action.needs | action.takes | row_of(action.subject).reads;
    const auto is_read = [reads](std::string_view key) {
        return std::ranges::any_of(simverbs::kFaultMembers, [&](const FaultMemberRow& row) {
            return row.key == key && reads.contains(row.member);
        });
    };
    for (const FaultMemberRow& row : simverbs::kFaultMembers) {
        if (!row.name.starts_with("match.") && body.has(row.key) && !is_read(row.key)) {
            return fmt::format(
                "{} does not read {}{}", action.name, row.key,
                selects_packets(action, row.key)
                    ? fmt::format("; which packets it is done to: \"when: {{{}: ...}}\"", row.key)
                    : "");
        }
    }
    return {};
}

}  // namespace

// Strings of the structure are copied by simverbs_inject(): they live in the scenario until then.
std::string Faults::fill_when(Checked when, simverbs_fault& fault) const {
    if (when.has("on")) {
        fault.on = simverbs::kFaultTriggers[when.word("on", kTriggerWords)].trigger;
    }
    if (when.has("after")) {
        const auto found = placed_.find(when.text("after"));
        if (found == placed_.end()) {
            return fmt::format("fault \"{}\" comes later", when.text("after"));
        }
        fault.after = found->second.id;
    }
    fault.after_delay_ps = when.duration("after_delay");
    fault.from_ps = when.duration("at");
    fault.until_ps = when.duration("until");
    if (when.has("until") && fault.until_ps <= fault.from_ps) {
        return fmt::format("when: until, {}, is not after when: at, {}", when.text("until"),
                           when.text("at", "0s"));
    }
    fault.nth = when.number("nth");
    fault.count = when.text("count") == "every" ? SIMVERBS_EVERY : when.number("count");
    fault.delay_ps = when.duration("delay");
    if (when.has("chance")) {
        if (std::string wrong = read_chance(when.text("chance"), fault); !wrong.empty()) {
            return wrong;
        }
    }
    return fill_match(when, fault);
}

std::string Faults::fill_match(Checked when, simverbs_fault& fault) const {
    const auto literal = [when](std::string_view key) -> const char* {
        const fabric::yaml::Value* const value = when.find(key);
        return value == nullptr ? nullptr : value->text.c_str();
    };
    simverbs_fault_match& match = fault.match;
    match.link = literal("link");
    match.transmitter = literal("transmitter");
    match.from = literal("from");
    match.to = literal("to");
    match.opcode = literal("opcode");
    match.call = literal("call");
    match.node = literal("host");
    match.psn = static_cast<std::uint32_t>(when.number("psn"));
    match.attempt = static_cast<std::uint32_t>(when.number("attempt"));
    match.queue = queue_of(when);
    match.direction =
        simverbs::kPacketDirections[when.word("direction", kDirectionWords)].direction;
    if (when.has("qp")) {
        const auto place = run_.place_of(when.text("qp"));
        if (!place) {
            return fmt::format("{} has no queue pair yet", when.text("qp"));
        }
        match.qp_num = place->number;
        match.qp = place->nth_of_host;
        if (trigger_of(fault) == SIMVERBS_ON_WORK_REQUEST) {
            match.node = place->host;
        } else if (match.direction == SIMVERBS_RESPONSES) {
            match.to = place->host;
        } else {
            match.direction = SIMVERBS_REQUESTS;
            match.from = place->host;
        }
    }
    return {};
}

std::string Faults::fill_target(Checked body, simverbs_fault& fault) {
    const auto literal = [body](std::string_view key) -> const char* {
        const fabric::yaml::Value* const value = body.find(key);
        return value == nullptr ? nullptr : value->text.c_str();
    };
    fault.target.link = literal("link");
    fault.target.node = literal("node");
    fault.target.port = static_cast<std::uint8_t>(body.number("port"));
    fault.target.queue = queue_of(body);
    if (body.has("qp")) {
        const auto place = run_.place_of(body.text("qp"));
        if (!place) {
            return fmt::format("{} has no queue pair yet", body.text("qp"));
        }
        fault.target.node = place->host;
        fault.target.qp_num = place->number;
        fault.target.qp = place->nth_of_host;
    }
    if (body.has("fault")) {
        const auto found = placed_.find(body.text("fault"));
        if (found == placed_.end()) {
            return fmt::format("fault \"{}\" comes later", body.text("fault"));
        }
        fault.target.fault = found->second.id;
    }
    struct ObjectKey {
        const char* key;
        NamedObject kind;
        const char* what;
    };
    for (const auto& [key, kind, what] : {
             ObjectKey{"cq", NamedObject::kCompletionQueue, "completion queue"},
             ObjectKey{"srq", NamedObject::kSharedReceives, "shared receive queue"},
             ObjectKey{"memory", NamedObject::kMemory, "memory"},
         }) {
        if (!body.has(key)) {
            continue;
        }
        if (fault.target.node == nullptr) {
            return fmt::format("\"{}\" needs the host that it is on: node", key);
        }
        const auto number = run_.number_of(fault.target.node, kind, body.text(key));
        if (!number) {
            return fmt::format("{} has no {} {}", fault.target.node, what, body.text(key));
        }
        fault.target.object = *number;
    }
    return {};
}

std::string Faults::fill_arguments(Checked body, simverbs_fault_arguments& with) {
    with.duration_ps = body.duration("duration");
    with.interval_ps = body.duration("interval");
    with.times = body.number(body.has("fewer") ? "fewer" : "times");
    with.value = body.number("value");
    with.offset = static_cast<std::uint32_t>(body.number("offset"));
    with.bits = static_cast<std::uint8_t>(body.number("bits"));
    if (body.has("status")) {
        with.value = body.word("status", simverbs::kWcStatusNames);
    }
    if (body.has("nak")) {
        with.value = simverbs::kFaultNaks[body.word("nak", kNakWords)].nak;
    }
    if (body.has("errno")) {
        with.value = static_cast<std::uint64_t>(errno_of(body.text("errno")).value_or(0));
    }
    if (body.has("reason")) {
        with.value = body.number("reason");
    }
    if (body.has("field")) {
        with.field = simverbs::kHeaderFields[body.word("field", kFieldWords)].field;
    }
    if (body.has("rate")) {
        const auto rate = fabric::yaml::parse_link_rate(body.text("rate"));
        if (!rate) {
            return rate.error();
        }
        with.width = static_cast<std::uint32_t>(rate->width);
        with.speed = static_cast<std::uint32_t>(rate->speed);
    }
    return {};
}

std::string Faults::inject(Checked body) {
    simverbs_fault fault;
    simverbs_fault_init(&fault);
    const FaultActionRow& action = simverbs::kFaultActions[body.word("action", kActionWords)];
    fault.action = action.action;
    std::string wrong = find_unread_key(body, action);
    wrong = wrong.empty() ? fill_when(body.at("when"), fault) : wrong;
    wrong = wrong.empty() ? fill_target(body, fault) : wrong;
    wrong = wrong.empty() ? fill_arguments(body, fault.with) : wrong;
    if (!wrong.empty()) {
        return wrong;
    }
    const std::string name =
        body.has("name") ? body.text("name") : fmt::format("fault{}", ++unnamed_);
    fault.name = name.c_str();
    std::uint32_t id = 0;
    if (std::string refused = sink_.inject(fault, id); !refused.empty()) {
        return in_words_of_scenarios(std::move(refused), action, body.at("when"));
    }
    placed_[name] = {id, trigger_of(fault), body};
    return {};
}

std::string Faults::inject_all(const Scenario& scenario) {
    for (const fabric::yaml::Value& fault : scenario.at("faults").items()) {
        if (const std::string wrong = inject(Checked(fault)); !wrong.empty()) {
            fabric::yaml::Errors errors(scenario.files());
            errors.add(fault.position, wrong);
            return errors.text();
        }
    }
    return {};
}

void Faults::clear(const std::string& name) {
    if (const auto found = placed_.find(name); found != placed_.end()) {
        sink_.clear(found->second.id);
    }
}

std::uint64_t Faults::fired(const std::string& name) const {
    const auto found = placed_.find(name);
    if (found == placed_.end()) {
        return 0;
    }
    return static_cast<std::uint64_t>(
        std::ranges::count_if(run_.records(), [id = found->second.id](const Record& record) {
            return record.name == "fault_fired" && record.number("fault") == id;
        }));
}

template <class T>
std::map<std::string, std::vector<T>> Faults::of_firings(
    const std::function<T(const Record&)>& of) const {
    std::map<std::uint64_t, std::vector<T>> hits;
    for (const Record& record : run_.records()) {
        if (record.name == "fault_fired") {
            hits[record.number("fault")].push_back(of(record));
        }
    }
    std::map<std::string, std::vector<T>> all;
    for (const auto& [name, placed] : placed_) {
        all[name] = hits[placed.id];
    }
    return all;
}

std::map<std::string, std::vector<std::uint64_t>> Faults::firings() const {
    return of_firings<std::uint64_t>([](const Record& record) { return record.number("nth"); });
}

std::map<std::string, std::vector<PacketHit>> Faults::packets_hit() const {
    return of_firings<PacketHit>([this](const Record& record) { return packet_of(record); });
}

std::map<std::string, std::vector<std::int64_t>> Faults::times_of_firings() const {
    return of_firings<std::int64_t>([](const Record& record) { return record.time_ps; });
}

// Hosts forward nothing: what a host transmits is its own.
PacketHit Faults::packet_of(const Record& fired) const {
    PacketHit hit{.opcode = std::string(fired.text("operation")), .host = fired.node};
    const auto row =
        std::ranges::find(simverbs::kWireOpcodes, hit.opcode, &simverbs::WireOpcode::operation);
    if (fired.number("relative_psn") == 0 || row == simverbs::kWireOpcodes.end()) {
        return hit;
    }
    hit.is_response = row->response();
    hit.end = hit.is_response ? run_.peer_of(fired.node, fired.number("flow"))
                              : run_.end_of(fired.node, fired.number("flow"));
    hit.psn = fired.number("relative_psn");
    hit.attempt = fired.number("attempt");
    return hit;
}

std::uint64_t Faults::matched() const {
    std::uint64_t all = 0;
    for (const auto& [name, placed] : placed_) {
        all += sink_.matched(placed.id).value_or(0);
    }
    return all;
}

std::optional<std::int64_t> Faults::last_firing(std::uint32_t id) const {
    const auto found = std::ranges::find_if(
        run_.records().rbegin(), run_.records().rend(), [id](const Record& record) {
            return record.name == "fault_fired" && record.number("fault") == id;
        });
    return found == run_.records().rend() ? std::nullopt : std::optional(found->time_ps);
}

bool Faults::may_act_later() const {
    const std::int64_t now = run_.now();
    return std::ranges::any_of(placed_, [&](const auto& entry) {
        const Placed& placed = entry.second;
        const Checked when = placed.body.at("when");
        const auto fired = last_firing(placed.id);
        const std::int64_t delay = when.duration("delay");
        if (when.duration("at") + delay > now) {
            return true;
        }
        if (!fired && when.has("after")) {
            const auto first = placed_.find(when.text("after"));
            const auto before =
                first == placed_.end() ? std::nullopt : last_firing(first->second.id);
            return before && *before + when.duration("after_delay") + delay > now;
        }
        if (!fired) {
            return delay > 0 && sink_.matched(placed.id).value_or(0) > 0;
        }
        const std::int64_t lasts = placed.body.duration("duration") + delay +
                                   placed.body.duration("interval") *
                                       static_cast<std::int64_t>(placed.body.number("times", 1));
        return *fired + lasts > now;
    });
}

std::string Faults::why_never_fired(const std::string& name) const {
    const auto found = placed_.find(name);
    if (found == placed_.end()) {
        return {};
    }
    const auto& [id, on, body] = found->second;
    const Checked when = body.at("when");
    if (when.has("after") && fired(when.text("after")) == 0) {
        return fmt::format("\"{}\", which it comes after, did not fire", when.text("after"));
    }
    if (when.duration("at") > run_.now() || on == SIMVERBS_ON_TIME) {
        return fmt::format("the run ended at {}, before its time", time_text(run_.now()));
    }
    const auto matched = sink_.matched(id);
    const auto row =
        std::ranges::find(simverbs::kFaultTriggers, on, &simverbs::FaultTriggerRow::trigger);
    if (!matched || row == simverbs::kFaultTriggers.end()) {
        return {};
    }
    std::string what(row->name);
    std::ranges::replace(what, '_', ' ');
    if (*matched == 0) {
        const bool is_timed = when.has("at") || when.has("until");
        return fmt::format("no {} matched{}", what,
                           is_timed && on == SIMVERBS_ON_PACKET
                               ? "; at and until are compared with the time at which a packet is "
                                 "queued at the link, and it may start there later"
                               : "");
    }
    if (*matched < when.number("nth", 1)) {
        return fmt::format("it waits for {} number {} that matches, and only {} matched", what,
                           when.number("nth"), *matched);
    }
    return when.has("chance") ? fmt::format("{} {}s matched, and its chance of {} hit none of them",
                                            *matched, what, when.text("chance"))
                              : std::string();
}

}  // namespace scenarios
