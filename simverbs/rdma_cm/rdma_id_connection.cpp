// Commands that send messages of the communication manager.
#include <algorithm>
#include <cerrno>
#include <chrono>

#include "simverbs/rdma_cm/cma_header.hpp"
#include "simverbs/rdma_cm/rdma_cm.hpp"
#include "simverbs/rdma_cm/rdma_id.hpp"

namespace simverbs::rdma_cm {
namespace {

constexpr std::uint8_t kResponseTimeout = 20;  // CMA_CM_RESPONSE_TIMEOUT of Linux
constexpr std::uint8_t kMaxCmRetries = 15;     // CMA_MAX_CM_RETRIES
constexpr std::uint8_t kMaxRetries = 7;
// Linux has 1 << (20 - 8) milliseconds.
constexpr fabric::SimDuration kSidrTimeout = std::chrono::milliseconds(4096);

// Nothing: no queue pair of this type sends a REQ.
std::optional<Service> requesting_service(QpType type) {
    switch (type) {
        case QpType::kRc:
            return Service::kRc;
        case QpType::kUc:
            return Service::kUc;
        case QpType::kXrcIni:
            return Service::kXrcIni;
        case QpType::kUnspecified:
        case QpType::kUd:
        case QpType::kXrcTgt:
            break;
    }
    return std::nullopt;
}

}  // namespace

// Returns what a REQ or SIDR_REQ carries; nothing if it is longer than 255 bytes.
std::optional<cm::PrivateData> RdmaId::with_header(const cm::PrivateData& data) const {
    if (owner_.source.family() == AddressFamily::kInfiniband) {
        return data;
    }
    if (data.size() + kCmaHeaderBytes > UINT8_MAX) {
        return std::nullopt;
    }
    cm::PrivateData bytes(kCmaHeaderBytes);
    write_cma_header(bytes, owner_.source, owner_.destination);
    bytes.insert(bytes.end(), data.begin(), data.end());
    return bytes;
}

// Nothing: the port does not have the GID or the P_Key of the path.
std::optional<cm::Address> RdmaId::cm_address(const PathRecord& path) const {
    const PortInfo* const port = port_info();
    if (port == nullptr) {
        return std::nullopt;
    }
    const std::optional<std::uint16_t> pkey = pkey_index(*port, path.pkey);
    const std::optional<std::uint8_t> gid = gid_index(*port, path.sgid);
    if (!pkey || !gid) {
        return std::nullopt;
    }
    const bool is_ethernet = port->layer == fabric::LinkLayer::kEthernet;
    cm::Address address{.port = local_->port,
                        .remote = {.lid = is_ethernet ? fabric::kNoLid : path.dlid,
                                   .qp = fabric::kGeneralServicesQp,
                                   .qkey = fabric::kWellKnownQkey,
                                   .sl = path.sl,
                                   .pkey_index = *pkey}};
    if (is_ethernet || path.hop_limit > 0) {
        address.remote.global = fabric::GlobalAddress{.gid = path.dgid,
                                                      .gid_index = *gid,
                                                      .hop_limit = path.hop_limit,
                                                      .traffic_class = path.traffic_class,
                                                      .flow_label = path.flow_label};
    }
    return address;
}

int RdmaId::connect(const ConnectionParameters& parameters, const cm::Ece& ece) {
    if (!local_ || !accepts(RdmaCmTrigger::kSendRequest)) {
        return EINVAL;
    }
    qpn_ = parameters.qp_num;
    srq_ = parameters.srq;
    const std::optional<cm::ConnectionId> created =
        host_.create_connection(local_->device, number());
    if (!created) {
        return ENOMEM;
    }
    connection_ = created;
    const int error =
        qp_type_ == QpType::kUd ? send_sidr_req(parameters) : send_req(parameters, ece);
    if (error != 0) {
        connection_.reset();
        host_.destroy_connection(local_->device, *created);
        return error;
    }
    move(RdmaCmTrigger::kSendRequest);
    return 0;
}

int RdmaId::send_req(const ConnectionParameters& parameters, const cm::Ece& ece) {
    const std::optional<Service> service = requesting_service(qp_type_);
    const std::optional<cm::PrivateData> private_data = with_header(parameters.private_data);
    const PathRecord& path = paths_.front();
    const std::optional<cm::Address> address = cm_address(path);
    if (!service || !private_data || !address) {
        return EINVAL;
    }
    return connection()->send_req(
        {.primary = {.path = to_cm_path(path),
                     .packet_life_time = path.life_time,
                     .address = *address},
         .service_id = service_id(owner_.destination),
         .service = *service,
         .qpn = qpn_,
         .starting_psn = starting_psn_,
         .path_mtu = path.mtu,
         .pkey = path.pkey,
         .responder_resources = parameters.responder_resources,
         .initiator_depth = parameters.initiator_depth,
         .remote_cm_response_timeout = kResponseTimeout,
         .local_cm_response_timeout = kResponseTimeout,
         .retry_count = std::min(kMaxRetries, parameters.retry_count),
         .rnr_retry_count = std::min(kMaxRetries, parameters.rnr_retry_count),
         .max_cm_retries = kMaxCmRetries,
         .end_to_end_flow_control = (parameters.flow_control & 1) != 0,
         .srq = srq_ != 0,
         .ece = ece,
         .private_data = *private_data});
}

int RdmaId::send_sidr_req(const ConnectionParameters& parameters) {
    const std::optional<cm::PrivateData> private_data = with_header(parameters.private_data);
    const std::optional<cm::Address> address = cm_address(paths_.front());
    if (!private_data || !address) {
        return EINVAL;
    }
    return connection()->send_sidr_req({.address = *address,
                                        .service_id = service_id(owner_.destination),
                                        .pkey = paths_.front().pkey,
                                        .timeout = kSidrTimeout,
                                        .max_cm_retries = kMaxCmRetries,
                                        .private_data = *private_data});
}

int RdmaId::accept(const ConnectionParameters* parameters, const cm::Ece& ece) {
    if (state_ != RdmaCmState::kConnect) {
        return EINVAL;
    }
    if (parameters != nullptr) {
        qpn_ = parameters->qp_num;
        srq_ = parameters->srq;
    }
    cm::Connection* const subject = connection();
    const int error =
        subject == nullptr ? EINVAL
        : qp_type_ == QpType::kUd
            ? send_sidr_rep(parameters == nullptr ? ConnectionParameters{} : *parameters, ece)
        : parameters == nullptr ? subject->send_rtu({})
                                : send_rep(*parameters, ece);
    if (error != 0) {
        static_cast<void>(reject({}, RejectReason::kConsumerDefined));
    }
    return error;
}

int RdmaId::send_rep(const ConnectionParameters& parameters, const cm::Ece& ece) {
    return connection()->send_rep(
        {.qpn = qpn_,
         .starting_psn = starting_psn_,
         .responder_resources = parameters.responder_resources,
         .initiator_depth = parameters.initiator_depth,
         .rnr_retry_count = std::min(kMaxRetries, parameters.rnr_retry_count),
         .end_to_end_flow_control = (parameters.flow_control & 1) != 0,
         .srq = srq_ != 0,
         .ece = ece,
         .private_data = parameters.private_data});
}

int RdmaId::send_sidr_rep(const ConnectionParameters& parameters, const cm::Ece& ece) {
    const int error = parameters.qkey != 0 ? set_qkey(parameters.qkey) : set_default_qkey();
    if (error != 0) {
        return error;
    }
    return connection()->send_sidr_rep(
        {.qpn = qpn_, .qkey = qkey_, .ece = ece, .private_data = parameters.private_data});
}

int RdmaId::reject(const cm::PrivateData& private_data, RejectReason reason) {
    cm::Connection* const subject = connection();
    if (subject == nullptr) {
        return EINVAL;
    }
    return qp_type_ == QpType::kUd ? subject->send_sidr_rep({.status = SidrStatus::kRejected,
                                                             .private_data = private_data})
                                   : subject->send_rej(reason, {}, private_data);
}

// Begins to disconnect, or answers the peer that has begun. In any other state nothing happens.
int RdmaId::disconnect() {
    cm::Connection* const subject = connection();
    if (subject == nullptr) {
        return EINVAL;
    }
    if (subject->send_dreq({}) != 0) {
        static_cast<void>(subject->send_drep({}));
    }
    return 0;
}

int RdmaId::notify(std::uint32_t event) {
    constexpr std::uint32_t kCommEstablished = 4;
    constexpr std::uint32_t kPathMigrated = 5;
    cm::Connection* const subject = connection();
    if (subject == nullptr) {
        return EINVAL;
    }
    if (event == kCommEstablished) {
        const int error = subject->establish();
        if (error == 0 && state_ == RdmaCmState::kConnect) {
            report(RdmaEventType::kEstablished);
        }
        return error;
    }
    if (event != kPathMigrated || paths_.size() < 2) {
        return EINVAL;
    }
    const std::optional<cm::Address> address = cm_address(paths_.back());
    const int error = address ? subject->migrate(*address) : EINVAL;
    if (error == 0) {
        std::swap(paths_.front(), paths_.back());
    }
    return error;
}

}  // namespace simverbs::rdma_cm
