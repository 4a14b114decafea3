// Asynchronous events: taking them in order, and acknowledging them.
#include <cerrno>
#include <mutex>

#include <infiniband/verbs.h>

#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/event_reader.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/model/statuses.hpp"

namespace simverbs::abi {
namespace {

// Puts the event's object in; false when the object has been destroyed since.
bool fill_event(Context& context, const EventMessage& message, ibv_async_event& event) {
    event.event_type = static_cast<ibv_event_type>(message.event);
    const std::lock_guard lock(context.lock());
    switch (static_cast<EventSubject>(message.kind)) {
        case EventSubject::kCq: {
            const auto found = context.cqs.find(message.subject);
            if (found == context.cqs.end()) {
                return false;
            }
            ++found->second->async_events.given;
            event.element.cq = found->second->c_handle();
            return true;
        }
        case EventSubject::kQp: {
            const auto found = context.qps.find(message.subject);
            if (found == context.qps.end()) {
                return false;
            }
            ++found->async_events.given;
            event.element.qp = found->c_handle();
            return true;
        }
        case EventSubject::kSrq: {
            const auto found = context.srqs.find(message.subject);
            if (found == context.srqs.end()) {
                return false;
            }
            ++found->second->async_events.given;
            event.element.srq = found->second;
            return true;
        }
        case EventSubject::kWq: {
            const auto found = context.wqs.find(message.subject);
            if (found == context.wqs.end()) {
                return false;
            }
            ++found->second->async_events.given;
            event.element.wq = found->second;
            return true;
        }
        case EventSubject::kPort:
        case EventSubject::kDevice:
            break;
    }
    event.element.port_num = static_cast<int>(message.subject);
    return true;
}

void acknowledge(pthread_mutex_t& mutex, pthread_cond_t& changed, std::uint32_t& completed) {
    pthread_mutex_lock(&mutex);
    ++completed;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

}  // namespace

// The end of the world is the last event, once for each context.
SIMVERBS_ABI int simverbs_abi_ibv_get_async_event(ibv_context* handle, ibv_async_event* event) {
    Context& context = as_object(handle);
    EventMessage message;
    while (read_event(context, 0, handle->async_fd, context.async_use(), message)) {
        if (fill_event(context, message, *event)) {
            return 0;
        }
    }
    const int error = errno;
    if (error == EIO && !context.is_foreign() && context.is_end_of_world() &&
        context.tells_of_end()) {
        event->event_type = IBV_EVENT_DEVICE_FATAL;
        event->element.port_num = 0;
        return 0;
    }
    errno = error;
    return -1;
}

SIMVERBS_ABI void simverbs_abi_ibv_ack_async_event(ibv_async_event* event) {
    if (event->event_type == IBV_EVENT_CQ_ERR) {
        ibv_cq& cq = *event->element.cq;
        acknowledge(cq.mutex, cq.cond, cq.async_events_completed);
        return;
    }
    const auto type = static_cast<std::uint32_t>(event->event_type);
    if (type >= kAsyncEventCount) {
        return;
    }
    const EventSubject subject = properties(static_cast<AsyncEvent>(type)).subject;
    if (subject == EventSubject::kQp) {
        ibv_qp& qp = *event->element.qp;
        acknowledge(qp.mutex, qp.cond, qp.events_completed);
    } else if (subject == EventSubject::kSrq) {
        ibv_srq& srq = *event->element.srq;
        acknowledge(srq.mutex, srq.cond, srq.events_completed);
    } else if (subject == EventSubject::kWq) {
        ibv_wq& wq = *event->element.wq;
        acknowledge(wq.mutex, wq.cond, wq.events_completed);
    }
}

}  // namespace simverbs::abi
