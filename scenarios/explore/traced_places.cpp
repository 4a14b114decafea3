#include "scenarios/explore/traced_places.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include <fmt/core.h>

#include "fabric/core/hash.hpp"

#include "simverbs/model/wire_opcodes.hpp"

#include "scenarios/engine/explain.hpp"
#include "scenarios/explore/subject.hpp"
#include "scenarios/explore/surroundings.hpp"

namespace scenarios {

namespace {

// A digest of all that programs can tell runs apart by.
std::uint64_t effects_of(const std::vector<Record>& records) {
    fabric::WordsHash hash;
    for (const Record& record : records) {
        if (record.category != "call" && record.category != "completion" &&
            record.category != "state" && record.category != "async_event" &&
            record.category != "message") {
            continue;
        }
        hash.add(static_cast<std::uint64_t>(record.time_ps));
        hash.add(fabric::hash_name(record.node));
        hash.add(fabric::hash_name(record.name));
        for (const Record::Field& field : record.fields) {
            hash.add(fabric::hash_name(field.text));
        }
    }
    return hash.value();
}

bool is_response(std::string_view operation) {
    const auto row =
        std::ranges::find(simverbs::kWireOpcodes, operation, &simverbs::WireOpcode::operation);
    return row != simverbs::kWireOpcodes.end() && row->response();
}

std::vector<Place> places_of(const std::vector<Record>& records) {
    std::map<std::string, unsigned> made;         // queue pairs of a host
    std::map<std::uint64_t, std::string> end_of;  // by queue pair number, which no two hosts share
    std::map<std::string, std::uint64_t> calls;   // of a host and verb
    std::vector<Place> places;
    std::map<std::string, std::uint64_t> completions;  // of an end and queue
    std::uint64_t observer = 0;
    std::uint64_t event_observer = 0;
    for (const Record& record : records) {
        if (record.name == "queue_pair") {
            end_of[record.number("qpn")] = fmt::format("{}/{}", record.node, ++made[record.node]);
        } else if (record.name == "verb") {
            const std::string call = fmt::format("ibv_{}", record.text("verb"));
            places.push_back({.packet = {.host = record.node},
                              .nth = ++calls[fmt::format("{} {}", record.node, call)],
                              .call = call});
        } else if (record.name == "fault" && record.text("name") == kObserver) {
            observer = record.number("fault");
        } else if (record.name == "fault" && record.text("name") == kEventObserver) {
            event_observer = record.number("fault");
        } else if (record.name == "fault_fired" && record.number("fault") == event_observer) {
            places.push_back(
                {.packet = {}, .nth = record.number("nth"), .call = std::string(kCompletionEvent)});
        } else if (record.name == "completion") {
            const std::string& end = end_of[record.number("qpn")];
            const std::string_view call =
                record.text("opcode").starts_with("RECV") ? kReceiveCompletion : kSendCompletion;
            places.push_back({.packet = {.end = end, .host = record.node},
                              .nth = ++completions[fmt::format("{} {}", end, call)],
                              .call = std::string(call)});
        } else if (record.name == "fault_fired" && record.number("fault") == observer) {
            Place place{.packet = {.psn = record.number("relative_psn"),
                                   .attempt = record.number("attempt"),
                                   .opcode = std::string(record.text("operation")),
                                   .host = record.node},
                        .nth = record.number("nth")};
            if (place.packet.psn != 0) {
                place.packet.is_response = is_response(place.packet.opcode);
                const std::string& sender = end_of[record.number("flow")];
                const std::string& receiver = end_of[record.number("to_flow")];
                place.packet.end = place.packet.is_response ? receiver : sender;
                place.to = host_of_end(receiver);
            }
            places.push_back(std::move(place));
        }
    }
    return places;
}

}  // namespace

void add_places(const std::string& trace_file, BranchResult& result) {
    if (const auto records = read_trace(trace_file)) {
        result.places = places_of(*records);
        result.surroundings = surroundings_of(*records);
        result.effects = effects_of(*records);
    }
}

}  // namespace scenarios
