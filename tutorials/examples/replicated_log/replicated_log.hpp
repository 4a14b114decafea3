// A log that a leader replicates with RDMA WRITEs: an entry counts once enough replicas have it.
// Replicas are memory; their processors only read. Connecting is left to the caller.
#ifndef REPLICATED_LOG_HPP
#define REPLICATED_LOG_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "verbs_objects.hpp"

namespace replicated_log {

inline constexpr std::size_t kEntryBytes = 2000;

// As it lies in memory. `check` covers the rest: an entry that arrived in part is none.
struct Entry {
    std::uint64_t check = 0;
    std::uint64_t index = 0;
    std::uint64_t committed = 0;  // entries before this one that count, when it was written
    std::uint64_t bytes = 0;
    std::array<char, kEntryBytes> text{};
};

// Names the memory of a replica's log. Whatever connects the two gives it to the leader.
struct Place {
    std::uint64_t address;
    std::uint32_t rkey;
};

class Replica {
  public:
    Replica(ibv_context* device, std::size_t capacity);

    // Connect it with IBV_ACCESS_REMOTE_WRITE.
    [[nodiscard]] ibv_qp* qp() const { return qp_.get(); }
    [[nodiscard]] Place place() const;

    // How many whole entries there are from the first on; and how many of them the leader is known
    // to have committed.
    [[nodiscard]] std::size_t entries() const;
    [[nodiscard]] std::size_t committed() const;
    [[nodiscard]] std::string_view at(std::size_t index) const;

  private:
    std::vector<Entry> log_;
    Owned<ibv_pd> pd_;
    Owned<ibv_cq> cq_;
    Owned<ibv_mr> mr_;
    Owned<ibv_qp> qp_;
};

enum class Outcome {
    kCommitted,
    kNoQuorum,  // too few replicas answer. The entry stays in the leader's log, and may count later
    kFull       // the entry is too long, or the log has no room
};
const char* name_of(Outcome outcome);

struct LeaderOptions {
    std::size_t capacity = 1024;
    std::size_t acknowledgements =
        0;  // replicas that an entry needs; 0: with the leader, a majority
};

class Leader {
  public:
    Leader(ibv_context* device, const LeaderOptions& options = {});

    // Returns the number of the replica. Connect qp() of it before the first append().
    std::size_t add_replica(const Place& place);
    [[nodiscard]] ibv_qp* qp(std::size_t replica) const { return peers_[replica].qp.get(); }

    Outcome append(std::string_view text);

    // Returns false once a WRITE to the replica has failed. When its queue pair is connected
    // again, rejoin() writes what the replica has not acknowledged.
    [[nodiscard]] bool is_alive(std::size_t replica) const { return peers_[replica].is_alive; }
    void rejoin(std::size_t replica);
    // Waits until every replica that is alive has the whole log.
    void flush();

  private:
    struct Peer {
        Place place;
        Owned<ibv_qp> qp;
        bool is_alive = true;
        std::size_t posted = 0;  // entries that were written to it ...
        std::size_t acknowledged = 0;
    };
    // Posts what replicas lack, as far as their send queues have room.
    void post_entries();
    void post(std::size_t replica);
    void poll();
    [[nodiscard]] std::size_t replicas_with(std::size_t index) const;
    [[nodiscard]] std::size_t replicas_alive() const;
    [[nodiscard]] std::size_t quorum() const;

    LeaderOptions options_;
    std::vector<Entry> log_;
    std::size_t size_ = 0;
    std::size_t committed_ = 0;
    Owned<ibv_pd> pd_;
    Owned<ibv_cq> cq_;
    Owned<ibv_mr> mr_;
    std::deque<Peer> peers_;
};

}  // namespace replicated_log

#endif
