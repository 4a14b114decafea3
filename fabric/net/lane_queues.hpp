// The frames that wait at a port for their turn, by virtual lane. Made when a frame first has to
// wait: most ports never need it. A train waits as one frame, and counts as its packets.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "fabric/core/sim_time.hpp"
#include "fabric/net/frame.hpp"

namespace fabric {

class LaneQueues {
  public:
    static constexpr std::uint8_t kLanes = 16;

    LaneQueues() = default;
    ~LaneQueues();
    LaneQueues(const LaneQueues&) = delete;
    LaneQueues& operator=(const LaneQueues&) = delete;

    [[nodiscard]] bool empty() const { return occupied_ == 0; }
    // Bit n: lane n has a frame.
    [[nodiscard]] std::uint32_t occupied() const { return occupied_; }
    [[nodiscard]] bool only_one_occupied() const { return std::has_single_bit(occupied_); }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] std::uint32_t frames() const { return frames_; }

    // While a frame waits, `arrival` says when it may start at the earliest.
    void push_back(FramePtr frame, SimTime ready);
    void push_front(FramePtr frame, SimTime ready);
    // Takes the first frame, or the first packet of a train. `now`: when what is behind it becomes
    // the first.
    FramePtr pop_front(std::uint8_t lane, SimTime now);
    // The same with the first `packets` of a train, or all of them.
    FramePtr pop_train(std::uint8_t lane, std::uint16_t packets, SimTime now);
    // Splits the trains into packets.
    void cut_trains();

    [[nodiscard]] const Frame& front(std::uint8_t lane) const { return *lanes_[lane].head; }
    [[nodiscard]] SimTime ready(std::uint8_t lane) const { return lanes_[lane].head->arrival; }
    // Since when the lane's first frame is the first.
    [[nodiscard]] SimTime first_since(std::uint8_t lane) const { return lanes_[lane].first_since; }
    [[nodiscard]] std::uint64_t bytes(std::uint8_t lane) const { return lanes_[lane].bytes; }

    template <class F>
    void for_each_occupied(F&& visit) const {
        for (std::uint32_t rest = occupied_; rest != 0; rest &= rest - 1) {
            visit(static_cast<std::uint8_t>(std::countr_zero(rest)));
        }
    }
    template <class F>
    void for_each(F&& visit) const {
        for_each_occupied([this, &visit](std::uint8_t lane) { for_each_in(lane, visit); });
    }
    template <class F>
    void for_each_in(std::uint8_t lane, F&& visit) const {
        for (Frame* frame = lanes_[lane].head; frame != nullptr; frame = frame->next) {
            visit(*frame);
        }
    }

  private:
    struct Lane {
        Frame* head = nullptr;
        Frame* tail = nullptr;
        std::uint64_t bytes = 0;
        SimTime first_since{};
    };
    void enter(Lane& lane, const Frame& frame);

    std::array<Lane, kLanes> lanes_;
    std::uint32_t occupied_ = 0;
    std::uint32_t frames_ = 0;
    std::uint64_t bytes_ = 0;
};

}  // namespace fabric
