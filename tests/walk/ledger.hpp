// The requests that were posted and have not completed: every completion must be found here, once
// and in turn.
//
// A request's id names its queue (upper half) and its place in it (lower half).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include <infiniband/verbs.h>

namespace walk {

enum class QueueKind : std::uint8_t { kSend, kReceive, kShared, kXrcShared };

class Queue {
  public:
    Queue(std::uint32_t number, QueueKind kind) : number_(number), kind_(kind) {}

    [[nodiscard]] std::uint32_t number() const { return number_; }
    [[nodiscard]] QueueKind kind() const { return kind_; }
    // The id that the next request must carry; posted() then says that it was accepted.
    [[nodiscard]] std::uint64_t next_id() const {
        return std::uint64_t{number_} << 32 | next_serial_;
    }
    void posted(bool signaled);
    [[nodiscard]] std::size_t outstanding() const { return posted_.size(); }
    // Completions that cannot fail to come: of a send that is not signaled none does on success.
    [[nodiscard]] std::size_t due() const;

    void completed(const ibv_wc& wc);
    // RESET: none of them completes any more.
    void purge();
    // Requests from here on stand for themselves: the queue pair came back from SQE.
    void revive() { ++life_; }

  private:
    struct Posted {
        std::uint32_t serial;
        std::uint32_t life;
        bool signaled;
    };

    void completed_in_turn(const ibv_wc& wc);
    void completed_of_shared(const ibv_wc& wc);

    std::uint32_t number_;
    QueueKind kind_;
    std::uint32_t next_serial_ = 1;
    std::uint32_t life_ = 1;
    std::uint32_t failed_life_ = 0;  // 0: in none has a request failed
    std::deque<Posted> posted_;
    std::map<std::uint32_t, std::uint32_t> last_by_qpn_;  // of a shared queue
};

class Ledger {
  public:
    Queue& open(QueueKind kind);
    void close(const Queue& queue);
    void completed(const ibv_wc& wc);
    // Returns true if the request was posted to a queue that outlives the queue pairs that complete
    // there.
    [[nodiscard]] bool outlives_queue_pairs(std::uint64_t id) const;
    [[nodiscard]] std::uint64_t completions() const { return completions_; }
    [[nodiscard]] std::uint64_t with_status(std::size_t status) const { return by_status_[status]; }

    static constexpr std::size_t kStatuses = 24;

  private:
    std::uint32_t next_number_ = 1;
    std::uint64_t completions_ = 0;
    std::uint64_t by_status_[kStatuses] = {};
    std::map<std::uint32_t, std::unique_ptr<Queue>> queues_;
};

std::string to_string(const ibv_wc& wc);

}  // namespace walk
