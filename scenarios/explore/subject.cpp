#include "scenarios/explore/subject.hpp"

#include <fmt/core.h>

#include "simverbs/model/branch_report.hpp"

namespace scenarios {

std::string fault_name(std::size_t index) {
    return fmt::format("{}{}", simverbs::kReportedFault, index + 1);
}

std::string fault_text(const Branch& branch, std::size_t index) {
    return fmt::format("{{name: {}, {}}}", fault_name(index), branch.choices[index].fault);
}

std::vector<std::string> call_observers() {
    std::vector<std::string> all;
    for (const std::string_view verb : {"ibv_post_send", "ibv_post_recv", "ibv_post_srq_recv",
                                        "ibv_post_wq_recv", "ibv_poll_cq"}) {
        all.push_back(fmt::format(
            "{{name: explore_{}, action: mark, when: {{on: call, call: {}, count: every}}}}", verb,
            verb));
    }
    all.push_back(
        fmt::format("{{name: {}, action: mark, when: {{on: call, call: ibv_get_cq_event, "
                    "count: every}}}}",
                    kEventObserver));
    return all;
}

std::string observer_text() {
    return fmt::format("{{name: {}, action: mark, when: {{on: packet, count: every}}}}", kObserver);
}

std::vector<BranchResult> Subject::run_all(std::span<const Branch> branches,
                                           std::chrono::steady_clock::time_point end) const {
    std::vector<BranchResult> results;
    for (const Branch& branch : branches) {
        if (std::chrono::steady_clock::now() >= end) {
            break;
        }
        results.push_back(run(branch));
    }
    return results;
}

}  // namespace scenarios
