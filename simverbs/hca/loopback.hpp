// Packets of a port to its own LID: they never reach the wire, but take the time that the port
// needs to send them and a fixed delay inside the device.
#pragma once

#include <cstdint>

#include "fabric/core/event_loop.hpp"
#include "fabric/net/frame.hpp"
#include "fabric/net/port.hpp"

namespace simverbs {

class LoopbackListener {
  public:
    virtual void looped_back(fabric::Port& port, fabric::FramePtr frame) = 0;

  protected:
    ~LoopbackListener() = default;
};

class Loopback final : private fabric::EventHandler {
  public:
    static constexpr fabric::SimDuration kDelay{200'000};  // 200 ns, about a NIC's internal turn

    Loopback(fabric::EventLoop& loop, fabric::Port& port, LoopbackListener& listener);
    ~Loopback();
    Loopback(const Loopback&) = delete;
    Loopback& operator=(const Loopback&) = delete;

    void send(fabric::FramePtr frame);
    [[nodiscard]] fabric::SimTime free_at() const;

    template <class F>
    void for_each_frame_in_flight(F&& visit) const {
        for (fabric::Frame* frame = head_; frame != nullptr; frame = frame->next) {
            visit(*frame);
        }
    }

  private:
    void handle(const fabric::Event& event) override;
    void schedule_head();

    fabric::EventLoop& loop_;
    fabric::Port& port_;
    LoopbackListener& listener_;
    fabric::SimTime busy_until_{};
    fabric::Frame* head_ = nullptr;
    fabric::Frame* tail_ = nullptr;
};

}  // namespace simverbs
