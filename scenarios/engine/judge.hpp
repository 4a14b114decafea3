// Compares what a scenario expects with what was seen.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/engine/checked.hpp"
#include "scenarios/engine/faults.hpp"
#include "scenarios/engine/observed.hpp"

namespace scenarios {

class Judge {
  public:
    Judge(const Observed& run, const Faults& faults) : run_(run), faults_(faults) {}

    // Checks what must hold at this moment.
    void judge_now(Checked expect) { judge(expect); }
    // The same at the end, with what always holds.
    void judge_end(Checked expect, const std::vector<std::string>& waiting);
    // `status` as a shell gives it.
    void judge_exit(Checked exits, const std::string& host, const std::string& command, int status);
    void fail(Failure failure) { failures_.push_back(std::move(failure)); }
    [[nodiscard]] const std::vector<Failure>& failures() const { return failures_; }

  private:
    void judge(Checked expect);
    void judge_completions(Checked ends);
    void judge_completions_of(const std::string& end, Checked list);
    void judge_states(Checked ends);
    void judge_events(Checked hosts);
    void judge_cm_events(Checked hosts);
    // An event as lists of expected ones name it.
    struct Seen {
        std::int64_t time_ps;
        std::string_view event;
        std::string of;
        std::string text;  // for people
        const CmEventSeen* by_cm = nullptr;
    };
    void judge_events_of(const std::string& host, const fabric::yaml::Value& list,
                         const std::vector<Seen>& found);
    void judge_counters(Checked nodes);
    void judge_fired(Checked faults);
    void judge_memory(Checked item);
    void judge_time(Checked time);
    void judge_never(Checked clause);
    void judge_digest(Checked digest);
    void expect_range(Checked range, std::string_view what, std::uint64_t found);
    void miss(Checked where, std::string expected, std::string happened);
    void miss(Checked where, std::int64_t time, std::string expected, std::string happened);

    const Observed& run_;
    const Faults& faults_;
    std::vector<Failure> failures_;
    std::string_view kind_;  // of the failures that are found now
    std::string end_;        // that they are about; "": none
};

}  // namespace scenarios
