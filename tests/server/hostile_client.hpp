// A client that speaks the protocol of a served world by hand, so as to break it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>

#include "simverbs/hca/command.hpp"
#include "simverbs/protocol/client_area.hpp"
#include "simverbs/protocol/served_protocol.hpp"

namespace server_test {

// Memory that came with a descriptor.
struct Mapped {
    std::byte* base = nullptr;
    std::size_t bytes = 0;
};

class HostileClient {
  public:
    explicit HostileClient(const std::string& world);
    ~HostileClient();
    HostileClient(const HostileClient&) = delete;
    HostileClient& operator=(const HostileClient&) = delete;

    // 0 or the server's errno; -1 when it did not answer. Afterwards area() and wake() are there.
    int attach(const std::string& host);
    [[nodiscard]] simverbs::ClientArea& area() const { return *area_; }
    [[nodiscard]] int wake() const { return wake_; }
    [[nodiscard]] bool send(std::span<const std::byte> bytes) const;
    void hang_up();
    [[nodiscard]] int socket() const { return socket_; }

    // Without an answer being read.
    [[nodiscard]] bool send_command(const simverbs::CommandRequest& request) const;
    // The errno that the server answers, -1 when it did not.
    int command(const simverbs::CommandRequest& request, simverbs::CommandReply& reply);
    template <simverbs::Command C>
    int command(const C& command, typename C::Reply& reply) {
        return execute(C::kCode, std::as_bytes(std::span(&command, 1)),
                       std::as_writable_bytes(std::span(&reply, 1)));
    }
    // The ring that came with the last reply.
    Mapped map(std::uint64_t bytes);

  private:
    int execute(simverbs::CommandCode code, std::span<const std::byte> command,
                std::span<std::byte> reply);

    int socket_;
    int wake_ = -1;
    int descriptor_ = -1;
    simverbs::ClientArea* area_ = nullptr;
};

// Numbers that a program might get wrong: small, huge, just beside a power of two.
std::uint64_t odd_number(std::mt19937_64& random);
void fill(std::span<std::byte> bytes, std::mt19937_64& random);

}  // namespace server_test
