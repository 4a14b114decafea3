// /dev/infiniband/umadN as one process has it open: management datagrams in the kernel's format
// (<rdma/ib_user_mad.h>) on a socket, whose other end is the program's descriptor.
//
// Checks what a program writes. As a socket can refuse nothing afterwards, what the kernel would
// answer with an error to write(2) comes back as a datagram with that error as its status.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <rdma/ib_user_mad.h>

#include "fabric/mad/management_port.hpp"

#include "simverbs/protocol/device_protocol.hpp"

namespace simverbs {

class UmadFile final : private fabric::AgentClient {
  public:
    static constexpr std::size_t kMaxAgents = 32;      // as of the kernel
    static constexpr std::size_t kMaxWaiting = 65536;  // datagrams that the program does not read

    // `socket` becomes the file's own. The port outlives it.
    UmadFile(fabric::ManagementPort& port, int socket);
    ~UmadFile();
    UmadFile(const UmadFile&) = delete;
    UmadFile& operator=(const UmadFile&) = delete;

    [[nodiscard]] int socket() const { return socket_; }
    // Datagrams handed over so far.
    [[nodiscard]] std::uint64_t deliveries() const { return deliveries_; }
    // Returns true if something lies there that the program has not read.
    [[nodiscard]] bool has_unread() const;

    // Sends what the program has written; false when it has closed its descriptor.
    bool take_written();
    // Hands over what the socket had no room for.
    void flush();
    ControlReply control(const ControlRequest& request);

  private:
    void datagram_received(const fabric::ReceivedDatagram& datagram) override;
    void send_finished(const fabric::FinishedSend& send) override;

    int send(std::span<const std::uint8_t> written);
    [[nodiscard]] bool is_duplicate(const fabric::mad::Datagram& wanted) const;
    int register_agent(const fabric::AgentSpec& spec, std::uint32_t& id);
    int unregister_agent(std::uint32_t id);
    void hand_over(const ib_user_mad_hdr& header, std::span<const std::uint8_t> bytes);
    bool put(const std::vector<std::uint8_t>& message);
    [[nodiscard]] std::optional<std::uint32_t> number_of(fabric::AgentId agent) const;

    // Requests that have been sent and are not finished, by token.
    struct Sent {
        ib_user_mad_hdr header;
        fabric::mad::Datagram begin;  // its first 256 bytes
    };

    fabric::ManagementPort& port_;
    int socket_;
    std::array<std::optional<fabric::AgentId>, kMaxAgents> agents_;
    std::map<std::uint64_t, Sent> sent_;
    std::uint64_t last_token_ = 0;
    std::deque<std::vector<std::uint8_t>> waiting_;
    std::vector<std::uint8_t> written_;  // kept for its storage
    std::uint64_t deliveries_ = 0;
};

}  // namespace simverbs
