#include "scenarios/engine/faults.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/core.h>

#include "fabric/yaml/quantities.hpp"

#include "simverbs/model/statuses.hpp"

#include "scenarios/engine/errno_names.hpp"
#include "scenarios/engine/fault_words.hpp"

namespace scenarios {

namespace {

using simverbs::FaultActionRow;
using simverbs::FaultMemberRow;

// "1/100".
bool read_chance(std::string_view text, simverbs_fault& fault) {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
        return false;
    }
    const auto read = [](std::string_view digits, std::uint32_t& number) {
        const char* const end = digits.data() + digits.size();
        const auto [stopped, status] = std::from_chars(digits.data(), end, number);
        return status == std::errc{} && stopped == end;
    };
    return read(text.substr(0, slash), fault.chance) &&
           read(text.substr(slash + 1), fault.chance_of);
}

simverbs_queue queue_of(Checked body) {
    return body.text("queue") == "receive" ? SIMVERBS_RECEIVE_QUEUE : SIMVERBS_SEND_QUEUE;
}

// The members of match stand under `when`.
std::string key_of(const FaultMemberRow& row) {
    return fmt::format("{}{}", row.name.starts_with("match.") ? "when: " : "", row.key);
}

// Whoever refuses a fault speaks of members of simverbs_fault; the file has keys that fill them.
std::string in_words_of_scenarios(std::string refused, const FaultActionRow& action) {
    constexpr std::string_view kFunction = "simverbs_inject: ";
    if (refused.starts_with(kFunction)) {
        refused.erase(0, kFunction.size());
    }
    const simverbs::FaultMembers reads = action.needs | action.takes | row_of(action.subject).reads;
    for (const FaultMemberRow& row : simverbs::kFaultMembers) {
        const bool has_other_key =
            reads.intersects(simverbs::members_named(row.name)) && !reads.contains(row.member);
        const std::size_t at = refused.find(row.name);
        if (at != std::string::npos && !has_other_key) {
            refused.replace(at, row.name.size(), key_of(row));
        }
    }
    return refused;
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
            return fmt::format("{} does not read {}", action.name, row.key);
        }
    }
    return {};
}

}  // namespace

// Strings of the structure are copied by simverbs_inject(): they live in the scenario until then.
std::string Faults::fill_when(Checked when, simverbs_fault& fault) {
    const auto literal = [when](std::string_view key) -> const char* {
        const fabric::yaml::Value* const value = when.find(key);
        return value == nullptr ? nullptr : value->text.c_str();
    };
    if (when.has("on")) {
        fault.on = simverbs::kFaultTriggers[when.word("on", kTriggerWords)].trigger;
    }
    if (when.has("after")) {
        const auto found = ids_.find(when.text("after"));
        if (found == ids_.end()) {
            return fmt::format("fault \"{}\" comes later", when.text("after"));
        }
        fault.after = found->second;
    }
    fault.after_delay_ps = when.duration("after_delay");
    fault.from_ps = when.duration("at");
    fault.until_ps = when.duration("until");
    fault.nth = when.number("nth");
    fault.count = when.text("count") == "every" ? SIMVERBS_EVERY : when.number("count");
    fault.delay_ps = when.duration("delay");
    if (when.has("chance") && !read_chance(when.text("chance"), fault)) {
        return fmt::format("chance \"{}\": expected two numbers, as in 1/100", when.text("chance"));
    }
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
        const simverbs_fault_trigger usual =
            row_of(simverbs::row_of(fault.action).subject).usual_trigger;
        const simverbs_fault_trigger on = fault.on == SIMVERBS_ON_DEFAULT ? usual : fault.on;
        if (on == SIMVERBS_ON_WORK_REQUEST) {
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
        const auto found = ids_.find(body.text("fault"));
        if (found == ids_.end()) {
            return fmt::format("fault \"{}\" comes later", body.text("fault"));
        }
        fault.target.fault = found->second;
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
    with.times = body.number("times");
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
    std::uint32_t id = 0;
    if (std::string refused = sink_.inject(fault, id); !refused.empty()) {
        return in_words_of_scenarios(std::move(refused), action);
    }
    ids_[body.text("name", fmt::format("fault{}", ++unnamed_))] = id;
    return {};
}

std::string Faults::inject_all(const Scenario& scenario) {
    for (const fabric::yaml::Value& fault : scenario.at("faults").items()) {
        if (const std::string wrong = inject(Checked(fault)); !wrong.empty()) {
            return fmt::format("{}:{}:{}: {}", scenario.file, fault.position.line,
                               fault.position.column, wrong);
        }
    }
    return {};
}

void Faults::clear(const std::string& name) {
    if (const auto found = ids_.find(name); found != ids_.end()) {
        sink_.clear(found->second);
    }
}

std::uint64_t Faults::fired(const std::string& name) const {
    const auto found = ids_.find(name);
    if (found == ids_.end()) {
        return 0;
    }
    return static_cast<std::uint64_t>(
        std::ranges::count_if(run_.records(), [id = found->second](const Record& record) {
            return record.name == "fault_fired" && record.number("fault") == id;
        }));
}

std::map<std::string, std::vector<std::uint64_t>> Faults::firings() const {
    std::map<std::uint64_t, std::vector<std::uint64_t>> hits;
    for (const Record& record : run_.records()) {
        if (record.name == "fault_fired") {
            hits[record.number("fault")].push_back(record.number("nth"));
        }
    }
    std::map<std::string, std::vector<std::uint64_t>> firings;
    for (const auto& [name, id] : ids_) {
        firings[name] = hits[id];
    }
    return firings;
}

std::string Faults::name_of(std::uint64_t id) const {
    for (const auto& [name, number] : ids_) {
        if (number == id) {
            return name;
        }
    }
    return std::to_string(id);
}

}  // namespace scenarios
