// Tells what became of the packets of the request at which a queue pair failed: of the oldest one
// that was not acknowledged, of those behind it, and of the answers to them. Works on the records
// of a trace alone; without records of frames that came through it knows only those that were lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/engine/observation.hpp"

namespace scenarios {

// One transmission of a packet.
struct Transmission {
    const Record* sent;  // packet_sent
    bool is_answer = false;
    bool is_oldest = false;                // of the oldest packet, or an answer to it
    std::vector<const Record*> firings{};  // faults that hit it, in order
    const Record* lost = nullptr;          // frame_dropped or packet_discarded
    const Record* arrived = nullptr;       // frame_received at the node that it was sent to
};

class Trail {
  public:
    // `what` is among the records: a completion, or a change of the state of a queue pair. Both
    // outlive the trail.
    Trail(std::span<const Record> records, const Record& what);

    [[nodiscard]] const std::string& node() const { return node_; }
    [[nodiscard]] std::uint64_t qpn() const { return qpn_; }
    // The node and the queue pair that it sent to; "" and 0 where that is not known.
    [[nodiscard]] const std::string& peer() const { return peer_; }
    [[nodiscard]] std::uint64_t peer_qpn() const { return peer_qpn_; }
    [[nodiscard]] bool is_end(std::string_view node) const {
        return node == node_ || (!peer_.empty() && node == peer_);
    }

    [[nodiscard]] const std::vector<Transmission>& transmissions() const { return transmissions_; }
    // Packets that the queue pair has sent for the first time, and those sent again; the least
    // there can be of them where the first records of the connection were forgotten.
    [[nodiscard]] bool has_beginning() const { return has_beginning_; }
    [[nodiscard]] std::uint64_t first_sent() const { return first_sent_; }
    [[nodiscard]] std::uint64_t sent_again() const { return sent_again_; }
    // Packets of the last message: of the one that the queue pair was sending, or of one that was
    // not acknowledged.
    [[nodiscard]] std::uint64_t sent_of_request() const;
    // Returns true if a frame of the two queue pairs has passed that node.
    [[nodiscard]] bool passes(std::string_view node) const { return path_.contains(node); }
    // Returns true if it has passed that port.
    [[nodiscard]] bool passes(std::string_view node, std::uint64_t port) const {
        const auto found = path_.find(node);
        return found != path_.end() && found->second.contains(port);
    }
    // Returns true if the fault hit a packet between the two queue pairs.
    [[nodiscard]] bool is_of_queue_pair(const Record& fired) const;

  private:
    using Frame = std::pair<std::uint64_t, std::uint64_t>;  // QPN of the sender, frame number

    void find_requests();
    void find_peer();
    void find_oldest();
    void acknowledge(const Record& answer);
    [[nodiscard]] const Record* first_transmission() const;
    void find_transmissions();
    void note_sent(const Record& record, const Record& first);
    void note_frame(const Record& record);
    void note_discarded(const Record& record);
    void note_fired(const Record& record);
    [[nodiscard]] bool is_answer(const Record& record) const;
    [[nodiscard]] Transmission* latest(bool is_answer, std::uint64_t psn);

    std::span<const Record> records_;
    std::string node_;
    std::uint64_t qpn_;
    std::string peer_;
    std::uint64_t peer_qpn_ = 0;
    std::vector<const Record*> requests_;  // packets, since the queue pair was last in RTR
    std::optional<std::uint64_t> first_psn_;
    std::uint64_t oldest_psn_ = 0;
    std::set<std::uint64_t> unanswered_reads_;  // PSNs of READs and atomics
    bool is_reading_ = false;                   // the oldest packet is inside a READ
    bool has_beginning_ = false;
    std::uint64_t first_sent_ = 0;
    std::uint64_t sent_again_ = 0;
    std::vector<Transmission> transmissions_;
    std::map<Frame, std::size_t> frames_;
    std::map<std::string, std::set<std::uint64_t>, std::less<>> path_;  // node, ports
};

// Returns the record before `what` with which the queue pair of `what` last went to RESET; nullptr:
// there is none.
const Record* last_reset(std::span<const Record> records, const Record& what);

// The steps from one PSN to another, below 0 where it comes before it.
std::int64_t psn_steps(std::uint64_t from, std::uint64_t to);

}  // namespace scenarios
