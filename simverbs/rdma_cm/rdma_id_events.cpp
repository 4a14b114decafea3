// Events of the communication manager, translated into those of rdma_cm.
#include <algorithm>
#include <cerrno>

#include "fabric/core/assert.hpp"

#include "simverbs/rdma_cm/cma_header.hpp"
#include "simverbs/rdma_cm/connection_request.hpp"
#include "simverbs/rdma_cm/rdma_cm.hpp"
#include "simverbs/rdma_cm/rdma_id.hpp"

namespace simverbs::rdma_cm {

using cm::CmEvent;
using cm::EventType;

namespace {

// An MRA is only sent if the peer repeats its message, and asks for 4.096 us x 2^24 = 69 s.
constexpr std::uint8_t kMraTimeout = 24;

}  // namespace

// Compares the header of a request with the address that this id is bound to
// (cma_match_private_data of Linux).
bool RdmaId::takes(const CmEvent& request) const {
    const SocketAddress& own = owner_.source;
    if ((own.is_any() && !owner_.family_only) || own.family() == AddressFamily::kInfiniband) {
        return true;
    }
    const CmaHeader header = read_cma_header(private_data_of(request));
    return header.destination.family() == own.family() &&
           (own.is_any() || header.destination.has_same_address(own));
}

// Takes over addresses and paths of the request, and reports it.
void RdmaId::start_as_request(const RdmaId& listener, const LocalPort& local,
                              const CmEvent& event) {
    move(RdmaCmTrigger::kRequest);
    connection_ = event.connection;
    local_ = local;
    const cm::Req* const req = as_req(event);
    const std::uint64_t service = service_id_of(event);
    if (req != nullptr) {
        const cm::QpParameters& qp = connection()->qp_parameters();
        qp_type_ = accepting_type(event);
        paths_ = {from_cm_path(qp.primary, qp, service)};
        if (qp.alternate) {
            paths_.push_back(from_cm_path(*qp.alternate, qp, service));
        }
        dgid_ = paths_.front().dgid;
    }
    if (listener.source().family() != AddressFamily::kInfiniband) {
        const CmaHeader header = read_cma_header(private_data_of(event));
        owner_.source = header.destination;
        owner_.source.set_port(port_of(service));
        owner_.destination = header.source;
        return;
    }
    if (req == nullptr) {
        owner_.source = listener.source();
        owner_.destination = SocketAddress(AddressFamily::kInfiniband);
    } else {
        const PathRecord& path = paths_.front();
        owner_.source = SocketAddress::infiniband(path.sgid, path.pkey, service, 0);
        owner_.destination = SocketAddress::infiniband(path.dgid, path.pkey, 0, 0);
        owner_.source.set_flow_label(path.flow_label);
        owner_.destination.set_flow_label(path.flow_label);
    }
    owner_.source.set_service_id(service, ~std::uint64_t{0});
}

void RdmaId::request_reported() {
    if (qp_type_ != QpType::kUd) {
        static_cast<void>(connection()->send_mra(kMraTimeout, {}, cm::MraMoment::kOnRepetition));
    }
}

void RdmaId::cm_event(const CmEvent& event) {
    const RdmaCmState expected =
        event.type == EventType::kTimewaitExit ? RdmaCmState::kDisconnect : RdmaCmState::kConnect;
    if (state_ != expected) {
        return;
    }
    RdmaEvent reported;
    switch (event.type) {
        case EventType::kReqError:
        case EventType::kRepError:
        case EventType::kSidrReqError:
            reported.type = RdmaEventType::kUnreachable;
            reported.status = -ETIMEDOUT;
            break;
        case EventType::kRepReceived:
        case EventType::kRejReceived:
            connected_event(event, reported);
            break;
        case EventType::kRtuReceived:
            reported.type = RdmaEventType::kEstablished;
            break;
        case EventType::kDreqError:
            reported.status = -ETIMEDOUT;
            [[fallthrough]];
        case EventType::kDreqReceived:
        case EventType::kDrepReceived:
            move(RdmaCmTrigger::kDisconnected);
            reported.type = RdmaEventType::kDisconnected;
            break;
        case EventType::kTimewaitExit:
            reported.type = RdmaEventType::kTimewaitExit;
            break;
        case EventType::kSidrRepReceived:
            sidr_reply(std::get<cm::SidrRep>(*event.message), reported);
            break;
        case EventType::kReqReceived:
        case EventType::kSidrReqReceived:
        case EventType::kUserEstablished:
        case EventType::kMraReceived:
        case EventType::kLapError:
        case EventType::kLapReceived:
        case EventType::kAprReceived:
            return;
    }
    host_.user().rdma_event(*this, reported);
}

void RdmaId::connected_event(const CmEvent& event, RdmaEvent& reported) {
    ConnectionParameters& given = reported.connection;
    if (const auto* const reject = std::get_if<cm::Rej>(&*event.message)) {
        reported.type = RdmaEventType::kRejected;
        reported.status = static_cast<int>(reject->reason);
        given.private_data = reject->private_data;
        return;
    }
    const cm::Rep& reply = std::get<cm::Rep>(*event.message);
    static_cast<void>(connection()->send_mra(kMraTimeout, {}, cm::MraMoment::kOnRepetition));
    reported.type = RdmaEventType::kConnectResponse;
    reported.ece = reply.ece;
    // Both sides' terms, exchanged as ib_cm does it.
    given = {.private_data = reply.private_data,
             .responder_resources = reply.initiator_depth,
             .initiator_depth = reply.responder_resources,
             .flow_control = static_cast<std::uint8_t>(reply.end_to_end_flow_control ? 1 : 0),
             .rnr_retry_count = reply.rnr_retry_count,
             .srq = static_cast<std::uint8_t>(reply.srq ? 1 : 0),
             .qp_num = connection()->qpn_of(reply)};
}

void RdmaId::sidr_reply(const cm::SidrRep& reply, RdmaEvent& reported) {
    reported.datagram.private_data = reply.private_data;
    if (reply.status != SidrStatus::kValid) {
        reported.type = RdmaEventType::kUnreachable;
        reported.status = static_cast<int>(reply.status);
        return;
    }
    if (const int error = set_qkey(reply.qkey); error != 0) {
        reported.type = RdmaEventType::kAddrError;
        reported.status = -error;
        return;
    }
    const PathRecord& path = paths_.front();
    const PortInfo* const port = port_info();
    SIMVERBS_ASSERT(port != nullptr, "id {} is connected through no port", owner_.id);
    reported.type = RdmaEventType::kEstablished;
    reported.datagram.address =
        to_address_vector(path, port->layer, port->number, gid_index(*port, path.sgid).value_or(0));
    reported.datagram.qp_num = reply.qpn;
    reported.datagram.qkey = reply.qkey;
}

}  // namespace simverbs::rdma_cm
