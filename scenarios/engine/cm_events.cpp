// Events of rdma_cm, and what librdmacm and the program of an end do because of them.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <rdma/ib_user_verbs.h>

#include "scenarios/engine/cm_hosts.hpp"
#include "scenarios/engine/world.hpp"

extern "C" {
// Declared in <infiniband/marshall.h>, which not every distribution installs.
void ibv_copy_ah_attr_from_kern(ibv_ah_attr* to, ib_uverbs_ah_attr* from);
}

namespace scenarios {

using simverbs::RdmaEventType;

namespace {

// Messages have it padded with zeros.
std::string private_data_of(const std::uint8_t* bytes, std::uint8_t length) {
    std::string text(bytes, bytes + length);
    text.erase(text.find_last_not_of('\0') + 1);
    return text;
}

std::string private_data_of(const rdma_ucm_event_resp& event, bool datagram) {
    return datagram
               ? private_data_of(event.param.ud.private_data, event.param.ud.private_data_len)
               : private_data_of(event.param.conn.private_data, event.param.conn.private_data_len);
}

// Events by which a connect, accept or join ends.
bool is_outcome(RdmaEventType event) {
    switch (event) {
        case RdmaEventType::kAddrResolved:
        case RdmaEventType::kRouteResolved:
        case RdmaEventType::kConnectRequest:
        case RdmaEventType::kConnectResponse:
        case RdmaEventType::kAddrChange:
        case RdmaEventType::kTimewaitExit:
            return false;
        default:
            return true;
    }
}

}  // namespace

bool CmHosts::read(std::int64_t now) {
    bool any = false;
    for (auto& [name, open] : files_) {
        while (!open.host->programs_stopped) {
            const auto event = open.file.next_event();
            if (!event) {
                break;
            }
            any = true;
            if (static_cast<RdmaEventType>(event->event) == RdmaEventType::kConnectRequest) {
                note_request(*open.host, *event, now);
            } else {
                take(*event, now);
            }
        }
    }
    return any;
}

// A REQ names the queue pair of its sender. A SIDR_REQ names none: it is of an end whose peer waits
// for the answer.
const End* CmHosts::find_asked(Host& host, const rdma_ucm_event_resp& request) {
    for (const auto& [name, end] : host.ends) {
        if (!end.is_by_cm) {
            continue;
        }
        const Id* const sender = find_id(*end.peer);
        const bool has_sent = sender != nullptr && !sender->joins && !sender->outcome;
        if (end.is_datagram() ? has_sent : end.peer->qpn == request.param.conn.qp_num) {
            return &end;
        }
    }
    return nullptr;
}

void CmHosts::note_request(Host& host, const rdma_ucm_event_resp& event, std::int64_t now) {
    const End* const end = find_asked(host, event);
    requests_.push_back({&host, end, event});
    events_.push_back({now, host.name, static_cast<int>(event.event),
                       static_cast<int>(event.status), end == nullptr ? "" : end->connection,
                       private_data_of(event, end != nullptr && end->is_datagram())});
}

void CmHosts::take(const rdma_ucm_event_resp& event, std::int64_t now) {
    const auto found = ids_.find(event.uid);
    if (found == ids_.end()) {
        return;
    }
    Id& id = found->second;
    const auto type = static_cast<RdmaEventType>(event.event);
    if (id.has_failed &&
        (type == RdmaEventType::kRejected || type == RdmaEventType::kDisconnected)) {
        return;
    }
    CmEventSeen seen{now,
                     id.host->name,
                     static_cast<int>(event.event),
                     static_cast<int>(event.status),
                     id.end == nullptr ? "" : id.end->connection,
                     id.end == nullptr ? "" : private_data_of(event, id.end->is_datagram())};
    const CmAnswer answer = id.end == nullptr ? CmAnswer{} : follow(id, seen, event);
    events_.push_back(seen);
    if (id.end == nullptr || id.outcome) {
        return;
    }
    if (answer.error != 0) {
        id.outcome = CmOutcome{std::nullopt, answer};
    } else if (is_outcome(static_cast<RdmaEventType>(seen.event))) {
        id.outcome = CmOutcome{seen};
    }
}

CmAnswer CmHosts::follow(Id& id, CmEventSeen& seen, const rdma_ucm_event_resp& event) {
    switch (static_cast<RdmaEventType>(event.event)) {
        case RdmaEventType::kAddrResolved:
            return go_on_from_address(id);
        case RdmaEventType::kRouteResolved:
            return send_request(id);
        case RdmaEventType::kConnectResponse:
            id.has_failed = complete(id) != 0;
            seen.event = static_cast<int>(id.has_failed ? RdmaEventType::kConnectError
                                                        : RdmaEventType::kEstablished);
            seen.status = id.has_failed ? -1 : 0;
            return {};
        case RdmaEventType::kEstablished:
            return id.end->is_datagram() ? send_to(id, event.param.ud.ah_attr) : CmAnswer{};
        case RdmaEventType::kMulticastJoin:
            return attach(id, event.param.ud);
        case RdmaEventType::kRejected:
            fail_queue_pair(id);
            return {};
        default:
            return {};
    }
}

CmAnswer CmHosts::go_on_from_address(Id& id) {
    CmFile& file = file_of(*id.host);
    if (!id.joins) {
        return {"rdma_resolve_route", file.resolve_route(id.number, id.to.timeout_ms)};
    }
    if (const int error = prepare(id); error != 0) {
        return {"rdma_create_qp", error};
    }
    std::uint32_t membership = 0;
    const int error =
        file.join(id.number, id.name, *cm_address(id.to.address, id.to.port), membership);
    if (error == 0) {
        id.membership = membership;
    }
    return {"rdma_join_multicast", error};
}

CmAnswer CmHosts::send_request(Id& id) {
    if (const int error = prepare(id); error != 0) {
        return {"rdma_create_qp", error};
    }
    return {"rdma_connect",
            file_of(*id.host).connect(id.number, terms_of(*id.end, id.to.private_data))};
}

// The reply has come: ucma_process_conn_resp of librdmacm.
int CmHosts::complete(Id& id) {
    int error = modify(id, IBV_QPS_RTR);
    error = error != 0 ? error : modify(id, IBV_QPS_RTS);
    error = error != 0 ? error : file_of(*id.host).accept(id.number, id.name, nullptr);
    if (error != 0) {
        fail_queue_pair(id);
    }
    return error;
}

// From now on datagrams of the end go to that address.
CmAnswer CmHosts::send_to(const Id& id, ib_uverbs_ah_attr address) {
    ibv_ah_attr attributes{};
    ibv_copy_ah_attr_from_kern(&attributes, &address);
    if (id.end->ah != nullptr) {
        ibv_destroy_ah(id.end->ah);
    }
    id.end->ah = ibv_create_ah(id.host->pd, &attributes);
    return {"ibv_create_ah", id.end->ah == nullptr ? errno : 0};
}

CmAnswer CmHosts::attach(Id& id, const rdma_ucm_ud_param& member) {
    if (id.end->qp == nullptr) {
        return {"ibv_attach_mcast", EINVAL};
    }
    std::memcpy(&id.group, &member.ah_attr.grh.dgid, sizeof id.group);
    id.group_lid = member.ah_attr.dlid;
    if (const int error = ibv_attach_mcast(id.end->qp, &id.group, id.group_lid); error != 0) {
        return {"ibv_attach_mcast", error};
    }
    id.end->group = id.group;
    return send_to(id, member.ah_attr);
}

std::vector<End*> CmHosts::members_of(const ibv_gid& group) const {
    std::vector<End*> members;
    for (const auto& [name, id] : ids_) {
        if (id.membership && id.end->group &&
            std::memcmp(&*id.end->group, &group, sizeof group) == 0) {
            members.push_back(id.end);
        }
    }
    return members;
}

int CmHosts::prepare(Id& id) {
    id.end->is_used = true;
    int error = modify(id, IBV_QPS_INIT);
    if (error != 0 || !id.end->is_datagram()) {
        return error;
    }
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    error = ibv_modify_qp(id.end->qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    return error != 0 ? error : ibv_modify_qp(id.end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

int CmHosts::modify(Id& id, ibv_qp_state to, const rdma_ucm_conn_param* terms) {
    ibv_qp_attr attr{};
    int mask = 0;
    if (id.end->qp == nullptr) {
        return EINVAL;
    }
    if (const int error = file_of(*id.host).qp_attributes(id.number, to, attr, mask); error != 0) {
        return error;
    }
    if (terms != nullptr) {
        attr.max_dest_rd_atomic = terms->responder_resources;
        attr.max_rd_atomic = terms->initiator_depth;
    }
    if (id.end->is_datagram()) {
        id.end->qkey = attr.qkey;
    }
    return ibv_modify_qp(id.end->qp, &attr, mask);
}

void CmHosts::fail_queue_pair(const Id& id) {
    if (id.end->qp != nullptr) {
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_ERR;
        ibv_modify_qp(id.end->qp, &attr, IBV_QP_STATE);
    }
}

}  // namespace scenarios
