#include "simverbs/server/expected_programs.hpp"

#include <algorithm>
#include <utility>

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

void ExpectedPrograms::started(pid_t process, const std::string& host) {
    const std::lock_guard lock(mutex_);
    Program& program = programs_.emplace_back();
    program.process = process;
    program.host = host;
    program.number = programs_made_++;
    program.found.state = ThreadState::kRuns;  // until somebody looks
    find_members(program);
    not_started_ -= not_started_ > 0 ? 1 : 0;
}

void ExpectedPrograms::find_members(Program& program) {
    const std::vector<FamilyMember> family = family_of(program.process);
    std::erase_if(program.members, [&family](const auto& known) {
        // Another process may have the number of one that has ended.
        return known.second.watch.has_ended() ||
               std::none_of(family.begin(), family.end(), [&known](const FamilyMember& member) {
                   return member.process == known.first;
               });
    });
    for (const auto& [process, parent] : family) {
        const auto [found, is_new] = program.members.try_emplace(process, process, parent);
        Member& member = found->second;
        const auto starter = program.members.find(parent);
        if (is_new && starter == program.members.end()) {
            member.place = {program.number};
        } else if (is_new) {
            member.place = starter->second.place;
            member.place.push_back(starter->second.children++);
            member.comes_late = starter->second.comes_late;
        }
    }
}

void ExpectedPrograms::note_attached(Program& program, const std::vector<pid_t>& attached) {
    program.attached = 0;
    for (auto& [process, member] : program.members) {
        member.is_attached = is_among(attached, process);
        member.has_started_attached = false;
        program.attached = member.is_attached ? process : program.attached;
    }
    for (const auto& [process, member] : program.members) {
        if (!member.is_attached) {
            continue;
        }
        for (auto starter = program.members.find(member.parent);
             starter != program.members.end() && !starter->second.has_started_attached;
             starter = program.members.find(starter->second.parent)) {
            starter->second.has_started_attached = true;
        }
    }
}

void ExpectedPrograms::look(const std::vector<pid_t>& attached,
                            std::chrono::nanoseconds spin_limit) {
    const std::lock_guard lock(mutex_);
    const bool have_grown = may_have_grown();
    const bool has_changed = have_grown || attached != attached_;
    attached_ = attached;
    someone_ran_ = false;
    for (Program& program : programs_) {
        if (!has_changed && program.sleeps_on) {
            continue;
        }
        if (have_grown) {
            find_members(program);
        }
        note_attached(program, attached);
        look_at(program, spin_limit);
        someone_ran_ = someone_ran_ || program.found.state == ThreadState::kRuns ||
                       program.found.state == ThreadState::kSpins;
    }
    std::erase_if(programs_, [](const Program& program) { return program.has_ended; });
}

// A look finds that nobody runs who could be starting a process. If it follows the last one within
// a shorter time than that takes, no process is new.
bool ExpectedPrograms::may_have_grown() {
    constexpr std::int64_t kStartNs = 15'000;
    const std::int64_t now = wall_ns();
    const bool is_soon = now - std::exchange(looked_at_ns_, now) < kStartNs;
    return (someone_ran_ || !is_soon) && new_processes_.any();
}

void ExpectedPrograms::look_at(Program& program, std::chrono::nanoseconds spin_limit) {
    program.found = {};
    program.has_ended = true;
    program.sleeps_on = true;
    for (auto& [process, member] : program.members) {
        member.sleeps_for_time = false;
        if (member.is_attached) {
            program.has_ended = false;
            member.watch.forget();
            continue;
        }
        ThreadState state = member.watch.look(spin_limit);
        if (state == ThreadState::kSpins && program.found.spinner.empty()) {
            program.found.spinner = member.watch.program();
        }
        if (state == ThreadState::kAsleepForTime) {
            member.sleeps_for_time = true;
            state = member.has_started_attached ? ThreadState::kAsleep : state;
        }
        program.has_ended = program.has_ended && state == ThreadState::kEnded;
        program.sleeps_on =
            program.sleeps_on && (state == ThreadState::kEnded || member.watch.waits_for_child());
        program.found.state = more_restless(program.found.state, state);
    }
}

void ExpectedPrograms::add(Found& sum, const Found& one) {
    sum.state = more_restless(sum.state, one.state);
    if (sum.spinner.empty()) {
        sum.spinner = one.spinner;
    }
}

ExpectedPrograms::Found ExpectedPrograms::of_all() {
    const std::lock_guard lock(mutex_);
    Found sum;
    sum.state = not_started_ > 0 ? ThreadState::kRuns : ThreadState::kEnded;
    for (const Program& program : programs_) {
        add(sum, program.found);
    }
    return sum;
}

ExpectedPrograms::Found ExpectedPrograms::beside(pid_t process, const std::string& host) {
    const std::lock_guard lock(mutex_);
    Found sum;
    for (const Program& program : programs_) {
        if (program.is_beside(process, host)) {
            add(sum, program.found);
        }
    }
    return sum;
}

void ExpectedPrograms::pass(Program& program) {
    for (auto& [process, member] : program.members) {
        member.comes_late = member.comes_late || member.sleeps_for_time;
    }
}

void ExpectedPrograms::time_passed() {
    const std::lock_guard lock(mutex_);
    std::for_each(programs_.begin(), programs_.end(), pass);
}

void ExpectedPrograms::command_passed(pid_t process, const std::string& host) {
    const std::lock_guard lock(mutex_);
    for (Program& program : programs_) {
        if (program.is_beside(process, host)) {
            pass(program);
        }
    }
}

ExpectedPrograms::Arrival ExpectedPrograms::attaches(pid_t process) {
    const std::lock_guard lock(mutex_);
    for (Program& program : programs_) {
        find_members(program);
        const auto member = program.members.find(process);
        if (member != program.members.end()) {
            program.attached = process;
            return {.place = member->second.place, .is_late = member->second.comes_late};
        }
    }
    return {};
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
