#include "tutorials/lab/pattern.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fabric/core/nearest.hpp"
#include "fabric/yaml/fields.hpp"

#include "simverbs/model/cm_codes.hpp"
#include "simverbs/model/completion_faults.hpp"
#include "simverbs/model/cq_transitions.hpp"
#include "simverbs/model/misuse.hpp"
#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/qp_transitions.hpp"
#include "simverbs/model/statuses.hpp"
#include "simverbs/model/wire_opcodes.hpp"

#include "viz/markup.hpp"

namespace simverbs::lab {
namespace {

using fabric::yaml::Errors;
using fabric::yaml::Value;
using fabric::yaml::Words;
using Names = std::vector<std::string_view>;

constexpr auto kCalls = std::to_array<std::string_view>({
    "alloc_pd",     "dealloc_pd",          "reg_mr",
    "dereg_mr",     "create_comp_channel", "destroy_comp_channel",
    "create_cq",    "destroy_cq",          "resize_cq",
    "create_qp",    "modify_qp",           "query_qp",
    "destroy_qp",   "query_port",          "query_gid",
    "create_ah",    "destroy_ah",          "attach_mcast",
    "detach_mcast", "create_srq",          "modify_srq",
    "query_srq",    "destroy_srq",
});

constexpr auto kQueues = std::to_array<std::string_view>({"receive", "send"});  // as `send` says it
constexpr auto kDevice = std::to_array<std::string_view>({"closed", "opened"});
constexpr auto kYesNo = std::to_array<std::string_view>({"no", "yes"});

Names calls() {
    return {kCalls.begin(), kCalls.end()};
}
Names statuses() {
    return {kWcStatusNames.begin(), kWcStatusNames.end()};
}
Names opcodes() {
    Names names;
    for (const WcOpcodeName& row : kWcOpcodeNames) {
        names.push_back(row.name);
    }
    return names;
}
Names states() {
    return {kQpStateNames.begin(), kQpStateNames.end()};
}
Names causes() {
    Names names;
    for (const CompletionFault& row : kCompletionFaults) {
        names.push_back(to_string(row.cause));
    }
    return names;
}
Names message_kinds() {
    return {kMessageKindNames.begin(), kMessageKindNames.end()};
}
Names cq_states() {
    return {kCqStateNames.begin(), kCqStateNames.end()};
}
Names events() {
    Names names;
    for (std::size_t i = 0; i < kAsyncEventCount; ++i) {
        names.push_back(to_string(static_cast<AsyncEvent>(i)));
    }
    return names;
}
Names misuses() {
    Names names;
    for (const MisuseRow& row : kMisuses) {
        names.push_back(row.name);
    }
    return names;
}
Names cm_messages() {
    Names names;
    for (const CmMessageProperties& row : kCmMessages) {
        names.push_back(row.name);
    }
    return names;
}
Names queues() {
    return {kQueues.begin(), kQueues.end()};
}
Names opened_closed() {
    return {kDevice.begin(), kDevice.end()};
}
Names yes_no() {
    return {kYesNo.begin(), kYesNo.end()};
}

// Words of fields that are true or false stand for 0 and 1.
std::uint64_t truth(std::size_t word) {
    return word;
}
std::uint64_t cm_attribute(std::size_t word) {
    return kCmMessages[word].attribute_id;
}

// A key of a pattern and the field that it asks of; `words`: all that it may say, nullptr for
// anything. Of fields that are numbers, `number` gives that of a word by its place. Where there is
// a `same_as`, "yes" asks that this field has the same value.
struct Key {
    std::string_view key;
    std::string_view field;
    Names (*words)() = nullptr;
    std::uint64_t (*number)(std::size_t word) = nullptr;
    std::string_view same_as{};
};

struct Kind {
    Key main;
    std::string_view record;
    std::string_view meaning;
    std::array<Key, 4> more{};
    bool has_qp = false;  // its records name a queue pair
    // Holds of its records besides; "": nothing does.
    std::string_view fixed_field{};
    std::string_view fixed_word{};
};

constexpr auto kKinds = std::to_array<Kind>({
    {{"call", "verb", calls},
     "verb",
     "a call that reached the device; `errno: 0` unless said otherwise",
     {{{"errno", "errno"}}}},
    {{"device", "open", opened_closed, truth}, "context", "a device is opened or closed", {}},
    {{"region", "bytes"},
     "memory_region",
     "memory is registered; it gives these rights",
     {{{"local_write", "local_write", yes_no, truth},
       {"remote_write", "remote_write", yes_no, truth},
       {"remote_read", "remote_read", yes_no, truth},
       {"remote_atomic", "remote_atomic", yes_no, truth}}}},
    {{"posted", "send", queues, truth},
     "posted",
     "work requests posted to a queue pair; `number`: how many there have been in all",
     {{{"number", "posted"}}},
     true},
    {{"completion", "status", statuses},
     "completion",
     "a work completion",
     {{{"opcode", "opcode", opcodes}, {"bytes", "bytes"}, {"cause", "cause", causes}}},
     true},
    {{"state", "to", states},
     "qp_state",
     "a queue pair comes to this state",
     {{{"from", "from", states}, {"cause", "cause", causes}}},
     true},
    {{"cq", "to", cq_states},
     "cq_state",
     "a completion queue: QUIET from ARMED is an event to its channel, DEAD an overrun",
     {{{"from", "from", cq_states}}}},
    {{"event", "event", events}, "async_event", "an asynchronous event", {}},
    {{"packet", "opcode"},
     "packet_sent",
     "a packet leaves a queue pair",
     {{{"again", "retransmission", yes_no, truth},
       {"psn", "psn"},
       {"bytes", "payload"},
       {"to_itself", "dest_qpn", yes_no, truth, "qpn"}}},
     true},
    {{"delivered", "kind", message_kinds},
     "delivered",
     "a request was carried out at its target",
     {{{"bytes", "bytes"}}},
     true},
    {{"dropped", "cause", causes},
     "dropped",
     "an unacknowledged message went no further",
     {},
     true},
    {{"discarded", "fate"}, "packet_discarded", "a packet that its target did not take", {}},
    {{"cm", "attribute", cm_messages, cm_attribute},
     "datagram_sent",
     "a message of the communication manager leaves a port: REQ, REP, RTU ...",
     {},
     false,
     "class",
     "7"},
    {{"lost", "reason"}, "frame_dropped", "a packet was lost on its way", {}},
    {{"fault", "action"}, "fault_fired", "an injected fault fired", {}},
    {{"port", "to"}, "port_state", "a port comes to this state", {{{"from", "from"}}}},
    {{"misuse", "misuse", misuses}, "misuse", "a mistake that verbs allow", {}},
});

const Kind* find_kind(const Value& value) {
    for (const fabric::yaml::Entry& entry : value.entries) {
        for (const Kind& kind : kKinds) {
            if (kind.main.key == entry.key.text) {
                return &kind;
            }
        }
    }
    return nullptr;
}

Names keys_of(const Kind& kind) {
    Names keys{kind.main.key};
    for (const Key& key : kind.more) {
        if (!key.key.empty()) {
            keys.push_back(key.key);
        }
    }
    keys.push_back("host");
    if (kind.has_qp) {
        keys.push_back("qp");
    }
    return keys;
}

// "X", "!X", [X, Y]; "*" is anything.
std::optional<Condition> read_condition(const Key& key, const Value& value, Errors& errors) {
    Condition condition{.field = std::string(key.field)};
    const bool is_list = value.kind == fabric::yaml::Kind::kList;
    for (const Value& item :
         is_list ? fabric::yaml::items_of(value, errors) : std::span<const Value>(&value, 1)) {
        std::optional<std::string> word = fabric::yaml::text_of(item, errors);
        if (!word) {
            return std::nullopt;
        }
        if (!is_list && word->starts_with('!')) {
            condition.negated = true;
            word->erase(0, 1);
        }
        if (*word == "*") {
            return std::nullopt;
        }
        if (key.words != nullptr) {
            const Names names = key.words();
            Value plain = item;
            plain.text = *word;
            const auto found = fabric::yaml::choice_of(plain, names, errors);
            if (found && key.number != nullptr) {
                *word = std::to_string(key.number(*found));
            }
        }
        condition.words.push_back(*word);
    }
    if (!key.same_as.empty()) {
        condition.same_as = key.same_as;
        condition.negated = condition.negated != (condition.words == std::vector<std::string>{"0"});
    }
    return condition;
}

std::string text_of_value(const Value& value) {
    if (value.kind != fabric::yaml::Kind::kList) {
        return value.text;
    }
    Names words;
    for (const Value& item : value.items) {
        words.push_back(item.text);
    }
    return fmt::format("{}", fmt::join(words, " or "));
}

bool is_at_place(const viz::Record& record, const viz::Run& run, std::uint32_t place) {
    const auto found = run.places.find({record.node, record.id("qpn")});
    return found != run.places.end() && found->second == place;
}

// The n-th queue pair of its host, counted from 1.
std::optional<std::uint32_t> place_of(const Value& value, Errors& errors) {
    const auto number = fabric::yaml::number_of(value, errors, 1, UINT32_MAX);
    return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

}  // namespace

bool Condition::holds(const viz::Record& record) const {
    const viz::Field* const found = record.find(field);
    if (found == nullptr) {
        return false;
    }
    if (!same_as.empty()) {
        return (found->number == record.number(same_as)) != negated;
    }
    const std::string is = found->is_text ? found->text : std::to_string(found->number);
    return (std::find(words.begin(), words.end(), is) != words.end()) != negated;
}

bool Pattern::matches(const viz::Record& seen, const viz::Run& run) const {
    return seen.name == record && (host.empty() || run.label(seen.node) == host) &&
           (place == 0 || is_at_place(seen, run, place)) &&
           std::all_of(conditions.begin(), conditions.end(),
                       [&seen](const Condition& condition) { return condition.holds(seen); });
}

std::optional<Pattern> read_pattern(const Value& value, Errors& errors) {
    const Kind* const kind = find_kind(value);
    if (kind == nullptr) {
        Names names;
        for (const Kind& each : kKinds) {
            names.push_back(each.main.key);
        }
        errors.add(value.position, fmt::format("no event is named here; one of these keys: {}",
                                               fabric::yaml::join(names)));
        return std::nullopt;
    }
    const Names keys = keys_of(*kind);
    const fabric::yaml::Fields fields(value, keys, errors);
    Pattern pattern{.record = std::string(kind->record)};
    pattern.host = fields.get("host", fabric::yaml::text_of).value_or("");
    if (kind->has_qp) {
        pattern.place = fields.get("qp", place_of).value_or(0);
    }
    const auto ask = [&](const Key& key) {
        if (const Value* const asked = key.key.empty() ? nullptr : fields.find(key.key)) {
            if (auto condition = read_condition(key, *asked, errors)) {
                pattern.conditions.push_back(std::move(*condition));
            }
        }
    };
    ask(kind->main);
    for (const Key& key : kind->more) {
        ask(key);
    }
    if (!kind->fixed_field.empty()) {
        pattern.conditions.push_back(
            {.field = std::string(kind->fixed_field), .words = {std::string(kind->fixed_word)}});
    }
    if (kind->main.key == "call" && fields.find("errno") == nullptr) {
        pattern.conditions.push_back({.field = "errno", .words = {"0"}});
    }
    for (const fabric::yaml::Entry& entry : value.entries) {
        pattern.text += fmt::format("{}{} {}", pattern.text.empty() ? "" : ", ", entry.key.text,
                                    text_of_value(entry.value));
    }
    return pattern;
}

std::string describe(const viz::Record& record, const viz::Run& run) {
    const bool has_qp = record.find("qpn") != nullptr;
    std::string text = fmt::format(
        "{}, {}: {}", viz::time_text(record.time),
        has_qp ? run.label(viz::QpName{record.node, record.id("qpn")}) : run.label(record.node),
        record.name == "verb" ? "ibv_" + std::string(record.text("verb")) : record.name);
    for (const viz::Field& field : record.fields) {
        const bool told = field.name == "qpn" || field.name == "index" || field.name == "verb" ||
                          field.name == "cq" || field.name == "handle" ||
                          (field.name == "cause" && field.text == "none");
        if (!told) {
            text += fmt::format(", {} {}", field.name,
                                field.is_text ? field.text : std::to_string(field.number));
        }
    }
    return text;
}

std::span<const std::string_view> known_calls() {
    return kCalls;
}

std::string pattern_reference() {
    std::string text;
    for (const Kind& kind : kKinds) {
        text += fmt::format("  {:<11} {}\n", fmt::format("{}:", kind.main.key), kind.meaning);
        const Names keys = keys_of(kind);
        text +=
            fmt::format("  {:<11} with {}\n", "", fmt::join(keys.begin() + 1, keys.end(), ", "));
    }
    return text;
}

}  // namespace simverbs::lab
