// Automatic path migration (IBA 17.2.8): a second path that both ends of a connection have loaded
// and armed, and to which both go when the first fails or the consumer says so.
#pragma once

#include <cstdint>

#include "simverbs/transport/qp_attributes.hpp"

namespace simverbs {

// Same values as enum ibv_mig_state. The consumer asks for kRearm; kArmed follows once the peer has
// asked, too, which its packets show.
enum class MigrationState : std::uint8_t { kMigrated, kRearm, kArmed };

struct AlternatePath {
    AddressVector path;
    std::uint16_t pkey_index = 0;
    std::uint8_t timeout = 0;
};

// The migration state of a queue pair that has loaded an alternate path.
struct PathMigration {
    MigrationState state = MigrationState::kMigrated;
    AlternatePath alternate;
};

}  // namespace simverbs
