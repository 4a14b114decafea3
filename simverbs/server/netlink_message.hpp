// A message of netlink in the making: a header, and attributes that may be nested (libmnl).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <libmnl/libmnl.h>

namespace simverbs {

using NetlinkBytes = std::vector<std::byte>;

class NetlinkMessage {
  public:
    // No program has a smaller buffer for an answer (MNL_SOCKET_BUFFER_SIZE).
    static constexpr std::size_t kMostBytes = 4096;

    // Answers the request: the same sequence number, to the port that it came from.
    NetlinkMessage(const nlmsghdr& request, std::uint16_t type, std::uint16_t flags);
    NetlinkMessage(const NetlinkMessage&) = delete;
    NetlinkMessage& operator=(const NetlinkMessage&) = delete;

    void put8(std::uint16_t attribute, std::uint8_t value);
    void put32(std::uint16_t attribute, std::uint32_t value);
    void put64(std::uint16_t attribute, std::uint64_t value);
    void put_text(std::uint16_t attribute, const std::string& text);
    void put_bytes(std::uint16_t attribute, std::span<const std::uint8_t> bytes);
    // Begins an attribute that has in it what is put until close().
    nlattr* open(std::uint16_t attribute) { return mnl_attr_nest_start(header_, attribute); }
    void close(nlattr* nest) { mnl_attr_nest_end(header_, nest); }

    // Adds bytes that follow the header as they are.
    void append(std::span<const std::byte> bytes);
    [[nodiscard]] std::size_t size() const { return header_->nlmsg_len; }
    [[nodiscard]] NetlinkBytes bytes() const;

  private:
    alignas(nlmsghdr) std::byte storage_[kMostBytes * 2]{};
    nlmsghdr* header_;
};

}  // namespace simverbs
