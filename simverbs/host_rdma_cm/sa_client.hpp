// Queries of a host's kernel to subnet administration (ib_sa of Linux), by datagrams from
// the port that they are about to the subnet manager that the port knows.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "fabric/core/event_loop.hpp"
#include "fabric/core/timer.hpp"
#include "fabric/mad/datagram.hpp"
#include "fabric/mad/management_port.hpp"
#include "fabric/sm/sa_records.hpp"

namespace simverbs::rdma_cm {

// The port number in the keys of a client's timer: beyond those of other timers of a node.
inline constexpr std::uint16_t kSaClientKey = 2061;

struct SaQuery {
    fabric::mad::SaAttribute attribute{};
    fabric::mad::Method method = fabric::mad::Method::kGet;
    std::uint64_t mask = 0;                  // of components
    std::span<const std::uint8_t> record{};  // at most what a datagram holds (asserted)
    fabric::SimDuration timeout{};           // with all repetitions, about
};

class SaUser {
  public:
    // Called while an event runs. `error` is 0, EINVAL (refused) or ETIMEDOUT.
    virtual void answered(std::uint64_t token, int error, std::span<const std::uint8_t> record) = 0;

  protected:
    ~SaUser() = default;
};

class SaClient final : private fabric::AgentClient, private fabric::EventHandler {
  public:
    // Both outlive it.
    SaClient(fabric::ManagementPort& port, fabric::EventLoop& loop, SaUser& user);
    ~SaClient();
    SaClient(const SaClient&) = delete;
    SaClient& operator=(const SaClient&) = delete;

    // The answer comes once, after this call has returned. Tokens are unique.
    void ask(std::uint64_t token, const SaQuery& query);
    // No answer comes. The datagram is repeated nevertheless until it is answered.
    void cancel(std::uint64_t token) { asked_.erase(token); }

  private:
    void datagram_received(const fabric::ReceivedDatagram& datagram) override;
    void send_finished(const fabric::FinishedSend& send) override;
    void handle(const fabric::Event& event) override;
    void report(std::uint64_t token, int error, std::span<const std::uint8_t> record);

    fabric::ManagementPort& port_;
    SaUser& user_;
    std::uint32_t last_transaction_ = 0;
    std::optional<fabric::AgentId> agent_;
    std::set<std::uint64_t> asked_;
    std::vector<std::uint64_t> not_sent_;
    fabric::Timer not_sent_timer_;
};

}  // namespace simverbs::rdma_cm
