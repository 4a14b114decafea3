// Explores a program that has its world in its own process, started anew for each branch.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/core/hash.hpp"
#include "fabric/core/shell_word.hpp"
#include "fabric/core/temporary_folder.hpp"

#include "simverbs/model/wire_opcodes.hpp"

#include "scenarios/explore/subject.hpp"
#include "scenarios/search/variation.hpp"

namespace scenarios {

namespace {

// How the library says that a scenario means nothing in the world of the program.
constexpr std::string_view kRefusal = "simverbs: SIMVERBS_SCENARIO: ";

// Returns the first line that has the word in it; "": none.
std::string line_with(const std::string& output, std::string_view word) {
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        if (line.find(word) != std::string::npos) {
            return line;
        }
    }
    return "";
}

// Returns the line by which people know a failure: of a sanitizer, an assertion or a test; "":
// none.
std::string telling_line(const std::string& output) {
    for (const std::string_view word :
         {"SUMMARY: ", "runtime error: ", ": Failure", "Assertion ", "terminate called"}) {
        if (std::string line = line_with(output, word); !line.empty()) {
            return line;
        }
    }
    return "";
}

std::string last_line(const std::string& output) {
    const std::size_t end = output.find_last_not_of('\n');
    if (end == std::string::npos) {
        return "";
    }
    const std::size_t before = output.rfind('\n', end);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    return output.substr(begin, end + 1 - begin);
}

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

// The packets that the observer has hit, and the calls, in their order. Queue pairs are called
// HOST/N.
std::vector<Place> places_of(const std::vector<Record>& records) {
    std::map<std::string, unsigned> made;         // queue pairs of a host
    std::map<std::uint64_t, std::string> end_of;  // by queue pair number, which no two hosts share
    std::map<std::string, std::uint64_t> calls;   // of a host and verb
    std::vector<Place> places;
    std::uint64_t observer = 0;
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
        } else if (record.name == "fault_fired" && record.number("fault") == observer) {
            Place place{.packet = {.psn = record.number("relative_psn"),
                                   .attempt = record.number("attempt"),
                                   .opcode = std::string(record.text("operation")),
                                   .host = record.node},
                        .nth = record.number("nth")};
            if (place.packet.psn != 0) {
                place.packet.is_response = is_response(place.packet.opcode);
                place.packet.end =
                    end_of[record.number(place.packet.is_response ? "to_flow" : "flow")];
            }
            places.push_back(std::move(place));
        }
    }
    return places;
}

class ProgramSubject final : public Subject {
  public:
    ProgramSubject(std::vector<std::string> command, std::string libraries)
        : command_(std::move(command)),
          libraries_(std::move(libraries)),
          name_(fmt::format("{}", fmt::join(command_, " "))) {}

    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] std::size_t branches_of_process() const override { return 1; }

    [[nodiscard]] std::string reproducer(const Branch& branch) const override {
        return faults_text(branch, false);
    }

    [[nodiscard]] std::string replay(const std::string& file) const override {
        std::string text = "SIMVERBS_SCENARIO=" + fabric::shell_word(file);
        for (const std::string& word : command_) {
            text += " " + fabric::shell_word(word);
        }
        return text;
    }

    [[nodiscard]] BranchResult run(const Branch& branch) const override {
        const std::string stem = place_.file(fmt::format("branch-{}", getpid()));
        const std::string trace = stem + ".jsonl";
        std::ofstream(stem + ".yaml") << faults_text(branch, branch.with_places);
        Environment environment = {{"SIMVERBS_SCENARIO", stem + ".yaml"}};
        if (branch.with_places || branch.with_explanation) {
            environment.emplace_back("SIMVERBS_TRACE", trace);
        }
        if (!libraries_.empty()) {
            const char* const earlier = std::getenv("LD_LIBRARY_PATH");
            environment.emplace_back(
                "LD_LIBRARY_PATH",
                libraries_ + (earlier == nullptr ? "" : fmt::format(":{}", earlier)));
        }
        BranchResult result;
        judge(run_program(command_, variations().front(), environment, stem + ".output",
                          branch.limit),
              branch.is_repaired, result);
        if (branch.with_explanation) {
            if (const auto records = read_trace(trace)) {
                result.explanation = scenarios::explain(*records, {}).value_or("");
            }
        }
        if (branch.with_places) {
            if (const auto records = read_trace(trace)) {
                result.places = places_of(*records);
                result.surroundings = surroundings_of(*records);
                result.effects = effects_of(*records);
            }
        }
        std::error_code ignored;
        for (const char* const ending : {".yaml", ".jsonl", ".output"}) {
            std::filesystem::remove(stem + ending, ignored);
        }
        return result;
    }

  private:
    static void judge(const Ended& ended, bool is_repaired, BranchResult& result) {
        if (ended.well()) {
            return;
        }
        if (ended.is_late) {
            result.outcome = Outcome::kHangs;
            result.kind = "it did not end";
            result.happened = ended.output;
            return;
        }
        if (const std::string refusal = line_with(ended.output, kRefusal); !refusal.empty()) {
            result.outcome = Outcome::kFailed;
            result.kind = "error";
            result.happened = refusal;
            return;
        }
        const std::string telling = telling_line(ended.output);
        const bool crashed = WIFSIGNALED(ended.status) || telling.starts_with("SUMMARY: ") ||
                             telling.find("runtime error: ") != std::string::npos;
        // A program may give up when what it needs is gone for good.
        if (!crashed && !is_repaired && ended.error.empty()) {
            return;
        }
        result.outcome = crashed ? Outcome::kCrashed : Outcome::kFailed;
        result.kind = ended.in_words();
        result.cause = telling;
        result.expected = "exit status 0";
        result.happened = telling.empty() ? last_line(ended.output) : telling;
    }

    static std::string faults_text(const Branch& branch, bool with_observer) {
        std::string text = fabric_text() + "faults:\n";
        if (with_observer) {
            text += fmt::format("- {}\n", observer_text());
        }
        for (std::size_t i = 0; i < branch.choices.size(); ++i) {
            text += fmt::format("- {}\n", fault_text(branch, i));
        }
        return text;
    }

    // The topology of the environment, by whose names faults are written.
    static std::string fabric_text() {
        const char* const topology = std::getenv("SIMVERBS_TOPOLOGY");
        if (topology == nullptr) {
            return "";
        }
        const std::filesystem::path file(topology);
        return std::filesystem::is_regular_file(file)
                   ? fmt::format("fabric: {{file: \"{}\"}}\n",
                                 std::filesystem::absolute(file).string())
                   : fmt::format("fabric: \"{}\"\n", topology);
    }

    std::vector<std::string> command_;
    std::string libraries_;
    std::string name_;
    fabric::TemporaryFolder place_{"simverbs-explore-"};
};

}  // namespace

std::unique_ptr<Subject> program_subject(std::vector<std::string> command, std::string libraries) {
    return std::make_unique<ProgramSubject>(std::move(command), std::move(libraries));
}

}  // namespace scenarios
