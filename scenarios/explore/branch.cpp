#include "scenarios/explore/branch.hpp"

#include <nlohmann/json.hpp>

namespace scenarios {

namespace {

nlohmann::json to_json(const Surroundings& surroundings) {
    nlohmann::json links = nlohmann::json::array();
    for (const auto& [name, host] : surroundings.links) {
        links.push_back({name, host});
    }
    nlohmann::json managed = nlohmann::json::array();
    for (const auto& [host, port] : surroundings.managed) {
        managed.push_back({host, port});
    }
    const auto optional = [](const std::optional<std::int64_t>& value) {
        return value ? nlohmann::json(*value) : nlohmann::json();
    };
    return {surroundings.hosts,
            std::move(links),
            surroundings.ends,
            surroundings.repaired_faults,
            optional(surroundings.ack_timeout_ps),
            optional(surroundings.patience_ps),
            std::move(managed),
            surroundings.owners};
}

Surroundings surroundings_from_json(const nlohmann::json& json) {
    const auto optional = [&json](std::size_t at) {
        return json.at(at).is_null() ? std::nullopt
                                     : std::optional(json.at(at).get<std::int64_t>());
    };
    Surroundings all{.hosts = json.at(0),
                     .owners = json.at(7),
                     .links = {},
                     .managed = {},
                     .ends = json.at(2),
                     .repaired_faults = json.at(3),
                     .ack_timeout_ps = optional(4),
                     .patience_ps = optional(5)};
    for (const nlohmann::json& link : json.at(1)) {
        all.links.push_back({link.at(0), link.at(1)});
    }
    for (const nlohmann::json& port : json.at(6)) {
        all.managed.push_back({port.at(0), port.at(1)});
    }
    return all;
}

}  // namespace

std::string_view to_string(Outcome outcome) {
    switch (outcome) {
        case Outcome::kPassed:
            return "passed";
        case Outcome::kMissed:
            return "missed";
        case Outcome::kFailed:
            return "failed";
        case Outcome::kWrongData:
            return "wrong data";
        case Outcome::kHangs:
            return "hangs";
        case Outcome::kCrashed:
            return "crashed";
        case Outcome::kTooLong:
            return "too long";
        case Outcome::kMisuse:
            return "misuse";
        case Outcome::kLeaks:
            return "leaks";
        case Outcome::kTooSlow:
            return "too slow";
        case Outcome::kNotDeterministic:
            return "not deterministic";
    }
    return "?";
}

nlohmann::json to_json(const BranchResult& result) {
    nlohmann::json places = nlohmann::json::array();
    for (const auto& [packet, nth, call, to] : result.places) {
        places.push_back({packet.end, packet.is_response, packet.psn, packet.attempt, packet.opcode,
                          packet.host, nth, call, to});
    }
    nlohmann::json mistakes = nlohmann::json::array();
    for (const auto& [misuse, line, host] : result.mistakes) {
        mistakes.push_back({static_cast<int>(misuse), line, host});
    }
    return {static_cast<int>(result.outcome),
            result.kind,
            result.cause,
            result.expected,
            result.happened,
            result.explanation,
            result.time_ps,
            result.effects,
            std::move(places),
            to_json(result.surroundings),
            result.is_forked,
            result.ended_well,
            std::move(mistakes),
            result.run_digest,
            result.marks,
            result.turns_digest};
}

BranchResult branch_from_json(const nlohmann::json& json) {
    BranchResult result{.outcome = static_cast<Outcome>(json.at(0).get<int>()),
                        .kind = json.at(1),
                        .cause = json.at(2),
                        .expected = json.at(3),
                        .happened = json.at(4),
                        .explanation = json.at(5),
                        .time_ps = json.at(6),
                        .effects = json.at(7),
                        .is_forked = json.at(10),
                        .ended_well = json.at(11),
                        .mistakes = {},
                        .run_digest = json.at(13),
                        .marks = json.at(14),
                        .turns_digest = json.at(15),
                        .places = {},
                        .surroundings = surroundings_from_json(json.at(9))};
    for (const nlohmann::json& place : json.at(8)) {
        result.places.push_back({{.end = place.at(0),
                                  .is_response = place.at(1),
                                  .psn = place.at(2),
                                  .attempt = place.at(3),
                                  .opcode = place.at(4),
                                  .host = place.at(5)},
                                 place.at(6),
                                 place.at(7),
                                 place.at(8)});
    }
    for (const nlohmann::json& mistake : json.at(12)) {
        result.mistakes.push_back({static_cast<simverbs::Misuse>(mistake.at(0).get<int>()),
                                   mistake.at(1), mistake.at(2)});
    }
    return result;
}

}  // namespace scenarios
