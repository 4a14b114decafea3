// The attributes that a program modifies its queue pair with (rdma_init_qp_attr of Linux).
#include <cerrno>

#include "simverbs/rdma_cm/rdma_cm.hpp"
#include "simverbs/rdma_cm/rdma_id.hpp"

namespace simverbs::rdma_cm {
namespace {

// Values of enum ib_access_flags and of enum ib_mig_state.
constexpr std::uint32_t kRemoteWrite = 2;
constexpr std::uint32_t kRemoteRead = 4;
constexpr std::uint32_t kRemoteAtomic = 8;
constexpr std::uint32_t kRearm = 1;

}  // namespace

int RdmaId::init_qp_attr(std::uint32_t qp_state, ib_uverbs_qp_attr& attributes) {
    if (port_info() == nullptr) {
        return EINVAL;
    }
    attributes = {};
    attributes.qp_state = qp_state;
    const int error = !connection_ || qp_type_ == QpType::kUd
                          ? datagram_attributes(attributes)
                          : connection_attributes(static_cast<QpState>(qp_state), attributes);
    if (error != 0) {
        return error;
    }
    if (qp_state == static_cast<std::uint32_t>(QpState::kRtr)) {
        attributes.rq_psn = starting_psn_;
    }
    const QpAttrs mask = QpAttrs::from_bits(attributes.qp_attr_mask);
    if (mask.contains(QpAttr::kTimeout) && ack_timeout_) {
        attributes.timeout = *ack_timeout_;
    }
    return 0;
}

// Also those of a connected id that has no connection yet: no remote access.
int RdmaId::datagram_attributes(ib_uverbs_qp_attr& attributes) {
    const PortInfo& port = *port_info();
    const std::optional<std::uint16_t> index =
        pkey_index(port, is_ethernet() ? std::uint16_t{0xFFFF} : local_->pkey);
    if (!index) {
        return ENOENT;
    }
    QpAttrs mask = QpAttrs(QpAttr::kState) | QpAttr::kPkeyIndex | QpAttr::kPort;
    if (qp_type_ == QpType::kUd) {
        if (const int error = set_default_qkey(); error != 0) {
            return error;
        }
        attributes.qkey = qkey_;
        mask = mask | QpAttr::kQkey;
    } else {
        mask = mask | QpAttr::kAccessFlags;
    }
    attributes.qp_attr_mask = mask.bits;
    attributes.pkey_index = *index;
    attributes.port_num = static_cast<std::uint8_t>(local_->port.value());
    return 0;
}

int RdmaId::connection_attributes(QpState to, ib_uverbs_qp_attr& attributes) {
    const cm::Connection* const subject = connection();
    const std::optional<QpAttrs> mask =
        subject == nullptr ? std::nullopt : subject->qp_attributes(to);
    if (!mask) {
        return EINVAL;
    }
    const cm::QpParameters& qp = subject->qp_parameters();
    attributes.qp_attr_mask = mask->bits;
    if (to == QpState::kInit) {
        attributes.qp_access_flags = kRemoteWrite;
        if (qp.responder_resources != 0) {
            attributes.qp_access_flags |= kRemoteRead | kRemoteAtomic;
        }
        attributes.pkey_index = pkey_index(*port_info(), qp.pkey).value_or(0);
        attributes.port_num = static_cast<std::uint8_t>(local_->port.value());
    } else {
        peer_attributes(*subject, attributes);
    }
    return 0;
}

// Fills in what the mask of RTR or RTS names.
void RdmaId::peer_attributes(const cm::Connection& connection,
                             ib_uverbs_qp_attr& attributes) const {
    const cm::QpParameters& qp = connection.qp_parameters();
    const PortInfo& port = *port_info();
    const QpAttrs mask = QpAttrs::from_bits(attributes.qp_attr_mask);
    const auto address_of = [&port](const PathRecord& path) {
        return to_address_vector(path, port.layer, port.number,
                                 gid_index(port, path.sgid).value_or(0));
    };
    if (mask.contains(QpAttr::kAv)) {
        attributes.ah_attr = address_of(paths_.front());
        attributes.path_mtu = qp.path_mtu;
        attributes.dest_qp_num = connection.remote().qpn;
        if (mask.contains(QpAttr::kMaxDestRdAtomic)) {
            attributes.max_dest_rd_atomic = qp.responder_resources;
        }
    }
    if (mask.contains(QpAttr::kSqPsn)) {
        attributes.sq_psn = qp.send_psn;
    }
    if (mask.contains(QpAttr::kRetryCnt)) {
        attributes.retry_cnt = qp.retry_count;
        attributes.rnr_retry = qp.rnr_retry_count;
        attributes.max_rd_atomic = qp.initiator_depth;
    }
    if (mask.contains(QpAttr::kTimeout)) {
        attributes.timeout = qp.ack_timeout;
    }
    if (mask.contains(QpAttr::kAltPath) && paths_.size() > 1) {
        attributes.alt_ah_attr = address_of(paths_.back());
        attributes.alt_port_num = static_cast<std::uint8_t>(port.number.value());
        attributes.alt_pkey_index = pkey_index(port, qp.pkey).value_or(0);
        attributes.alt_timeout = qp.alternate_ack_timeout;
    }
    if (mask.contains(QpAttr::kPathMigState)) {
        attributes.path_mig_state = kRearm;
    }
}

}  // namespace simverbs::rdma_cm
