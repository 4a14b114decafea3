#include "simverbs/rdma_cm/connection_request.hpp"

namespace simverbs::rdma_cm {
namespace {

const cm::SidrReq& as_sidr_req(const cm::CmEvent& request) {
    return std::get<cm::SidrReq>(*request.message);
}

}  // namespace

const cm::Req* as_req(const cm::CmEvent& request) {
    return std::get_if<cm::Req>(&*request.message);
}

std::uint64_t service_id_of(const cm::CmEvent& request) {
    const cm::Req* const req = as_req(request);
    return req != nullptr ? req->service_id : as_sidr_req(request).service_id;
}

std::uint16_t pkey_of(const cm::CmEvent& request) {
    const cm::Req* const req = as_req(request);
    return req != nullptr ? req->pkey : as_sidr_req(request).pkey;
}

const cm::PrivateData& private_data_of(const cm::CmEvent& request) {
    const cm::Req* const req = as_req(request);
    return req != nullptr ? req->private_data : as_sidr_req(request).private_data;
}

QpType accepting_type(const cm::CmEvent& request) {
    const cm::Req* const req = as_req(request);
    if (req == nullptr) {
        return QpType::kUd;
    }
    const std::optional<Service> service = cm::accepted_service(*req);
    return service == Service::kUc       ? QpType::kUc
           : service == Service::kXrcTgt ? QpType::kXrcTgt
                                         : QpType::kRc;
}

RdmaEvent request_event(const cm::CmEvent& request, std::size_t header_bytes) {
    const cm::PrivateData& all = private_data_of(request);
    const cm::PrivateData private_data(all.begin() + static_cast<std::ptrdiff_t>(header_bytes),
                                       all.end());
    RdmaEvent event{.type = RdmaEventType::kConnectRequest};
    const cm::Req* const req = as_req(request);
    if (req == nullptr) {
        event.datagram.private_data = private_data;
        return event;
    }
    event.ece = req->ece;
    // The peer initiates what this side responds to.
    event.connection = {
        .private_data = private_data,
        .responder_resources = req->initiator_depth,
        .initiator_depth = req->responder_resources,
        .flow_control = static_cast<std::uint8_t>(req->end_to_end_flow_control ? 1 : 0),
        .retry_count = req->retry_count,
        .rnr_retry_count = req->rnr_retry_count,
        .srq = static_cast<std::uint8_t>(req->srq ? 1 : 0),
        .qp_num = req->local_qpn};
    return event;
}

}  // namespace simverbs::rdma_cm
