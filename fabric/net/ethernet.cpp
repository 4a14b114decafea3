#include "fabric/net/ethernet.hpp"

#include <cstddef>

namespace fabric {

namespace {
constexpr std::uint8_t kUniversalBit = 0x02;
}

MacAddress make_mac(NodeId node, PortNumber port) {
    const std::uint64_t guid = make_guid(node, port).value();
    MacAddress mac;
    mac.bytes[0] = 0x02;
    for (std::size_t i = 1; i < mac.bytes.size(); ++i) {
        mac.bytes[i] = static_cast<std::uint8_t>(guid >> (8 * (5 - i)));
    }
    return mac;
}

Gid ipv4_mapped(std::uint32_t address) {
    Gid gid;
    gid.bytes[10] = gid.bytes[11] = 0xFF;
    for (std::size_t i = 0; i < 4; ++i) {
        gid.bytes[12 + i] = static_cast<std::uint8_t>(address >> (24 - 8 * i));
    }
    return gid;
}

bool is_ipv4_mapped(const Gid& gid) {
    constexpr std::uint64_t kMark = 0xFFFF;
    return gid.subnet_prefix() == 0 && gid.interface_id() >> 32 == kMark;
}

Gid link_local_gid(const MacAddress& mac) {
    Gid gid;
    gid.bytes[0] = 0xFE;
    gid.bytes[1] = 0x80;
    std::copy_n(mac.bytes.begin(), 3, gid.bytes.begin() + 8);
    gid.bytes[8] ^= kUniversalBit;
    gid.bytes[11] = 0xFF;
    gid.bytes[12] = 0xFE;
    std::copy_n(mac.bytes.begin() + 3, 3, gid.bytes.begin() + 13);
    return gid;
}

bool is_link_local(const Gid& gid) {
    return gid.subnet_prefix() == kDefaultSubnetPrefix;
}

MacAddress mac_of_link_local(const Gid& gid) {
    MacAddress mac;
    std::copy_n(gid.bytes.begin() + 8, 3, mac.bytes.begin());
    mac.bytes[0] ^= kUniversalBit;
    std::copy_n(gid.bytes.begin() + 13, 3, mac.bytes.begin() + 3);
    return mac;
}

bool is_multicast(const Gid& gid) {
    constexpr std::uint8_t kIpv4Group = 0xE0;
    return gid.bytes[0] == 0xFF || (is_ipv4_mapped(gid) && (gid.bytes[12] & 0xF0U) == kIpv4Group);
}

MacAddress multicast_mac(const Gid& gid) {
    if (!is_ipv4_mapped(gid)) {
        return {{0x33, 0x33, gid.bytes[12], gid.bytes[13], gid.bytes[14], gid.bytes[15]}};
    }
    const auto low_bits = static_cast<std::uint8_t>(gid.bytes[13] & 0x7FU);
    return {{0x01, 0x00, 0x5E, low_bits, gid.bytes[14], gid.bytes[15]}};
}

}  // namespace fabric
