#include "scenarios/engine/run.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "fabric/core/counted.hpp"

#include "scenarios/engine/faults.hpp"
#include "scenarios/engine/fired_faults.hpp"
#include "scenarios/engine/judge.hpp"
#include "scenarios/engine/own_world.hpp"
#include "scenarios/engine/program.hpp"
#include "scenarios/engine/world.hpp"

namespace scenarios {

namespace {

constexpr std::int64_t kDefaultStop = 1'000'000'000'000'000;  // 1000 s

// The ends and ids of a scenario.
class NamesOfRun final : public RunNames {
  public:
    explicit NamesOfRun(const Observed& run) : run_(run) {}
    [[nodiscard]] std::string end_of(std::string_view node, std::uint64_t qpn) const override {
        return run_.end_of(node, qpn);
    }
    // Completions of one instant are polled in the order of the trace.
    [[nodiscard]] std::optional<std::uint64_t> id_of(const Record& completion) const override {
        const auto is_alike = [&completion](const Record& record) {
            return record.name == "completion" && record.time_ps == completion.time_ps &&
                   record.node == completion.node &&
                   record.number("qpn") == completion.number("qpn") &&
                   record.number("status") == completion.number("status");
        };
        std::size_t before = 0;
        for (const Record& record : run_.records()) {
            if (&record == &completion) {
                break;
            }
            before += is_alike(record) ? 1 : 0;
        }
        const std::string end = run_.end_of(completion.node, completion.number("qpn"));
        for (const Completed& each : run_.completed()) {
            const bool is_candidate = each.end == end && each.time_ps == completion.time_ps &&
                                      each.status == static_cast<int>(completion.number("status"));
            if (is_candidate && before-- == 0) {
                return each.id;
            }
        }
        const std::string_view opcode = completion.text("opcode");
        return run_.posted_id(end, opcode.starts_with("RECV") || opcode.starts_with("TM_"),
                              completion.number("index"));
    }

  private:
    const Observed& run_;
};

bool does_something(const Scenario& scenario) {
    const Checked root(scenario.root);
    return root.has("programs") || root.has("workloads") ||
           std::ranges::any_of(scenario.at("hosts").entries(),
                               [](const auto& host) { return Checked(host.value).has("do"); });
}

constexpr std::string_view kNextLine = "\n      ";

// Returns what simverbs_waits() says, to stand below another line; "": it says nothing.
std::string waits_of_queue_pairs() {
    const char* const waits = simverbs_waits();
    std::string lines = waits == nullptr ? "" : waits;
    while (lines.ends_with('\n')) {
        lines.pop_back();
    }
    for (std::size_t at = 0; (at = lines.find('\n', at)) != std::string::npos;
         at += kNextLine.size()) {
        lines.replace(at, 1, kNextLine);
    }
    return lines;
}

// How far a run had come that a signal has ended.
std::vector<std::string> so_far(const Programs& programs) {
    std::vector<std::string> lines = programs.waiting();
    if (const std::string waits = waits_of_queue_pairs(); !waits.empty()) {
        lines.push_back(fmt::format("queue pairs:{}{}", kNextLine, waits));
    }
    return lines;
}

// Programs that wait when nothing is left before the end of the run, and what queue pairs wait for.
std::vector<std::string> waiting_at_the_end(const Programs& programs, std::int64_t stop) {
    std::vector<std::string> waiting = programs.waiting();
    if (waiting.empty()) {
        return waiting;
    }
    if (const auto& endless = programs.endless_retries(); !endless.empty()) {
        waiting.push_back(fmt::format(
            "nothing happens any more but retries, which \"run: {{stop: TIME}}\" goes on with:{}{}",
            kNextLine, fmt::join(endless, kNextLine)));
    } else if (const std::string lines = waits_of_queue_pairs(); !lines.empty()) {
        waiting.push_back(fmt::format("nothing is left before run.stop, {}:{}{}", time_text(stop),
                                      kNextLine, lines));
    }
    return waiting;
}

// A run that nobody gave a stop has ended before a queue pair has had its answer, or its timeout:
// one warning for each of them. Lines of simverbs_waits() name the host, then its queue pairs.
std::vector<std::string> cut_by_default_stop(const World& world) {
    std::vector<std::string> warnings;
    const char* const waits = simverbs_waits();
    std::istringstream lines(waits == nullptr ? "" : waits);
    std::string host;
    for (std::string line; std::getline(lines, line);) {
        constexpr std::string_view kHost = "host ";
        constexpr std::string_view kQueuePair = "  QP ";
        constexpr std::string_view kUntil = ", until ";
        const std::size_t until = line.find(kUntil);
        if (line.starts_with(kHost)) {
            host = line.substr(kHost.size());
        } else if (line.starts_with(kQueuePair) && until != std::string::npos) {
            const std::uint64_t qpn = std::strtoull(line.c_str() + kQueuePair.size(), nullptr, 0);
            const std::string end = world.end_of(host, qpn);
            warnings.push_back(fmt::format(
                "the run ended at its default stop, {} of virtual time, while {} still waited for "
                "its ACK timeout until {}; \"run: {{stop: TIME}}\" or --set run.stop=TIME gives it "
                "longer",
                time_text(kDefaultStop), end.empty() ? queue_pair_text(host, qpn) : end,
                line.substr(until + kUntil.size())));
        }
    }
    return warnings;
}

// Questions about the ends of the failed expectations: the completion that came instead, any
// failure of that end, then of its peer. Last, any failure at all.
std::vector<Question> questions_about(const Verdict& verdict, const Observed& run) {
    std::vector<Question> questions;
    for (const Failure& failure : verdict.failures) {
        for (const Record& record : run.records()) {
            const auto qpn = static_cast<std::uint32_t>(record.number("qpn"));
            if (record.name != "queue_pair" || failure.end.empty() ||
                run.end_of(record.node, qpn) != failure.end) {
                continue;
            }
            questions.push_back({qpn, std::nullopt, record.node, failure.time_ps});
            questions.push_back({qpn, std::nullopt, record.node});
            const std::string peer = run.peer_of(record.node, qpn);
            if (const auto place = run.place_of(peer); place && place->number != 0) {
                questions.push_back({place->number, std::nullopt, place->host});
            }
        }
    }
    questions.emplace_back();
    return questions;
}

}  // namespace

void add_explanation(Verdict& verdict, const Observed& run) {
    const std::vector<Record>& records = run.records();
    const NamesOfRun names(run);
    verdict.explanation = recovered(records);
    if (!verdict.failures.empty()) {
        verdict.explanation += describe_fired_faults(records, &names);
    }
    for (const Question& question : questions_about(verdict, run)) {
        if (auto explanation = explain(records, question, &names)) {
            verdict.explanation = std::move(*explanation);
            verdict.root = root_of(records, question);
            break;
        }
    }
}

void add_findings(Verdict& verdict, const Observed& run, const Faults& faults) {
    verdict.so_far.push_back(
        fmt::format("{}, {} so far", fabric::counted(run.completed().size(), "completion"),
                    fabric::counted(run.events().size(), "asynchronous event")));
    verdict.fired = faults.firings();
    verdict.packets_hit = faults.packets_hit();
    verdict.fired_at_ps = faults.times_of_firings();
    for (const auto& [name, hits] : verdict.fired) {
        if (hits.empty()) {
            const std::string why = faults.why_never_fired(name);
            verdict.warnings.push_back(fmt::format("the fault \"{}\" never fired{}{}", name,
                                                   why.empty() ? "" : ": ", why));
        }
    }
}

Verdict run(const Scenario& scenario, const RunOptions& options) {
    Verdict verdict;
    verdict.file = scenario.file;
    verdict.included = scenario.included;
    World world(scenario, options.files);
    OwnWorld sink;
    Faults faults(world, sink);
    verdict.error = world.error().empty() ? faults.inject_all(scenario) : world.error();
    if (!verdict.error.empty()) {
        verdict.is_input = true;
        return verdict;
    }
    Judge judge(world, faults);
    Programs programs(scenario, world, faults, judge);
    const std::int64_t stop = scenario.at("run").duration("stop", kDefaultStop);
    programs.run({.stop = options.stop_ps > 0 ? std::min(stop, options.stop_ps) : stop,
                  .ends_in_endless_retries = !scenario.at("run").has("stop"),
                  .interrupted_by = options.interrupted_by},
                 options.reached_ps);
    verdict.interrupted_by = options.interrupted_by == nullptr ? 0 : *options.interrupted_by;
    world.take_all();
    if (verdict.interrupted_by == 0) {
        judge.judge_end(scenario.at("expect"), waiting_at_the_end(programs, stop));
    } else {
        verdict.so_far = so_far(programs);
    }
    verdict.error = world.error();
    verdict.failures = judge.failures();
    verdict.time_ps = world.now();
    int deterministic = 1;
    if (simverbs_run_digest(&verdict.digest) != 0 ||
        simverbs_is_deterministic(&deterministic) != 0) {
        verdict.error = simverbs_last_error();
    }
    verdict.deterministic = deterministic == 1;
    verdict.mark = verdict.deterministic ? "" : simverbs_last_error();
    if (!options.is_explained || options.is_explained(verdict.failures)) {
        add_explanation(verdict, world);
    }
    add_findings(verdict, world, faults);
    if (!scenario.at("run").has("stop") && options.stop_ps == 0 && verdict.interrupted_by == 0 &&
        programs.endless_retries().empty()) {
        std::ranges::copy(cut_by_default_stop(world), std::back_inserter(verdict.warnings));
    }
    if (!does_something(scenario)) {
        verdict.warnings.emplace_back(
            "nothing is done: no host has \"do\", and there are no programs and no workloads");
    }
    verdict.completed = world.completed();
    verdict.events = world.events();
    verdict.cm_events = world.cm_events();
    for (const std::string& cut : world.end()) {
        verdict.failures.push_back(
            {{}, verdict.time_ps, "all of the file is written", cut, "incomplete file"});
    }
    return verdict;
}

}  // namespace scenarios
