// Waits for the acknowledgments of events: ibv_destroy_cq(3), ibv_destroy_qp(3), ibv_destroy_srq(3)
// and ibv_destroy_wq(3) return when every event that was given out has been acknowledged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <pthread.h>

#include "fabric/core/counted.hpp"

#include "simverbs/abi/misuse.hpp"
#include "simverbs/abi/process.hpp"

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

// Says in reports of this process's world for what a thread waits.
class ReportedWait {
  public:
    explicit ReportedWait(std::string text)
        : text_(std::move(text)), world_(Process::current().embedded()) {
        if (world_ != nullptr) {
            world_->conductor().add_wait(text_);
        }
    }
    ~ReportedWait() {
        if (world_ != nullptr) {
            world_->conductor().remove_wait(text_);
        }
    }
    ReportedWait(const ReportedWait&) = delete;
    ReportedWait& operator=(const ReportedWait&) = delete;

  private:
    std::string text_;
    driver::EmbeddedWorld* world_;
};

// Waits until `count()` is even, then ends the mutex and the condition variable of `object`, an
// ibv_cq, ibv_qp, ibv_srq or ibv_wq. An object that has to wait is named, by `number` and `kind`,
// where mistakes are named.
template <class Object, class Count>
void await_acknowledgments(Context& context, Object& object, std::uint32_t number,
                           std::string_view kind, Count count) {
    pthread_mutex_lock(&object.mutex);
    const EventBalance events = count();
    pthread_mutex_unlock(&object.mutex);
    if (!events.is_even()) {
        name_misuse(context, Misuse::kEventsNotAcknowledged, number,
                    fmt::format("{}, {}", kind, events.text()));
        const ReportedWait reported(fmt::format(
            "a thread waits to destroy {} {:#x}: {} (ibv_ack_cq_events, ibv_ack_async_event)", kind,
            number, events.text()));
        pthread_mutex_lock(&object.mutex);
        while (!count().is_even()) {
            pthread_cond_wait(&object.cond, &object.mutex);
        }
        pthread_mutex_unlock(&object.mutex);
    }
    pthread_cond_destroy(&object.cond);
    pthread_mutex_destroy(&object.mutex);
}

}  // namespace simverbs::abi
