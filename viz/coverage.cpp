#include "viz/coverage.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fabric/net/drop_reason.hpp"

#include "simverbs/model/completion_faults.hpp"
#include "simverbs/model/statuses.hpp"
#include "simverbs/model/wire_opcodes.hpp"

namespace simverbs::viz {
namespace {

constexpr std::string_view kOpcodes = "opcodes on the wire";
constexpr std::string_view kStatuses = "completion statuses";
constexpr std::string_view kEvents = "asynchronous events";
constexpr std::string_view kCauses = "causes";
constexpr std::string_view kLosses = "reasons of loss";
constexpr std::string_view kFaults = "injected faults";

// Transports share the names of operations. Nobody sends reliable datagrams.
std::string opcode_name(const WireOpcode& opcode) {
    return opcode.transport == WireTransport::kNone
               ? std::string(opcode.operation)
               : fmt::format("{} {}", to_string(opcode.transport), opcode.operation);
}

bool is_sent(const WireOpcode& opcode) {
    return opcode.known && opcode.transport != WireTransport::kRd;
}

}  // namespace

std::size_t CoverageGroup::reached() const {
    return static_cast<std::size_t>(std::count_if(
        items.begin(), items.end(), [](const Covered& one) { return one.count > 0; }));
}

Coverage::Coverage() : machines_(all_machines()) {
    CoverageGroup opcodes{std::string(kOpcodes), {}};
    for (const WireOpcode& opcode : kWireOpcodes) {
        if (is_sent(opcode)) {
            opcodes.items.push_back({opcode_name(opcode)});
        }
    }
    groups_.push_back(std::move(opcodes));
    CoverageGroup statuses{std::string(kStatuses), {}};
    for (const std::string_view status : kWcStatusNames) {
        statuses.items.push_back({std::string(status)});
    }
    groups_.push_back(std::move(statuses));
    CoverageGroup events{std::string(kEvents), {}};
    for (const AsyncEventProperties& row : kAsyncEvents) {
        events.items.push_back({std::string(row.name)});
    }
    groups_.push_back(std::move(events));
    CoverageGroup causes{std::string(kCauses), {}};
    for (const CompletionFault& row : kCompletionFaults) {
        causes.items.push_back({std::string(row.name)});
    }
    groups_.push_back(std::move(causes));
    CoverageGroup losses{std::string(kLosses), {}};
    for (std::size_t i = 0; i < fabric::kDropReasonCount; ++i) {
        losses.items.push_back({std::string(to_string(static_cast<fabric::DropReason>(i)))});
    }
    groups_.push_back(std::move(losses));
    groups_.push_back({std::string(kFaults), {}});
}

CoverageGroup& Coverage::group(std::string_view name) {
    return *std::find_if(groups_.begin(), groups_.end(),
                         [name](const CoverageGroup& one) { return one.name == name; });
}

// An item that no table has is a new one: of injected faults there is no table.
void Coverage::count(std::string_view name, std::string_view item) {
    std::vector<Covered>& items = group(name).items;
    const auto found = std::find_if(items.begin(), items.end(),
                                    [item](const Covered& one) { return one.name == item; });
    if (found == items.end()) {
        items.push_back({std::string(item), 1});
    } else {
        ++found->count;
    }
}

void Coverage::add(const Trace& trace) {
    for (StateMachine& machine : machines_) {
        count_moves(machine, trace);
    }
    for (const Record& record : trace.records) {
        if (record.name == "packet_sent") {
            count(kOpcodes,
                  opcode_name(wire_opcode(static_cast<std::uint8_t>(record.number("bth_opcode")))));
        } else if (record.name == "completion") {
            count(kStatuses, record.text("status"));
        } else if (record.name == "async_event") {
            count(kEvents, record.text("event"));
        } else if (record.name == "frame_dropped") {
            count(kLosses, record.text("reason"));
        } else if (record.name == "fault_fired") {
            count(kFaults, record.text("action"));
        }
        if (const std::string_view cause = record.text("cause"); !cause.empty()) {
            count(kCauses, cause);
        }
    }
}

std::vector<CoverageGroup> Coverage::groups() const {
    std::vector<CoverageGroup> all;
    for (const StateMachine& machine : machines_) {
        CoverageGroup moves{"moves: " + machine.title, {}};
        for (const Move& move : machine.moves) {
            moves.items.push_back(
                {fmt::format("{} > {} ({})", move.from, move.to, move.trigger), move.count});
        }
        all.push_back(std::move(moves));
    }
    all.insert(all.end(), groups_.begin(), groups_.end());
    return all;
}

std::string Coverage::text() const {
    std::string out;
    std::string missing;
    for (const CoverageGroup& one : groups()) {
        const std::size_t total = one.items.size();
        out += fmt::format("{:>4} of {:>3}  {:>3} %  {}\n", one.reached(), total,
                           total == 0 ? 0 : one.reached() * 100 / total, one.name);
        for (const Covered& item : one.items) {
            if (item.count == 0) {
                missing += fmt::format("  {}: {}\n", one.name, item.name);
            }
        }
    }
    return missing.empty() ? out : out + "\nnot reached:\n" + missing;
}

std::string Coverage::json() const {
    nlohmann::ordered_json out;
    for (const CoverageGroup& one : groups()) {
        nlohmann::ordered_json items = nlohmann::ordered_json::object();
        for (const Covered& item : one.items) {
            items[item.name] = item.count;
        }
        out[one.name] = {{"reached", one.reached()}, {"of", one.items.size()}, {"items", items}};
    }
    return out.dump(2) + "\n";
}

}  // namespace simverbs::viz
