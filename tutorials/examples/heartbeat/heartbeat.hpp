// A failure detector: each node writes a count into the memory of every other one, and suspects a
// node whose count stands still. A node whose own port is down suspects nobody. Time is an
// argument, so that a test can use virtual time. Connecting is left to the caller.
#ifndef HEARTBEAT_HPP
#define HEARTBEAT_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "verbs_objects.hpp"

namespace heartbeat {

enum class Health { kAlive, kSuspected };
const char* name_of(Health health);

struct Options {
    std::chrono::nanoseconds period = std::chrono::milliseconds(1);
    int misses = 3;  // so many heartbeats may be lost in a row
    std::uint8_t port = 1;
};

// Names the memory of a node into which one peer writes its count.
struct Place {
    std::uint64_t address;
    std::uint32_t rkey;
};

class Node {
  public:
    // Node `self` of `nodes`. Async events of the device are the node's to take.
    Node(ibv_context* device, std::size_t self, std::size_t nodes, const Options& options = {});

    // Before begin(): connect qp(peer) of each node with qp(self) of that peer, by an unreliable
    // connection with IBV_ACCESS_REMOTE_WRITE, and tell it that peer's place(self).
    [[nodiscard]] ibv_qp* qp(std::size_t peer) const { return peers_[peer].qp.get(); }
    [[nodiscard]] Place place(std::size_t peer) const;
    void set_place(std::size_t peer, const Place& place) { peers_[peer].place = place; }

    void begin(std::chrono::nanoseconds now);
    // Sends a heartbeat when it is time to, and looks at the peers'. At least once a period.
    void tick(std::chrono::nanoseconds now);

    [[nodiscard]] Health health(std::size_t peer) const { return peers_[peer].health; }
    // Returns true while the node's own port is down: then health() says what was known before.
    [[nodiscard]] bool is_cut_off() const { return is_cut_off_; }

  private:
    struct Peer {
        Owned<ibv_qp> qp;
        Place place{};
        Health health = Health::kAlive;
        std::uint64_t count = 0;
        std::chrono::nanoseconds changed_at{};
    };
    void take_events(std::chrono::nanoseconds now);
    void beat();
    void write_count(const Peer& peer);
    void look(std::chrono::nanoseconds now);

    ibv_context* device_;
    std::size_t self_;
    Options options_;
    std::vector<std::uint64_t> counts_;  // the node's own at self_, which its WRITEs take
    std::chrono::nanoseconds next_beat_{};
    std::size_t outstanding_ = 0;  // WRITEs
    bool is_cut_off_ = false;
    Owned<ibv_pd> pd_;
    Owned<ibv_cq> cq_;
    Owned<ibv_mr> mr_;
    std::vector<Peer> peers_;
};

}  // namespace heartbeat

#endif
