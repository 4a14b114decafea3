#include "tutorials/lab/diagnosis.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <regex>
#include <sstream>

#include <fmt/format.h>

#include "viz/markup.hpp"

namespace simverbs::lab {
namespace {

constexpr std::array<std::string_view, 4> kWay = {"RESET", "INIT", "RTR", "RTS"};
constexpr std::string_view kGaveUp = "gave up: ";
constexpr std::string_view kPolledOnce = "simverbs: polled_once:";

std::string line_that_starts_with(std::string_view words, const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(words)) {
            return line;
        }
    }
    return "";
}

std::string at(const std::optional<Place>& place) {
    return place ? " at " + text_of(*place) : "";
}

std::string seconds(std::chrono::milliseconds limit) {
    return fmt::format("{} s", std::chrono::duration<double>(limit).count());
}

std::string crash_text(const Performance& performance) {
    const std::optional<Place>& place = performance.place;
    const char* const abbreviation = sigabbrev_np(performance.ending.number);
    return fmt::format(
        "It crashed: {} (SIG{}){}.{}", strsignal(performance.ending.number),
        abbreviation == nullptr ? "?" : abbreviation, at(place),
        place && place->null_touched ? " A pointer was used that is NULL, or was never set." : "");
}

// Returns what the program says of its own end.
std::string reason_of(const Performance& performance) {
    const std::string exception = exception_of(performance.errors);
    return exception.empty() ? line_that_starts_with(kGaveUp, performance.errors) : exception;
}

// By ENOMEM from ibv_post_send() and its like, or from post_recv() of pyverbs.
bool is_full_queue(const std::string& reason) {
    return reason.find("post") != std::string::npos &&
           reason.find("Cannot allocate memory") != std::string::npos;
}

std::optional<std::string> exit_text(const Performance& performance) {
    const int status = performance.ending.number;
    const std::optional<Place>& place = performance.place;
    if (status == 0) {
        return place ? std::optional(fmt::format("It ended by exit(0){}.", at(place)))
                     : std::nullopt;
    }
    const std::string reason = reason_of(performance);
    return fmt::format("It ended early{}{} with status {}{}{}", at(place), place ? "," : "", status,
                       reason.empty() ? "." : ": " + reason,
                       is_full_queue(reason)
                           ? ". The queue is full: it takes no more requests than "
                             "it was made for, and each has its place until it "
                             "has completed."
                           : "");
}

// Which step was asked for, by what simverbs says of the refusal.
std::optional<Diagnosis> skipped_state(const Performance& performance) {
    static const std::regex kStep("\\]: (\\w+) to (\\w+)( is no transition of )?");
    std::istringstream lines(performance.errors);
    std::smatch found;
    std::string line;
    while (found.empty() && std::getline(lines, line)) {
        if (line.starts_with("simverbs: ibv_modify_qp refused")) {
            std::regex_search(line, found, kStep);
        }
    }
    if (found.empty() || !found[3].matched) {
        return std::nullopt;  // a step that was tried and refused is not skipped by the next one
    }
    const std::string from = found[1];
    const std::string to = found[2];
    const auto place = [](const std::string& state) {
        return std::find(kWay.begin(), kWay.end(), state) - kWay.begin();
    };
    const bool is_skip = place(to) < std::ssize(kWay) && place(to) > place(from) + 1;
    return Diagnosis{
        kSkipsState,
        is_skip
            ? fmt::format("A state was skipped: ibv_modify_qp() was asked for {} to {}, and was "
                          "refused. A queue pair goes from RESET to INIT, to RTR, to RTS, one "
                          "step at a time.",
                          from, to)
            : fmt::format("There is no step from {} to {}: ibv_modify_qp() was refused. From "
                          "any state a queue pair can go to RESET, and from there to INIT, RTR "
                          "and RTS, one step at a time.",
                          from, to)};
}

std::optional<Diagnosis> polled_once(const Performance& performance) {
    if (line_that_starts_with(kPolledOnce, performance.errors).empty()) {
        return std::nullopt;
    }
    return Diagnosis{kPollsOnce,
                     "A completion queue was polled once, was empty, and was not polled again. "
                     "ibv_poll_cq() (in Python cq.poll()) does not wait: it looks once and returns "
                     "0 when nothing is there yet. Call it in a loop until it finds something."};
}

// Which object it was, by what simverbs says between "[0x10001]: " and "; called from ".
std::optional<Diagnosis> destroyed_twice(const Performance& performance) {
    static const std::regex kObject("(?:\\[0x[0-9a-f]+\\]|crash): ([a-z ]+); called from ");
    const std::string line = line_of_second_end(performance.errors);
    if (line.empty()) {
        return std::nullopt;
    }
    std::smatch found;
    const std::string object =
        std::regex_search(line, found, kObject) ? found[1].str() : std::string("object");
    const auto& place = performance.second_end ? performance.second_end : performance.place;
    return Diagnosis{kDestroysTwice,
                     fmt::format("A {} was destroyed twice{}{}. With the first call it is gone, "
                                 "and the pointer leads nowhere; on other devices the second call "
                                 "is a crash. Each object that is made is destroyed once.",
                                 object, place ? ", the second time" : "", at(place))};
}

// Lessons that are about it have a rule of their own.
std::optional<Diagnosis> overflown_queue(const Rubric& rubric, const Performance& performance) {
    const bool has_rule =
        std::any_of(rubric.rules.begin(), rubric.rules.end(), [](const Rule& rule) {
            const auto* const count = std::get_if<CountRule>(&rule.demand);
            return count != nullptr && count->of.record == "cq_state" && count->most == 0;
        });
    const std::vector<viz::Record>& records = performance.trace.records;
    const auto dead = std::find_if(records.begin(), records.end(), [](const viz::Record& record) {
        return record.name == "cq_state" && record.text("to") == "DEAD";
    });
    if (has_rule || dead == records.end()) {
        return std::nullopt;
    }
    return Diagnosis{
        kOverflowsQueue,
        fmt::format("A completion queue of {} overflowed at {}: more completions came than it has "
                    "entries, before anybody polled them. It is dead, and the queue pairs that "
                    "complete into it are in ERR. It needs an entry for each request that may be "
                    "under way.",
                    performance.run.label(dead->node), viz::time_text(dead->time))};
}

// A program that failed or crashed before it opened a device has another reason.
std::optional<Diagnosis> only_prints(const Rubric& rubric, const Performance& performance) {
    const bool has_rule =
        std::any_of(rubric.rules.begin(), rubric.rules.end(), [](const Rule& rule) {
            const auto* const count = std::get_if<CountRule>(&rule.demand);
            return count != nullptr && count->of.record == "context" && count->least > 0;
        });
    if (has_rule || !performance.ending.is_good() || !lacks_device(rubric, performance)) {
        return std::nullopt;
    }
    return Diagnosis{kOpensNoDevice,
                     "It opened no device, so nothing happened of which it could tell. An answer "
                     "is judged by what its devices did, not by the lines that it prints."};
}

}  // namespace

std::optional<std::string> ending_text(const Performance& performance,
                                       std::chrono::milliseconds limit) {
    const std::string where = performance.place ? " It was then" + at(performance.place) +
                                                      callers_of(*performance.place) + "."
                                                : "";
    switch (performance.ending.kind) {
        case Ending::Kind::kKilledBySignal:
            return crash_text(performance);
        case Ending::Kind::kException:
            return fmt::format("It crashed{}: {}", at(performance.place),
                               exception_of(performance.errors));
        case Ending::Kind::kTimedOut:
            return fmt::format("It did not end: it was stopped after {}.{}", seconds(limit), where);
        case Ending::Kind::kStuck:
            return fmt::format(
                "It did not end: it waits for something that does not come, and was stopped.{}",
                where);
        case Ending::Kind::kAsleep:
            return fmt::format(
                "It did not end: it slept by the clock, and was stopped after {}. What it may wait "
                "for comes in virtual time, so polling until it is there takes no time at all.{}",
                seconds(limit), where);
        case Ending::Kind::kInterrupted:
            return "It was interrupted.";
        case Ending::Kind::kKilledSupervisor:
            return "It killed the process that runs it, and itself with that, by kill() of its "
                   "parent or of every process.";
        case Ending::Kind::kNotStarted:
            return "It was not started.";
        case Ending::Kind::kExited:
            break;
    }
    return exit_text(performance);
}

std::vector<Diagnosis> diagnose(const Rubric& rubric, const Performance& performance,
                                std::chrono::milliseconds limit) {
    std::vector<Diagnosis> all;
    if (performance.ending.kind == Ending::Kind::kKilledBySignal ||
        performance.ending.kind == Ending::Kind::kException ||
        performance.ending.kind == Ending::Kind::kKilledSupervisor) {
        all.push_back({kCrashes, ending_text(performance, limit).value_or("")});
    }
    if (performance.ending.kind == Ending::Kind::kTimedOut) {
        all.push_back({kTimesOut, ending_text(performance, limit).value_or("")});
    }
    for (auto& found :
         {destroyed_twice(performance), skipped_state(performance), polled_once(performance),
          overflown_queue(rubric, performance), only_prints(rubric, performance)}) {
        if (found) {
            all.push_back(*found);
        }
    }
    return all;
}

}  // namespace simverbs::lab
