// Waits for the acknowledgments of events: ibv_destroy_cq(3), ibv_destroy_qp(3), ibv_destroy_srq(3)
// and ibv_destroy_wq(3) return when every event that was given out has been acknowledged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <pthread.h>

#include "fabric/core/counted.hpp"

#include "simverbs/abi/misuse.hpp"

namespace simverbs::abi {

// Events of one kind, since their object was made.
struct EventBalance {
    std::uint32_t taken;
    std::uint32_t acknowledged;

    [[nodiscard]] bool is_even() const { return taken == acknowledged; }
    [[nodiscard]] std::string text() const {
        return fmt::format("{} taken, {} acknowledged: {}", fabric::counted(taken, "event"),
                           acknowledged, acknowledged < taken ? "too few" : "too many");
    }
};

// Waits until `count()` is even, then ends the mutex and the condition variable of `object`, an
// ibv_cq, ibv_qp, ibv_srq or ibv_wq. An object that has to wait is named, by `number` and `kind`,
// where mistakes are named.
template <class Object, class Count>
void await_acknowledgments(Context& context, Object& object, std::uint32_t number,
                           std::string_view kind, Count count) {
    pthread_mutex_lock(&object.mutex);
    if (const EventBalance events = count(); !events.is_even()) {
        pthread_mutex_unlock(&object.mutex);
        name_misuse(context, Misuse::kEventsNotAcknowledged, number,
                    fmt::format("{}, {}", kind, events.text()));
        pthread_mutex_lock(&object.mutex);
    }
    while (!count().is_even()) {
        pthread_cond_wait(&object.cond, &object.mutex);
    }
    pthread_mutex_unlock(&object.mutex);
    pthread_cond_destroy(&object.cond);
    pthread_mutex_destroy(&object.mutex);
}

}  // namespace simverbs::abi
