// The rdma_ucm module of a host's kernel: the contexts by which programs know rdma_cm ids, their
// multicast memberships, and the events that wait in the files that contexts belong to.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include <rdma/rdma_user_cm.h>

#include "simverbs/rdma_cm/rdma_cm.hpp"

namespace simverbs::rdma_cm {

class UcmaFile;

// Hands out the lowest number that is not taken, as the kernel's xarrays do.
class LowestFreeNumber {
  public:
    std::uint32_t take();
    void give_back(std::uint32_t number) { free_.insert(number); }

  private:
    std::set<std::uint32_t> free_;
    std::uint32_t never_taken_ = 0;
};

// An id as a program knows it.
struct UcmaContext {
    std::uint32_t number = 0;
    UcmaFile* file = nullptr;
    std::optional<RdmaIdNumber> id;  // nothing after its device has gone
    std::uint64_t uid = 0;           // the program's; 0: it does not want events yet
    std::uint32_t events_reported = 0;
    std::uint32_t backlog = 0;  // connection requests that may still wait
    std::uint64_t place = 0;    // in the order of the file's contexts
    std::set<std::uint64_t> events;
    std::set<std::uint32_t> memberships;
};

struct UcmaMembership {
    std::uint32_t number = 0;
    std::uint32_t context = 0;
    std::uint64_t uid = 0;
    std::uint32_t events_reported = 0;
};

// An event that waits for GET_EVENT.
struct UcmaEvent {
    rdma_ucm_event_resp response{};
    std::uint32_t context = 0;
    std::optional<std::uint32_t> membership;
    std::optional<std::uint32_t> new_context;  // of CONNECT_REQUEST
};

class Ucma final : private RdmaUser {
  public:
    static constexpr std::size_t kMaxContexts = RdmaCm::kMaxIds;

    // The loop and the environment outlive it; it outlives its files.
    Ucma(fabric::EventLoop& loop, fabric::NodeId node, Environment& environment, std::uint64_t seed)
        : rdma_cm_(loop, node, environment, *this, seed) {}
    Ucma(const Ucma&) = delete;
    Ucma& operator=(const Ucma&) = delete;

    // For the environment, which reports to it.
    [[nodiscard]] RdmaCm& rdma_cm() { return rdma_cm_; }
    [[nodiscard]] std::size_t size() const { return contexts_.size(); }

  private:
    friend class UcmaFile;

    void rdma_event(RdmaId& id, const RdmaEvent& event) override;
    bool connection_requested(RdmaId& listener, RdmaId& connection,
                              const RdmaEvent& event) override;

    // Returns nullptr, which is ENOMEM, if kMaxContexts exist.
    UcmaContext* create_context(UcmaFile& file);
    // Returns how many of its events the program has got.
    std::uint32_t destroy_context(std::uint32_t number);
    // The id has a context (asserted).
    UcmaContext& context_of(const RdmaId& id);
    void move_context(UcmaContext& context, UcmaFile& to);

    RdmaCm rdma_cm_;
    std::uint64_t last_place_ = 0;
    std::uint64_t last_event_ = 0;
    LowestFreeNumber context_numbers_;
    LowestFreeNumber membership_numbers_;
    std::map<std::uint32_t, UcmaContext> contexts_;
    std::map<RdmaIdNumber, std::uint32_t> by_id_;
    std::map<std::uint32_t, UcmaMembership> memberships_;
};

}  // namespace simverbs::rdma_cm
