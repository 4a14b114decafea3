#include "simverbs/rdma_cm/environment.hpp"

#include <algorithm>

namespace simverbs::rdma_cm {

using fabric::Gid;
using fabric::GidType;

const PortInfo* find_port(const Environment& environment, const LocalPort& local) {
    const DeviceInfo* const device = environment.find_device(local.device);
    if (device == nullptr) {
        return nullptr;
    }
    const auto found = std::ranges::find(device->ports, local.port, &PortInfo::number);
    return found == device->ports.end() ? nullptr : &*found;
}

std::optional<std::uint8_t> gid_index(const PortInfo& port, const Gid& gid) {
    std::optional<std::uint8_t> found;
    for (std::size_t i = 0; i < port.gids.size() && i <= UINT8_MAX; ++i) {
        if (port.gids[i].gid == gid && (!found || port.gids[i].type == GidType::kRoceV2)) {
            found = static_cast<std::uint8_t>(i);
        }
    }
    return found;
}

std::optional<std::uint16_t> pkey_index(const PortInfo& port, std::uint16_t pkey) {
    constexpr unsigned kBase = 0x7FFF;
    constexpr unsigned kFull = 0x8000;
    std::optional<std::uint16_t> partial;
    for (std::size_t i = 0; i < port.pkeys.size(); ++i) {
        if ((port.pkeys[i] & kBase) != (pkey & kBase)) {
            continue;
        }
        if ((port.pkeys[i] & kFull) != 0) {
            return static_cast<std::uint16_t>(i);
        }
        if (!partial) {
            partial = static_cast<std::uint16_t>(i);
        }
    }
    return partial;
}

}  // namespace simverbs::rdma_cm
