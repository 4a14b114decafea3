// Waits for the acknowledgments of events: ibv_destroy_cq(3), ibv_destroy_qp(3), ibv_destroy_srq(3)
// and ibv_destroy_wq(3) return when every event that was given out has been acknowledged.
#pragma once

#include <cstdint>
#include <string_view>

#include <pthread.h>

#include "simverbs/abi/misuse.hpp"

namespace simverbs::abi {

// Waits until `acknowledged()` holds, then ends the mutex and the condition variable of `object`,
// an ibv_cq, ibv_qp, ibv_srq or ibv_wq. An object that has to wait is named, by `number` and
// `kind`, where mistakes are named.
template <class Object, class Acknowledged>
void await_acknowledgments(Context& context, Object& object, std::uint32_t number,
                           std::string_view kind, Acknowledged acknowledged) {
    pthread_mutex_lock(&object.mutex);
    if (!acknowledged()) {
        pthread_mutex_unlock(&object.mutex);
        name_misuse(context, Misuse::kEventsNotAcknowledged, number, kind);
        pthread_mutex_lock(&object.mutex);
    }
    while (!acknowledged()) {
        pthread_cond_wait(&object.cond, &object.mutex);
    }
    pthread_mutex_unlock(&object.mutex);
    pthread_cond_destroy(&object.cond);
    pthread_mutex_destroy(&object.mutex);
}

}  // namespace simverbs::abi
