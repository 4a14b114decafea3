// Virtual time of a world, and what its programs notice as it passes: completions and events.
#include <algorithm>
#include <utility>

#include <poll.h>

#include "scenarios/engine/world.hpp"

namespace scenarios {

namespace {

bool is_readable(int descriptor) {
    pollfd wanted{descriptor, POLLIN, 0};
    return poll(&wanted, 1, 0) == 1;
}

std::string event_subject(const Host& host, const ibv_async_event& event) {
    switch (event.event_type) {
        case IBV_EVENT_CQ_ERR:
            return static_cast<const CompletionQueue*>(event.element.cq->cq_context)->name;
        case IBV_EVENT_SRQ_ERR:
        case IBV_EVENT_SRQ_LIMIT_REACHED:
            for (const auto& [name, shared] : host.srqs) {
                if (shared.srq == event.element.srq) {
                    return name;
                }
            }
            return {};
        case IBV_EVENT_WQ_FATAL:
            for (const auto& [name, wq] : host.wqs) {
                if (wq == event.element.wq) {
                    return name;
                }
            }
            return {};
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR:
        case IBV_EVENT_COMM_EST:
        case IBV_EVENT_SQ_DRAINED:
        case IBV_EVENT_PATH_MIG:
        case IBV_EVENT_PATH_MIG_ERR:
        case IBV_EVENT_QP_LAST_WQE_REACHED:
            for (const auto& [name, end] : host.ends) {
                if (end.qp == event.element.qp) {
                    return name;
                }
            }
            return {};
        default:
            return std::to_string(event.element.port_num);
    }
}

}  // namespace

// An empty poll would move time: only those are asked for that the trace has told of.
std::vector<Completed> World::take(CompletionQueue& queue, std::size_t most) {
    std::vector<Completed> taken;
    if (queue.host->programs_stopped) {
        return taken;
    }
    while (taken.size() < most && !queue.visible.empty()) {
        ibv_wc wc{};
        const int found = ibv_poll_cq(queue.cq, 1, &wc);
        if (found <= 0) {  // lost: the queue overran, or the queue pair was reset
            queue.visible.clear();
            break;
        }
        taken.push_back(note(queue, wc));
        queue.visible.pop_front();
    }
    return taken;
}

std::vector<CompletionQueue*> World::take_filled() {
    for (CompletionQueue* queue : filled_) {
        queue->is_filled = false;
    }
    return std::exchange(filled_, {});
}

void World::take_all() {
    for (auto& [name, host] : hosts_) {
        for (auto& [unused, queue] : host.cqs) {
            take(queue, queue.visible.size());
        }
    }
    read_events();
}

bool World::read_events() {
    const bool any = cm_.is_open() && cm_.read(now());
    if (looked_at_ == announced_) {
        return any;
    }
    for (auto& [name, host] : hosts_) {
        ibv_async_event event{};
        while (host.context != nullptr && !host.programs_stopped &&
               is_readable(host.context->async_fd) &&
               ibv_get_async_event(host.context, &event) == 0) {
            events_.push_back({now(), name, event.event_type, event_subject(host, event)});
            ibv_ack_async_event(&event);
        }
    }
    return any;
}

bool World::step(std::int64_t limit) {
    int ran = 0;
    // Without an event, too: what was posted is carried out, and may complete at once.
    const std::size_t before = seen_;
    const std::int64_t most = std::max<std::int64_t>(limit - now(), 0);
    if (simverbs_step_ps(most, &ran) != 0) {
        fail(simverbs_last_error());
    }
    const bool any = read_events();
    return any || ran == 1 || seen_ != before;
}

void World::move_to(std::int64_t when) {
    if (simverbs_advance_ps(std::max<std::int64_t>(when - now(), 0)) != 0) {
        fail(simverbs_last_error());
    }
    read_events();
}

}  // namespace scenarios
