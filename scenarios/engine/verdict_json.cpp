#include "scenarios/engine/verdict_json.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "fabric/core/xml_text.hpp"

#include "scenarios/engine/batch.hpp"

namespace scenarios {

nlohmann::ordered_json to_json(const Verdict& verdict) {
    nlohmann::ordered_json failures = nlohmann::ordered_json::array();
    for (const Failure& failure : verdict.failures) {
        failures.push_back({{"file", verdict.file_of(failure)},
                            {"line", failure.position.line},
                            {"column", failure.position.column},
                            {"time_ps", failure.time_ps},
                            {"expected", failure.expected},
                            {"happened", failure.happened},
                            {"kind", failure.kind}});
    }
    nlohmann::ordered_json packets_hit = nlohmann::ordered_json::object();
    for (const auto& [name, hits] : verdict.packets_hit) {
        nlohmann::ordered_json& list = packets_hit[name] = nlohmann::ordered_json::array();
        for (const PacketHit& hit : hits) {
            list.push_back({{"qp", hit.end},
                            {"direction", hit.is_response ? "responses" : "requests"},
                            {"psn", hit.psn},
                            {"attempt", hit.attempt},
                            {"opcode", hit.opcode},
                            {"host", hit.host}});
        }
    }
    return {{"file", verdict.file},
            {"included", verdict.included},
            {"passed", verdict.passed()},
            {"error", verdict.error},
            {"is_input", verdict.is_input},
            {"failures", failures},
            {"warnings", verdict.warnings},
            {"interrupted_by", verdict.interrupted_by},
            {"so_far", verdict.so_far},
            {"explanation", verdict.explanation},
            {"root", {{"cause", verdict.root.cause}, {"actions", verdict.root.actions}}},
            {"digest", fmt::format("{:016x}", verdict.digest)},
            {"time_ps", verdict.time_ps},
            {"deterministic", verdict.deterministic},
            {"mark", verdict.mark},
            {"fired", verdict.fired},
            {"packets_hit", packets_hit}};
}

namespace {

// The place of a file among those of the scenario.
std::size_t place_of(const Verdict& verdict, const std::string& file) {
    const auto found = std::ranges::find(verdict.included, file);
    return file == verdict.file || found == verdict.included.end()
               ? 0
               : static_cast<std::size_t>(found - verdict.included.begin()) + 1;
}

}  // namespace

Verdict from_json(const nlohmann::json& json) {
    constexpr int kHexadecimal = 16;
    Verdict verdict;
    verdict.file = json.at("file");
    verdict.included = json.at("included");
    verdict.interrupted_by = json.at("interrupted_by");
    verdict.so_far = json.at("so_far");
    verdict.error = json.at("error");
    verdict.is_input = json.at("is_input");
    verdict.warnings = json.at("warnings");
    for (const nlohmann::json& failure : json.at("failures")) {
        verdict.failures.push_back(
            {{failure.at("line"), failure.at("column"), place_of(verdict, failure.at("file"))},
             failure.at("time_ps"),
             failure.at("expected"),
             failure.at("happened"),
             failure.at("kind")});
    }
    verdict.explanation = json.at("explanation");
    verdict.root = {json.at("root").at("cause"), json.at("root").at("actions")};
    verdict.digest = std::stoull(json.at("digest").get<std::string>(), nullptr, kHexadecimal);
    verdict.time_ps = json.at("time_ps");
    verdict.deterministic = json.at("deterministic");
    verdict.mark = json.at("mark");
    verdict.fired = json.at("fired");
    for (const auto& [name, hits] : json.at("packets_hit").items()) {
        for (const nlohmann::json& hit : hits) {
            verdict.packets_hit[name].push_back({hit.at("qp"), hit.at("direction") == "responses",
                                                 hit.at("psn"), hit.at("attempt"),
                                                 hit.value("opcode", ""), hit.value("host", "")});
        }
    }
    return verdict;
}

// As JUnit's Ant task writes it, of which every reader knows this much.
std::string junit(const std::vector<Verdict>& verdicts) {
    std::size_t failures = 0;
    std::size_t errors = 0;
    std::string cases;
    for (const Verdict& verdict : verdicts) {
        failures += verdict.error.empty() && !verdict.passed() ? 1 : 0;
        errors += verdict.error.empty() ? 0 : 1;
        cases += fmt::format("  <testcase classname=\"scenario\" name=\"{}\"",
                             fabric::xml_text(verdict.file));
        if (verdict.passed()) {
            cases += "/>\n";
            continue;
        }
        const char* const kind = verdict.error.empty() ? "failure" : "error";
        const std::string first =
            verdict.error.empty() ? verdict.failures.front().expected : verdict.error;
        cases += fmt::format(">\n    <{} message=\"{}\">{}</{}>\n  </testcase>\n", kind,
                             fabric::xml_text(first), fabric::xml_text(report(verdict, {})), kind);
    }
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"scenarios\" "
        "tests=\"{}\" failures=\"{}\" errors=\"{}\">\n{}</testsuite>\n",
        verdicts.size(), failures, errors, cases);
}

}  // namespace scenarios
