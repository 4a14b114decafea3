// A socket of NETLINK_RDMA as one process has it open: requests and answers on a socket whose other
// end is the program's descriptor.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "simverbs/server/netlink_message.hpp"

namespace simverbs {

class RdmaNetlinkFile {
  public:
    using Answer = std::function<std::vector<NetlinkBytes>(std::span<const std::byte>)>;

    // `socket` becomes the file's own.
    explicit RdmaNetlinkFile(int socket);
    ~RdmaNetlinkFile();
    RdmaNetlinkFile(const RdmaNetlinkFile&) = delete;
    RdmaNetlinkFile& operator=(const RdmaNetlinkFile&) = delete;

    // Messages handed over so far.
    [[nodiscard]] std::uint64_t deliveries() const { return deliveries_; }
    // Returns true if something lies there that the program has not read.
    [[nodiscard]] bool has_unread() const;

    // Answers what the program has written; false when it has closed its descriptor.
    bool take_written(const Answer& answer);
    // Hands over what the socket had no room for.
    void flush();

  private:
    bool put(const NetlinkBytes& message);

    int socket_;
    std::deque<NetlinkBytes> waiting_;
    std::uint64_t deliveries_ = 0;
};

}  // namespace simverbs
