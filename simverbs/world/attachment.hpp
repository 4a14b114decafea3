// A process as the world sees it: the devices it may open, what it has opened, and the command
// channel through which it asks.
//
// Everything that comes in is checked here or below: an unknown command, device or context is an
// errno, whoever sent it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "simverbs/hca/client.hpp"
#include "simverbs/hca/command.hpp"
#include "simverbs/hca/doorbell.hpp"
#include "simverbs/hca/event_pipe.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs {

class Attachment {
  public:
    // `hcas`: ranks of the devices that it sees.
    Attachment(Simulation& simulation, Client& client, std::vector<std::size_t> hcas);
    ~Attachment();
    Attachment(const Attachment&) = delete;
    Attachment& operator=(const Attachment&) = delete;

    // The handle of the context that was opened last; they count from 1.
    [[nodiscard]] std::uint32_t last_context() const {
        return static_cast<std::uint32_t>(opened_.size());
    }
    [[nodiscard]] std::size_t device_count() const { return hcas_.size(); }
    [[nodiscard]] Hca& device(std::size_t index) const { return simulation_.hca(hcas_.at(index)); }

    // An errno; `reply` is filled with 0 only. EPROTO when the sizes are not the command's.
    int execute(CommandCode code, std::span<const std::byte> command, std::span<std::byte> reply);
    // Why the last command was refused, in words; "" where nothing more than its errno is known.
    [[nodiscard]] std::string take_refusal() { return std::exchange(refusal_, {}); }
    // False: it names nothing that the process has opened.
    bool ring(const Doorbell& doorbell);
    // nullptr: the process has not opened it, or has closed it since.
    [[nodiscard]] EventPipe* events_of(const EventSource& source) const;
    // The process is no more: what it has opened is dead, without an event.
    void abandon();

  private:
    template <Command C>
    int run(std::span<const std::byte> command, std::span<std::byte> reply);
    template <Command C>
    int execute_on_context(const C& command, typename C::Reply& reply);
    int open(const OpenContext& command, HandleReply& reply);
    int close(const CloseContext& command);
    [[nodiscard]] DeviceContext* find(std::uint32_t context) const;

    Simulation& simulation_;
    Client& client_;
    std::string refusal_;
    std::vector<std::size_t> hcas_;
    std::vector<DeviceContext*> opened_;  // by handle - 1; null once closed
};

}  // namespace simverbs
