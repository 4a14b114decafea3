// Copies a file to another host: chunks follow each other without waiting for answers, as far as
// the receiver has granted credits. Both ends learn whether the whole file has arrived. Connecting
// is left to the caller.
#ifndef FILE_COPY_HPP
#define FILE_COPY_HPP

#include <cstddef>
#include <cstdint>
#include <istream>
#include <ostream>
#include <vector>

#include "verbs_objects.hpp"

namespace file_copy {

enum class Outcome : std::uint64_t {
    kCopied = 1,
    kReadFailed,   // the sender's stream
    kWriteFailed,  // the receiver's stream
    kCorrupt,      // the receiver has other bytes than the sender read
    kLost          // the peer does not answer: the receiver's file is to be thrown away
};
const char* name_of(Outcome outcome);

struct Options {
    std::size_t chunk = 4096;  // bytes, 32 or more; the same at both ends
    std::uint32_t window = 8;  // chunks that the receiver has room for, and the sender in flight
    bool waits_for_credits = true;  // of the sender; false: the receiver is always faster
};

// The receiver writes it into the sender's memory.
struct Feedback {
    std::uint64_t granted = 0;  // chunks that the sender may send, in all
    std::uint64_t verdict = 0;  // an Outcome, once the receiver knows
};

// Names the memory of the sender's feedback. Whatever connects the two gives it to the receiver.
struct FeedbackPlace {
    std::uint64_t address;
    std::uint32_t rkey;
};

class Sender {
  public:
    explicit Sender(ibv_context* device, const Options& options = {});

    [[nodiscard]] ibv_qp* qp() const { return qp_.get(); }
    [[nodiscard]] FeedbackPlace feedback_place() const;

    // Sends what the stream has, and waits for the receiver's verdict. Once.
    Outcome send(std::istream& file);

  private:
    [[nodiscard]] std::uint64_t granted() const;
    [[nodiscard]] std::uint64_t verdict() const;
    [[nodiscard]] bool may_send() const;
    // Returns false when the connection is lost.
    bool post(std::size_t bytes, bool is_end);
    bool poll();
    // Waits, with a request under way: without one, a peer that is gone would go unnoticed.
    bool wait();

    Options options_;
    std::vector<char> chunks_;
    Feedback feedback_;
    std::uint64_t sent_ = 0;  // chunks
    std::uint64_t completed_ = 0;
    bool is_probing_ = false;
    Owned<ibv_pd> pd_;
    Owned<ibv_cq> cq_;
    Owned<ibv_mr> chunks_mr_;
    Owned<ibv_mr> feedback_mr_;
    Owned<ibv_qp> qp_;
};

class Receiver {
  public:
    Receiver(ibv_context* device, const FeedbackPlace& sender, const Options& options = {});

    [[nodiscard]] ibv_qp* qp() const { return qp_.get(); }
    // Posts the receives. Once connected, before the sender sends.
    void begin();
    // Writes to the stream what the sender sends. Once.
    Outcome receive(std::ostream& file);

  private:
    enum class Arrival { kNone, kChunk, kLost };
    // Takes a completion; of a chunk it leaves the slot and the length in `completion_`.
    Arrival poll();
    bool write_feedback();
    Outcome finish(Outcome outcome);

    Options options_;
    FeedbackPlace sender_;
    std::vector<char> chunks_;
    Feedback feedback_;
    ibv_wc completion_{};
    bool is_feedback_under_way_ = false;
    Owned<ibv_pd> pd_;
    Owned<ibv_cq> cq_;
    Owned<ibv_mr> chunks_mr_;
    Owned<ibv_mr> feedback_mr_;
    Owned<ibv_qp> qp_;
};

}  // namespace file_copy

#endif
