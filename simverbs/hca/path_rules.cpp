#include "simverbs/hca/path_rules.hpp"

#include <cerrno>

#include "simverbs/hca/hca.hpp"

namespace simverbs {
namespace {

constexpr std::uint8_t kMaxServiceLevel = 15;
constexpr std::uint8_t kMaxPathBits = 127;
constexpr std::uint32_t kMaxFlowLabel = 0xFFFFF;
constexpr std::uint8_t kMaxStaticRate = 24;  // IBV_RATE_1200_GBPS

}  // namespace

int check_path(const Hca& hca, const AddressVector& path) {
    if (!hca.has_port(path.port)) {
        return EINVAL;
    }
    const bool checks_values = hca.personality().checks_values_of_address_handle;
    if (checks_values && (path.sl > kMaxServiceLevel || path.src_path_bits > kMaxPathBits ||
                          path.static_rate > kMaxStaticRate)) {
        return EINVAL;
    }
    if (!path.is_global) {
        return 0;
    }
    if ((checks_values && path.flow_label > kMaxFlowLabel) ||
        path.sgid_index >= hca.personality().limits.port.gid_entries) {
        return EINVAL;
    }
    const std::size_t gids = hca.port(path.port).attributes().gids.size();
    return path.sgid_index < gids ? 0 : ENODATA;
}

}  // namespace simverbs
