// Two hosts of topology "pair" or "eth-pair", each with memory, completion queues and an RC queue
// pair, connected to each other; time moves by drive() and advance() alone.
//
// Faults are put on the wire between them; nothing here reaches into an engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/core/sim_time.hpp"
#include "fabric/faults/frame_fault.hpp"
#include "fabric/net/link.hpp"
#include "fabric/trace/memory_sink.hpp"

#include "simverbs/outlets/coverage_file.hpp"
#include "simverbs/wire/packet.hpp"

#include "tests/support/host.hpp"
#include "tests/support/rings.hpp"

namespace simverbs::test {

inline constexpr AccessRights kAllRights = AccessRights(Access::kLocalWrite) |
                                           Access::kRemoteWrite | Access::kRemoteRead |
                                           Access::kRemoteAtomic;

// The options by which the queue pairs of a Pair are made and connected.
struct PairOptions {
    std::string personality = "spec";
    std::string topology = "pair";
    std::uint8_t gid_index = 0;  // on Ethernet, of both ends
    QpCapacity capacity{.send_requests = 64,
                        .receive_requests = 64,
                        .send_segments = 4,
                        .receive_segments = 4,
                        .inline_bytes = 256};
    std::uint32_t cq_entries = 256;
    std::uint32_t mtu_bytes = 1024;
    std::uint32_t first_psn = 0x000010;
    std::uint8_t timeout = 14;
    std::uint8_t retry_count = 7;
    std::uint8_t rnr_retry = 7;
    std::uint8_t min_rnr_timer = 12;  // 0.64 ms
    std::uint8_t max_rd_atomic = 4;
    std::uint8_t max_dest_rd_atomic = 4;
    AccessRights qp_rights = kAllRights;
    MemoryOf memory = MemoryOf::kThisProcess;
};

struct Region {
    std::uint32_t handle = 0;
    std::uint32_t lkey = 0;
    std::uint32_t rkey = 0;
};

// One host of the two.
class Side {
  public:
    static constexpr std::size_t kMemoryBytes = 256 * 1024UL;

    Side(Simulation& simulation, std::size_t rank, const PairOptions& options);

    Host host;
    std::uint32_t pd;
    std::vector<std::byte> memory;
    Region region;  // all of `memory`, with all rights
    CompletionQueueRing send_cq;
    CompletionQueueRing receive_cq;
    QueuePairHandle qp;

    QueuePairHandle make_qp();
    Region register_memory(const void* address, std::size_t length,
                           AccessRights rights = kAllRights, std::uint32_t in_pd = 0);
    [[nodiscard]] std::uint64_t address(std::size_t offset = 0) const;
    // `length` bytes of memory from `offset`.
    [[nodiscard]] Segment segment(std::size_t offset, std::size_t length) const;
    // Bytes that depend on their place and on `salt`.
    void fill(std::size_t offset, std::size_t length, unsigned salt);
    [[nodiscard]] std::vector<std::byte> bytes(std::size_t offset, std::size_t length) const;
    [[nodiscard]] std::uint64_t word(std::size_t offset) const;
    void set_word(std::size_t offset, std::uint64_t value);

    [[nodiscard]] std::uint16_t lid() const;
    // How a peer reaches this side by port 1.
    [[nodiscard]] AddressVector path_to() const;
    // Async events that concern queues; COMM_EST, which nearly every test raises, left out.
    std::vector<AsyncEvent> take_events();

  private:
    const PairOptions& options_;
};

// Returns the values that bring `qp` from RESET to INIT, to RTR and to RTS, when connected to a
// peer.
QpValues init_values(const PairOptions& options);
QpValues rtr_values(const PairOptions& options, std::uint16_t peer_lid, std::uint32_t peer_qpn);
QpValues rts_values(const PairOptions& options);
inline constexpr QpAttrs kInitAttrs =
    QpAttrs(QpAttr::kPkeyIndex) | QpAttr::kPort | QpAttr::kAccessFlags;
inline constexpr QpAttrs kRtrAttrs = QpAttrs(QpAttr::kAv) | QpAttr::kPathMtu | QpAttr::kDestQpn |
                                     QpAttr::kRqPsn | QpAttr::kMaxDestRdAtomic |
                                     QpAttr::kMinRnrTimer;
inline constexpr QpAttrs kRtsAttrs = QpAttrs(QpAttr::kTimeout) | QpAttr::kRetryCnt |
                                     QpAttr::kRnrRetry | QpAttr::kMaxRdAtomic | QpAttr::kSqPsn;

class Pair {
  public:
    explicit Pair(PairOptions options = {});
    ~Pair();
    Pair(const Pair&) = delete;
    Pair& operator=(const Pair&) = delete;

  private:
    PairOptions options_;
    std::unique_ptr<Simulation> simulation_;
    std::unique_ptr<CoverageFile> coverage_;  // where SIMVERBS_COVERAGE is set

  public:
    Side a;
    Side b;

    [[nodiscard]] const PairOptions& options() const { return options_; }
    [[nodiscard]] Simulation& simulation() { return *simulation_; }
    [[nodiscard]] fabric::SimTime now() { return simulation_->loop().now(); }
    [[nodiscard]] fabric::SimDuration elapsed() { return now() - began_; }
    [[nodiscard]] std::uint64_t run_digest() { return simulation_->bus().run_digest(); }

    // RESET to RTS towards a queue pair of `peer`.
    void connect(const QueuePairHandle& qp, const Side& peer, const QueuePairHandle& to) const;
    void connect(const QueuePairHandle& qp, const Side& peer, const QueuePairHandle& to,
                 const PairOptions& options) const;

    // Runs until nothing is pending; returns the time it took.
    fabric::SimDuration drive();
    void advance(fabric::SimDuration duration);
    // Runs until `side` has a completion on its send queue, or nothing is pending.
    void drive_until_sent(Side& side);

    // The n-th frame, from 1 and from now, that `from` puts on the link is lost.
    void drop_nth(const Side& from, std::uint64_t nth);
    // Something else happens to it.
    void fault_nth(const Side& from, std::uint64_t nth,
                   std::unique_ptr<fabric::FrameAction> action);
    void drop_all(const Side& from);
    void stop_dropping();
    void set_link(fabric::LinkState state);

    // Puts a packet made by hand on the wire, as if `from` had sent it to the queue pair `to`.
    void inject(Side& from, const Side& peer, Packet packet);

    // Packets that were sent, by host and in order.
    void watch_packets();
    [[nodiscard]] std::vector<std::string> packets_of(const Side& side) const;
    [[nodiscard]] std::size_t retransmissions(const Side& side) const;
    // Why packets that reached a device went no further.
    [[nodiscard]] std::vector<std::string> fates() const;

  private:
    fabric::LinkDirection& direction_from(const Side& side);

    fabric::SimTime began_;
    fabric::trace::MemorySink packets_;
    bool watching_ = false;
    void add_fault(const Side& from, const fabric::OccasionRules& rules,
                   std::unique_ptr<fabric::FrameAction> action);
    std::vector<std::unique_ptr<fabric::FrameFault>> faults_;
};

// Requests between the two memories of a pair: `offset` on both sides unless told otherwise.
Send send_of(const Side& from, std::uint64_t wr_id, std::size_t offset, std::size_t length);
Send write_of(const Side& from, const Side& to, std::uint64_t wr_id, std::size_t offset,
              std::size_t length);
Send read_of(const Side& from, const Side& to, std::uint64_t wr_id, std::size_t offset,
             std::size_t length);
// The value that was there lands at `offset` of `from`; the target is at `offset` of `to`.
Send fetch_add_of(const Side& from, const Side& to, std::uint64_t wr_id, std::size_t offset,
                  std::uint64_t add);
Send compare_swap_of(const Side& from, const Side& to, std::uint64_t wr_id, std::size_t offset,
                     std::uint64_t compare, std::uint64_t swap);

}  // namespace simverbs::test
