#include "simverbs/hca/path_migration.hpp"

#include <cerrno>

#include "simverbs/hca/addressing.hpp"
#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"

namespace simverbs {

// Checks what ALT_PATH and PATH_MIG_STATE ask for; an errno.
int QueuePair::check_migration(QpAttrs given, const QpValues& values) const {
    const bool loads = given.contains(QpAttr::kAltPath);
    if (loads) {
        if (!hca_.personality().limits.caps.contains(DeviceCap::kAutoPathMig)) {
            return context().refuse(EINVAL, "ALT_PATH: the device migrates no paths");
        }
        AddressVector path = values.alternate;
        std::string why;
        if (const int error = resolve_path(hca_, path, why); error != 0) {
            return context().refuse(error, "alt_ah_attr: {}", why);
        }
        const auto& pkeys = hca_.port(path.port).attributes().pkeys;
        if (values.alternate_pkey_index >= pkeys.size()) {
            return context().refuse(EINVAL, "alt_pkey_index {} is none of 0 to {}",
                                    values.alternate_pkey_index, pkeys.size() - 1);
        }
        if (values.alternate_timeout >= kAckTimeoutCodes) {
            return context().refuse(EINVAL, "alt_timeout {} is none of 0 to {}",
                                    values.alternate_timeout, kAckTimeoutCodes - 1);
        }
    }
    if (!given.contains(QpAttr::kPathMigState)) {
        return 0;
    }
    const auto wanted = static_cast<MigrationState>(values.path_mig_state);
    const bool has_alternate = migration_ != nullptr || loads;
    const bool is_armed = migration_ != nullptr && migration_->state == MigrationState::kArmed;
    switch (wanted) {
        case MigrationState::kMigrated:
            return 0;
        case MigrationState::kRearm:
            return has_alternate ? 0 : context().refuse(EINVAL, "REARM needs an alternate path");
        case MigrationState::kArmed:
            break;
    }
    return is_armed ? 0  // both ends together get there, neither alone
                    : context().refuse(EINVAL, "ARMED is reached from REARM, by both ends");
}

void QueuePair::apply_migration(QpAttrs given, const QpValues& values) {
    if (given.contains(QpAttr::kAltPath)) {
        if (migration_ == nullptr) {
            migration_ = std::make_unique<PathMigration>();
        }
        migration_->alternate = {values.alternate, values.alternate_pkey_index,
                                 values.alternate_timeout};
        std::string why;
        resolve_path(hca_, migration_->alternate.path, why);
        migration_->state = MigrationState::kMigrated;
    }
    if (!given.contains(QpAttr::kPathMigState) || migration_ == nullptr) {
        return;
    }
    const auto wanted = static_cast<MigrationState>(values.path_mig_state);
    if (wanted == MigrationState::kMigrated && migration_->state == MigrationState::kArmed) {
        migrate();
    } else if (wanted != MigrationState::kArmed) {
        migration_->state = wanted;
    }
}

MigrationState QueuePair::migration_state() const {
    return migration_ == nullptr ? MigrationState::kMigrated : migration_->state;
}

// The alternate path becomes the path; another has to be loaded before the next migration.
bool QueuePair::migrate() {
    if (migration_state() != MigrationState::kArmed) {
        return false;
    }
    const AlternatePath taken = migration_->alternate;
    migration_ = nullptr;
    attributes_.path = taken.path;
    attributes_.port = taken.path.port;
    attributes_.pkey_index = taken.pkey_index;
    attributes_.timeout = taken.timeout;
    raise(AsyncEvent::kPathMig);
    return true;
}

bool QueuePair::comes_by_its_path(const fabric::Port& port, const fabric::Frame& frame) {
    const bool peer_migrated = frame.transport_as<Packet>().migration_request;
    const bool by_primary = came_by(frame, port, attributes_.path);
    switch (migration_state()) {
        case MigrationState::kMigrated:
            break;
        case MigrationState::kRearm:
            if (by_primary && !peer_migrated) {
                migration_->state = MigrationState::kArmed;
            }
            break;
        case MigrationState::kArmed:
            if (!peer_migrated) {
                break;
            }
            if (came_by(frame, port, migration_->alternate.path)) {
                return migrate();
            }
            raise(AsyncEvent::kPathMigErr);
            return false;
    }
    return by_primary;
}

}  // namespace simverbs
