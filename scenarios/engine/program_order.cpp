// Programs in their order: which of them go on, and when time moves.
#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "scenarios/engine/program.hpp"

namespace scenarios {

namespace yaml = fabric::yaml;

Programs::Programs(const Scenario& scenario, World& world, Faults& faults, Judge& judge)
    : world_(world), faults_(faults), judge_(judge) {
    const auto add_if_any = [this](const std::string& name, std::string_view host,
                                   Checked operations) {
        if (operations.value() != nullptr) {
            add(name, world_.host(host), operations.items());
        }
    };
    for (const auto& [name, body] : scenario.at("hosts").entries()) {
        add_if_any(name.text, name.text, Checked(body).at("do"));
    }
    for (const auto& [name, body] : scenario.at("programs").entries()) {
        add_if_any(name.text, Checked(body).text("host"), Checked(body).at("do"));
    }
}

Programs::~Programs() = default;

void Programs::run(const Limits& limits, std::atomic<std::int64_t>* reached) {
    const std::int64_t stop = limits.stop;
    const auto is_interrupted = [&limits] {
        return limits.interrupted_by != nullptr && *limits.interrupted_by != 0;
    };
    while (world_.error().empty() && !is_interrupted()) {
        if (reached != nullptr) {
            reached->store(world_.now(), std::memory_order_relaxed);
        }
        if (advance_all()) {
            continue;
        }
        if (limits.ends_in_endless_retries && finds_endless_retries(stop)) {
            return;
        }
        const std::int64_t next = next_deadline(stop);
        if (world_.step(std::min(next, stop))) {
            continue;
        }
        if (next >= stop) {
            return;  // nothing is left to happen, or not before the end
        }
        world_.move_to(next);
    }
}

bool Programs::finds_endless_retries(std::int64_t stop) {
    EndlessRetries& retries = world_.retries();
    if (!retries.are_many() || !retries.are_many_again(faults_.matched()) ||
        next_deadline(stop) < stop || faults_.may_act_later() ||
        std::ranges::any_of(tasks_,
                            [](const auto& task) { return task->host->programs_stopped; })) {
        return false;
    }
    endless_ = scenarios::endless_retries(world_);
    return !endless_.empty();
}

std::vector<std::string> Programs::waiting() const {
    std::vector<std::string> lines;
    for (const auto& task : tasks_) {
        if (!task->frames.empty()) {
            const Frame& frame = task->frames.back();
            const yaml::Value& at = frame.operations[frame.next];
            lines.push_back(fmt::format("{} waits at line {}: {}, since {}", task->name,
                                        at.position.line,
                                        at.entries.empty() ? "?" : at.entries[0].key.text,
                                        time_text(task->since.value_or(world_.now()))));
        }
    }
    return lines;
}

// The earliest instant at which a task gives up, or wakes.
std::int64_t Programs::next_deadline(std::int64_t stop) const {
    for (const auto& [deadline, place] : deadlines_) {
        if (!tasks_[place]->host->programs_stopped) {
            return std::min(deadline, stop);
        }
    }
    return stop;
}

Programs::Task& Programs::add(std::string name, Host* host,
                              std::span<const yaml::Value> operations) {
    Task& task = *tasks_.emplace_back(std::make_unique<Task>());
    task.place = tasks_.size() - 1;
    task.name = std::move(name);
    task.host = host;
    task.frames.push_back({operations});
    ready_.insert(task.place);
    return task;
}

// A program that goes on may let others do so: those behind it at once, those before it next time.
bool Programs::advance_all() {
    bool any = false;
    ready_.insert(watching_.begin(), watching_.end());
    wake();
    for (auto next = ready_.begin(); next != ready_.end();) {
        const std::size_t place = *next;
        ready_.erase(next);
        bool went_on = false;
        while (advance(*tasks_[place])) {
            went_on = true;
        }
        if (went_on) {
            any = true;
            wake();
        }
        next = ready_.upper_bound(place);
    }
    return any || !ready_.empty();
}

void Programs::wake() {
    if (std::exchange(program_changes_, world_.program_changes()) != program_changes_) {
        for (std::size_t place = 0; place < tasks_.size(); ++place) {
            ready_.insert(place);
        }
    }
    for (CompletionQueue* queue : world_.take_filled()) {
        ready_.insert(queue->waiters.begin(), queue->waiters.end());
        queue->waiters.clear();
    }
    const std::int64_t now = deadlines_.empty() ? 0 : world_.now();
    for (const auto& [deadline, place] : deadlines_) {
        if (deadline > now) {
            break;
        }
        ready_.insert(place);
    }
}

bool Programs::advance(Task& task) {
    watching_.erase(task.place);
    if (task.host->programs_ended) {
        task.frames.clear();
        deadlines_.erase({task.deadline, task.place});
    }
    if (task.host->programs_stopped) {
        return false;
    }
    while (!task.frames.empty()) {
        Frame& frame = task.frames.back();
        if (frame.next < frame.operations.size()) {
            break;
        }
        frame.next = 0;
        if (++frame.round < frame.rounds) {
            continue;
        }
        task.frames.pop_back();
        if (!task.frames.empty()) {
            ++task.frames.back().next;  // the loop, in the list it stands in
        } else if (task.parent != nullptr) {
            --task.parent->children;
            return true;
        }
    }
    if (task.frames.empty()) {
        return false;
    }
    const std::size_t depth = task.frames.size();
    const Frame& frame = task.frames.back();
    const yaml::Entry& operation = frame.operations[frame.next].entries.front();
    if (const Outcome outcome = execute(task, operation); outcome != Outcome::kDone) {
        wait(task, outcome);
        return false;
    }
    deadlines_.erase({task.deadline, task.place});
    task.since.reset();
    task.begun = false;
    if (task.frames.size() == depth) {
        ++task.frames.back().next;
    }
    return true;
}

void Programs::wait(Task& task, Outcome outcome) {
    if (!task.since) {
        task.since = world_.now();
    }
    if (task.begun && task.deadline != kNever) {
        deadlines_.insert({task.deadline, task.place});
    }
    if (outcome == Outcome::kWaits) {
        watching_.insert(task.place);
    }
}

void Programs::begin_wait(Task& task, std::int64_t within) {
    if (!task.begun) {
        task.begun = true;
        task.got = 0;
        task.deadline = within < 0 ? kNever : world_.now() + within;
    }
}

bool Programs::is_over(const Task& task) const {
    return world_.now() >= task.deadline;
}

}  // namespace scenarios
