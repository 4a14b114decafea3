#include "simverbs/server/expected_programs.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

namespace simverbs {
namespace {

bool is_among(const std::vector<pid_t>& processes, pid_t process) {
    return std::find(processes.begin(), processes.end(), process) != processes.end();
}

// The larger, the less time may pass.
int restlessness(ThreadState state) {
    switch (state) {
        case ThreadState::kRuns:
            return 3;
        case ThreadState::kAsleepForTime:
            return 2;
        case ThreadState::kSpins:
        case ThreadState::kAsleep:
            return 1;
        case ThreadState::kEnded:
            break;
    }
    return 0;
}

ThreadState more_restless(ThreadState a, ThreadState b) {
    return restlessness(a) >= restlessness(b) ? a : b;
}

}  // namespace

std::vector<pid_t> family_of(pid_t process) {
    std::vector<pid_t> family{process};
    for (std::size_t i = 0; i < family.size(); ++i) {
        std::error_code ignored;
        for (const auto& thread : std::filesystem::directory_iterator(
                 fmt::format("/proc/{}/task", family[i]), ignored)) {
            std::ifstream children(thread.path() / "children");
            pid_t child = 0;
            while (children >> child) {
                family.push_back(child);
            }
        }
    }
    return family;
}

void ExpectedPrograms::started(pid_t process) {
    const std::lock_guard lock(mutex_);
    programs_.emplace_back().process = process;
    not_started_ -= not_started_ > 0 ? 1 : 0;
}

ThreadState ExpectedPrograms::look(const std::vector<pid_t>& attached,
                                   std::chrono::nanoseconds spin_limit,
                                   std::chrono::nanoseconds interval, std::string& spinner) {
    const std::lock_guard lock(mutex_);
    ThreadState all = not_started_ > 0 ? ThreadState::kRuns : ThreadState::kEnded;
    for (Program& program : programs_) {
        if (all == ThreadState::kRuns) {
            break;
        }
        if (program.attached != 0 && is_among(attached, program.attached)) {
            continue;
        }
        const std::vector<pid_t> family = family_of(program.process);
        const auto member = std::find_if(family.begin(), family.end(), [&](pid_t process) {
            return is_among(attached, process);
        });
        if (member != family.end()) {
            program.attached = *member;
            program.watches.clear();
            continue;
        }
        program.attached = 0;
        std::erase_if(program.watches,
                      [&](const auto& watch) { return !is_among(family, watch.first); });
        for (const pid_t process : family) {
            program.watches.try_emplace(process, process, process);
        }
        all = more_restless(all, look_at(program, spin_limit, interval, spinner));
    }
    std::erase_if(programs_, [](const Program& program) { return program.has_ended; });
    return all;
}

ThreadState ExpectedPrograms::look_at(Program& program, std::chrono::nanoseconds spin_limit,
                                      std::chrono::nanoseconds interval, std::string& spinner) {
    ThreadState all = ThreadState::kEnded;
    for (auto& [process, watch] : program.watches) {
        const ThreadState state = watch.look(spin_limit, interval);
        if (state == ThreadState::kSpins && spinner.empty()) {
            spinner = watch.program();
        }
        all = more_restless(all, state);
    }
    program.has_ended = all == ThreadState::kEnded;
    return all;
}

bool ExpectedPrograms::attached(pid_t process) {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(programs_.begin(), programs_.end(), [process](const Program& program) {
            return is_among(family_of(program.process), process);
        });
    if (found == programs_.end()) {
        return false;
    }
    found->attached = process;
    return true;
}

bool ExpectedPrograms::has_attached(pid_t program) {
    const std::lock_guard lock(mutex_);
    return std::any_of(programs_.begin(), programs_.end(), [program](const Program& candidate) {
        return candidate.process == program && candidate.attached != 0;
    });
}

bool ExpectedPrograms::empty() {
    const std::lock_guard lock(mutex_);
    return not_started_ == 0 && programs_.empty();
}

}  // namespace simverbs
