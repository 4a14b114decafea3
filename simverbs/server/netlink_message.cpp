#include "simverbs/server/netlink_message.hpp"

#include <algorithm>
#include <cstring>

namespace simverbs {

NetlinkMessage::NetlinkMessage(const nlmsghdr& request, std::uint16_t type, std::uint16_t flags)
    : header_(mnl_nlmsg_put_header(storage_)) {
    header_->nlmsg_type = type;
    header_->nlmsg_flags = flags;
    header_->nlmsg_seq = request.nlmsg_seq;
    header_->nlmsg_pid = request.nlmsg_pid;
}

void NetlinkMessage::put8(std::uint16_t attribute, std::uint8_t value) {
    mnl_attr_put_u8(header_, attribute, value);
}

void NetlinkMessage::put32(std::uint16_t attribute, std::uint32_t value) {
    mnl_attr_put_u32(header_, attribute, value);
}

void NetlinkMessage::put64(std::uint16_t attribute, std::uint64_t value) {
    mnl_attr_put_u64(header_, attribute, value);
}

void NetlinkMessage::put_text(std::uint16_t attribute, const std::string& text) {
    mnl_attr_put_strz(header_, attribute, text.c_str());
}

void NetlinkMessage::put_bytes(std::uint16_t attribute, std::span<const std::uint8_t> bytes) {
    mnl_attr_put(header_, attribute, bytes.size(), bytes.data());
}

void NetlinkMessage::append(std::span<const std::byte> bytes) {
    const std::size_t taken = std::min(bytes.size(), sizeof storage_ - size());
    std::memcpy(mnl_nlmsg_get_payload_tail(header_), bytes.data(), taken);
    header_->nlmsg_len += static_cast<std::uint32_t>(taken);
}

NetlinkBytes NetlinkMessage::bytes() const {
    return {storage_, storage_ + size()};
}

}  // namespace simverbs
