// Completion queues and queue pairs as their driver sees them: memory shared with the device, and
// the numbers that name them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "simverbs/hca/command.hpp"
#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/statuses.hpp"
#include "simverbs/transport/work_queue.hpp"

#include "tests/support/host.hpp"

namespace simverbs::test {

class CompletionQueueRing {
  public:
    // `channel`: 0 is none.
    CompletionQueueRing(Host& host, std::uint32_t entries, std::uint32_t channel = 0);

    [[nodiscard]] std::uint32_t handle() const { return handle_; }
    [[nodiscard]] std::uint32_t entries() const { return entries_; }
    // Everything that is there, oldest first; gives the entries back to the device.
    std::vector<Cqe> poll();
    // Entries that were not polled yet.
    [[nodiscard]] std::uint32_t waiting() const;
    void arm(CqArm what);
    int resize(std::uint32_t entries);

  private:
    void map(std::uint64_t address, std::uint32_t entries);
    [[nodiscard]] CompletionRing& head() const;

    Host& host_;
    std::byte* base_ = nullptr;
    std::uint32_t handle_ = 0;
    std::uint32_t entries_ = 0;
    std::uint32_t consumer_ = 0;
};

// A request to post, without what a request rarely needs.
struct Send {
    std::uint64_t wr_id = 0;
    WrOpcode opcode = WrOpcode::kSend;
    std::vector<Segment> segments;
    SendFlags flags = SendFlag::kSignaled;
    std::uint64_t remote_address = 0;
    std::uint32_t rkey = 0;
    std::uint64_t compare_add = 0;
    std::uint64_t swap = 0;
    std::uint32_t immediate = 0;
    WindowBinding binding;                // of a BIND_MW, in place of all between
    FlushRequest flush;                   // of a FLUSH, beside address and rkey
    std::vector<std::byte> inline_bytes;  // sent where the flags say kInline
};

// The slot of the send queue that says this; what follows it goes to `tail`.
SendWqe encode(const Send& send, std::span<std::byte> tail);

class QueuePairHandle {
  public:
    QueuePairHandle(Host& host, const CreateQpReply& reply);

    [[nodiscard]] std::uint32_t qpn() const { return qpn_; }
    [[nodiscard]] std::uint32_t handle() const { return handle_; }
    [[nodiscard]] Host& host() const { return host_; }
    [[nodiscard]] QpState state() const;  // as the ring says
    QueryQpReply query() const;
    // An errno.
    int modify(QpAttrs given, QpValues values) const;
    int modify_to(QpState state, QpAttrs others = {}, QpValues values = {}) const;
    void destroy();

    void post(const Send& send);
    // Several with one doorbell.
    void post(std::span<const Send> sends);
    void post_receive(std::uint64_t wr_id, const std::vector<Segment>& segments);
    // Tells the device of a queue index without writing anything.
    void ring_doorbell(bool send, std::uint32_t producer) const;
    void write_send_producer(std::uint32_t producer) const;

  private:
    [[nodiscard]] QueuePairRings& rings() const {
        return *reinterpret_cast<QueuePairRings*>(base_);
    }
    void write_send(const Send& send);

    Host& host_;
    std::byte* base_;
    std::uint32_t qpn_;
    std::uint32_t handle_;
    WorkQueueShape send_shape_;
    WorkQueueShape receive_shape_;
    mutable std::uint32_t sends_ = 0;
    mutable std::uint32_t receives_ = 0;
};

std::vector<WcStatus> statuses(const std::vector<Cqe>& entries);
std::vector<std::uint64_t> ids(const std::vector<Cqe>& entries);

}  // namespace simverbs::test
