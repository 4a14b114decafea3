#include "scenarios/engine/program.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/core.h>
#include <poll.h>

#include "fabric/core/counted.hpp"

#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/statuses.hpp"

namespace scenarios {

namespace yaml = fabric::yaml;

namespace {

// Operations that need a verb on the peer's device.
bool asks_peer(std::string_view operation, Checked body) {
    return operation == "connect" || operation == "reconnect" ||
           (operation == "modify" && body.flag("alternate"));
}

// Operations of rdma_cm. `connect` is one of an end that is connected by it.
constexpr auto kOfCm = std::to_array<std::string_view>(
    {"listen", "accept", "reject", "disconnect", "join", "leave", "await_cm"});

std::string_view opcode_name(int opcode) {
    return simverbs::to_string(static_cast<simverbs::WcOpcode>(opcode));
}

}  // namespace

Programs::Outcome Programs::execute(Task& task, const yaml::Entry& operation) {
    const std::string& name = operation.key.text;
    const Checked body(operation.value);
    if (const std::string destroyed = destroyed_object(task, name, body); !destroyed.empty()) {
        fail(body, fmt::format("{} is there", destroyed), "it has been destroyed");
        return Outcome::kDone;
    }
    if (std::ranges::find(kOfCm, name) != kOfCm.end() ||
        (name == "connect" && end_of(task, body).is_by_cm)) {
        return by_cm(task, name, body);
    }
    if (asks_peer(name, body) && end_of(task, body).peer->host->programs_stopped) {
        return Outcome::kWaits;
    }
    if (name == "poll") {
        return poll(task, body);
    }
    if (name == "sleep") {
        return sleep(task, body.own_duration());
    }
    if (name == "loop") {
        return enter(task, body.at("do").items(), body.number("times"));
    }
    if (name == "parallel") {
        return fork(task, body);
    }
    if (name == "wait") {
        return signals_.contains(body.own_text()) ? Outcome::kDone : Outcome::kWaits;
    }
    if (name == "wait_event") {
        return wait_event(task, body);
    }
    if (name == "await") {
        return await(task, body);
    }
    do_at_once(task, name, body);
    return Outcome::kDone;
}

// Names what the operation needs and a program has destroyed; "": nothing. Completion queues and
// ids of rdma_cm outlive queue pairs, and requests may find that their peer has lost its queue
// pair.
std::string Programs::destroyed_object(Task& task, std::string_view operation, Checked body) {
    constexpr auto kOfOthers = std::to_array<std::string_view>(
        {"poll", "arm", "wait_event", "inject", "await_cm", "disconnect", "reject", "leave"});
    if (std::ranges::find(kOfOthers, operation) != kOfOthers.end()) {
        return {};
    }
    const SharedReceives* shared =
        body.has("srq") ? &task.host->srqs.find(body.text("srq"))->second : nullptr;
    if (body.has("qp")) {
        const End& end = end_of(task, body);
        if (end.qp == nullptr) {
            return "the queue pair of " + end.name;
        }
        if (operation == "reconnect" && end.peer->qp == nullptr) {
            return "the queue pair of " + end.peer->name;
        }
        shared = operation == "receive" ? end.shared : nullptr;
    }
    return shared != nullptr && shared->srq == nullptr
               ? fmt::format("the shared receive queue {} of {}", shared->name, task.host->name)
               : std::string();
}

void Programs::do_at_once(Task& task, const std::string& name, Checked body) {
    if (name == "signal") {
        signals_.insert(body.own_text());
    } else if (name == "receive") {
        receive(task, body);
    } else if (name == "bind") {
        bind(task, body);
    } else if (name == "local_invalidate") {
        local_invalidate(task, body);
    } else if (name == "arm") {
        arm(task, body);
    } else if (name == "modify") {
        modify(task, body);
    } else if (name == "connect") {
        expect_errno(body, "ibv_modify_qp", world_.connect(end_of(task, body)));
    } else if (name == "reconnect") {
        reconnect(task, body);
    } else if (name == "deregister") {
        expect_errno(body, "ibv_dereg_mr",
                     world_.deregister(memory_of(*task.host, body, "memory")));
    } else if (name == "register") {
        Memory& memory = memory_of(*task.host, body, "memory");
        expect_errno(body, "ibv_reg_mr",
                     world_.register_again(memory, access_of(body.at("access"), memory.access)));
    } else if (name == "fill") {
        fill(task, body);
    } else if (name == "destroy") {
        destroy(task, body);
    } else if (name == "inject") {
        const std::string error = faults_.inject(body);
        if (!error.empty()) {
            fail(body, "the fault is put in place", error);
        }
    } else if (name == "clear") {
        faults_.clear(body.own_text());
    } else if (name == "limit") {
        limit(task, body);
    } else if (name == "change_gid") {
        change_gid(task, body);
    } else if (name == "expect") {
        judge_.judge_now(body);
    } else {
        send(task, body, name);
    }
}

Programs::Outcome Programs::enter(Task& task, std::span<const yaml::Value> operations,
                                  std::uint64_t rounds) {
    if (rounds > 0 && !operations.empty()) {
        task.frames.push_back({operations, 0, 0, rounds});
    }
    return Outcome::kDone;
}

Programs::Outcome Programs::fork(Task& task, Checked lists) {
    if (!task.begun) {
        task.begun = true;
        task.deadline = kNever;
        for (const yaml::Value& list : lists.items()) {
            add(task.name, task.host, list.items).parent = &task;
            ++task.children;
        }
    }
    return task.children == 0 ? Outcome::kDone : Outcome::kWaits;
}

Programs::Outcome Programs::sleep(Task& task, std::int64_t duration) {
    begin_wait(task, duration);
    return is_over(task) ? Outcome::kDone : Outcome::kSleeps;
}

Programs::Outcome Programs::poll(Task& task, Checked body) {
    begin_wait(task, body.duration("within", -1));
    const std::uint64_t wanted = body.number("count", 1);
    CompletionQueue* const queue = queue_of(task, body);
    const auto compare = [&](std::string_view what, std::string_view expected,
                             std::string_view found, const Completed& completed) {
        if (expected != found) {
            fail(body, fmt::format("a completion with {} {}", what, expected),
                 fmt::format("{}: id {} with {} {}", completed.end, completed.id, what, found),
                 what == "id" ? "operation id" : fmt::format("operation {} {}", what, found),
                 completed.end);
        }
    };
    for (const Completed& completed : world_.take(*queue, wanted - task.got)) {
        if (body.has("id")) {
            compare("id", std::to_string(body.number("id") + task.got),
                    std::to_string(completed.id), completed);
        }
        if (body.has("status")) {
            compare("status", body.text("status"),
                    simverbs::kWcStatusNames[static_cast<std::size_t>(completed.status)],
                    completed);
        }
        if (body.has("opcode")) {
            compare("opcode", body.text("opcode"), opcode_name(completed.opcode), completed);
        }
        ++task.got;
    }
    if (task.got == wanted) {
        return Outcome::kDone;
    }
    if (is_over(task)) {
        if (body.flag("exactly", true)) {
            fail(body,
                 fmt::format("{} within {}", fabric::counted(wanted, "completion"),
                             body.text("within")),
                 fmt::format("{} came", task.got), "operation",
                 body.has("qp") ? end_of(task, body).name : "");
        }
        return Outcome::kDone;
    }
    queue->waiters.push_back(task.place);
    return Outcome::kWaitsForCompletion;
}

Programs::Outcome Programs::wait_event(Task& task, Checked body) {
    begin_wait(task, body.duration("within", -1));
    CompletionQueue* const queue = queue_of(task, body);
    const bool wanted = body.flag("comes", true);
    if (queue->channel == nullptr) {
        fail(body, "a completion queue with a channel", queue->name + " has none");
        return Outcome::kDone;
    }
    pollfd readable{queue->channel->fd, POLLIN, 0};
    if (::poll(&readable, 1, 0) == 1) {
        ibv_cq* cq = nullptr;
        void* context = nullptr;
        ibv_get_cq_event(queue->channel, &cq, &context);
        ibv_ack_cq_events(cq, 1);
        if (!wanted) {
            fail(body, "no completion event", "one came");
        }
        return Outcome::kDone;
    }
    if (!is_over(task)) {
        return Outcome::kWaits;
    }
    if (wanted) {
        fail(body, fmt::format("a completion event within {}", body.text("within")), "none came");
    }
    return Outcome::kDone;
}

// Events of before the operation count: an event is not lost because nobody waited yet.
Programs::Outcome Programs::await(Task& task, Checked body) {
    begin_wait(task, body.duration("within", -1));
    const std::string name = body.text("event");
    for (const AsyncEventSeen& seen : world_.events()) {
        if (seen.host == task.host->name &&
            simverbs::kAsyncEvents[static_cast<std::size_t>(seen.event)].name == name) {
            return Outcome::kDone;
        }
    }
    if (!is_over(task)) {
        return Outcome::kWaits;
    }
    fail(body, fmt::format("{} at {} within {}", name, task.host->name, body.text("within")),
         "it did not come");
    return Outcome::kDone;
}

// How often the operation has been carried out before, by the loops around it.
std::uint64_t Programs::rounds_before(const Task& task) const {
    std::uint64_t before = 0;
    for (const Frame& frame : task.frames) {
        before = before * frame.rounds + frame.round;
    }
    return before;
}

CompletionQueue* Programs::queue_of(Task& task, Checked body) {
    if (body.has("cq")) {
        return &task.host->cqs.find(body.text("cq"))->second;
    }
    return end_of(task, body).receive_cq;
}

End& Programs::end_of(Task& task, Checked body) {
    return task.host->ends.find(body.text("qp"))->second;
}

Memory& Programs::memory_of(Host& host, Checked body, std::string_view key) {
    return host.memories.find(body.text(key, "mem"))->second;
}

void Programs::fail(Checked where, std::string expected, std::string happened, std::string kind,
                    std::string end) {
    judge_.fail({where.position(), world_.now(), std::move(expected), std::move(happened),
                 std::move(kind), std::move(end)});
}

}  // namespace scenarios
