#include "scenarios/engine/cm_hosts.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "scenarios/engine/world.hpp"

namespace scenarios {

namespace {

constexpr std::uint64_t kDefaultDepth = 16;  // READs and atomics, as without rdma_cm
constexpr std::uint64_t kDefaultRetries = 7;

}  // namespace

CmHosts::OpenFile::OpenFile(Host& of) : host(&of), file(of.name) {}

CmFile& CmHosts::file_of(Host& host) {
    return files_.try_emplace(host.name, host).first->second.file;
}

CmHosts::Id& CmHosts::make_id(Host& host, End* end) {
    const std::uint64_t name = ++last_name_;
    Id& id = ids_[name];
    id.name = name;
    id.host = &host;
    id.end = end;
    if (end != nullptr) {
        of_end_[end] = name;
    }
    return id;
}

CmHosts::Id* CmHosts::find_id(const End& end) {
    const auto found = of_end_.find(&end);
    return found == of_end_.end() ? nullptr : &ids_.at(found->second);
}

const CmOutcome* CmHosts::outcome(const End& end) const {
    const auto found = of_end_.find(&end);
    const Id* const id = found == of_end_.end() ? nullptr : &ids_.at(found->second);
    return id == nullptr || !id->outcome ? nullptr : &*id->outcome;
}

bool CmHosts::has_request(const End& end) const {
    return std::ranges::find(requests_, &end, &Request::end) != requests_.end();
}

std::optional<CmHosts::Request> CmHosts::take_request(const End& end) {
    const auto found = std::ranges::find(requests_, &end, &Request::end);
    if (found == requests_.end()) {
        return std::nullopt;
    }
    const Request taken = *found;
    requests_.erase(found);
    return taken;
}

CmAnswer CmHosts::listen(Host& host, ibv_qp_type type, std::uint16_t port, std::uint32_t backlog) {
    CmFile& file = file_of(host);
    Id& id = make_id(host, nullptr);
    if (const int error = file.create_id(id.name, type, id.number); error != 0) {
        return {"rdma_create_id", error};
    }
    // The address "::" takes requests to addresses of both families.
    if (const int error = file.bind(id.number, *cm_address("::", port)); error != 0) {
        return {"rdma_bind_addr", error};
    }
    return {"rdma_listen", file.listen(id.number, backlog)};
}

CmAnswer CmHosts::begin(End& end, const CmDestination& to, bool joins) {
    destroy_id(end);
    end.group.reset();
    if (const int error = end.is_used ? World::reset(end) : 0; error != 0) {
        return {"ibv_modify_qp", error};
    }
    CmFile& file = file_of(*end.host);
    Id& id = make_id(*end.host, &end);
    id.to = to;
    id.joins = joins;
    const auto destination = cm_address(to.address, to.port);
    if (!destination) {
        return {"rdma_getaddrinfo", EINVAL};
    }
    if (const int error = file.create_id(id.name, end.type, id.number); error != 0) {
        return {"rdma_create_id", error};
    }
    if (end.say("timeout").value() != nullptr) {
        const auto code = static_cast<std::uint8_t>(end.number("timeout", 0));
        if (const int error = file.set_ack_timeout(id.number, code); error != 0) {
            return {"rdma_set_option", error};
        }
    }
    return {"rdma_resolve_addr", file.resolve_addr(id.number, *destination, to.timeout_ms)};
}

CmAnswer CmHosts::connect(End& end, const CmDestination& to) {
    return begin(end, to, false);
}

CmAnswer CmHosts::join(End& end, const CmDestination& group) {
    return begin(end, group, true);
}

CmAnswer CmHosts::accept(End& end, const std::string& private_data) {
    const auto request = take_request(end);
    if (!request) {
        return {"rdma_accept", EINVAL};
    }
    destroy_id(end);
    if (const int error = end.is_used ? World::reset(end) : 0; error != 0) {
        return {"ibv_modify_qp", error};
    }
    Id& id = make_id(*end.host, &end);
    id.number = request->event.id;
    rdma_ucm_conn_param terms = terms_of(end, private_data);
    if (!end.is_datagram()) {
        const rdma_ucm_conn_param& asked = request->event.param.conn;
        terms.responder_resources = std::min(terms.responder_resources, asked.responder_resources);
        terms.initiator_depth = std::min(terms.initiator_depth, asked.initiator_depth);
    }
    int error = prepare(id);
    if (error == 0 && !end.is_datagram()) {
        error = modify(id, IBV_QPS_RTR, &terms);
        error = error != 0 ? error : modify(id, IBV_QPS_RTS, &terms);
    }
    if (error == 0) {
        error = file_of(*end.host).accept(id.number, id.name, &terms);
    }
    if (error != 0) {
        fail_queue_pair(id);
    }
    return {"rdma_accept", error};
}

CmAnswer CmHosts::reject(End& end, std::uint8_t reason, const std::string& private_data) {
    const auto request = take_request(end);
    if (!request) {
        return {"rdma_reject", EINVAL};
    }
    CmFile& file = file_of(*end.host);
    const int error = file.reject(request->event.id, reason, private_data);
    file.destroy_id(request->event.id);
    return {"rdma_reject", error};
}

// As librdmacm: the queue pair goes to ERR first.
CmAnswer CmHosts::disconnect(End& end) {
    Id* const id = find_id(end);
    if (id == nullptr) {
        return {"rdma_disconnect", EINVAL};
    }
    fail_queue_pair(*id);
    return {"rdma_disconnect", file_of(*end.host).disconnect(id->number)};
}

CmAnswer CmHosts::leave(End& end) {
    Id* const id = find_id(end);
    if (id == nullptr || !id->membership) {
        return {"rdma_leave_multicast", EADDRNOTAVAIL};
    }
    if (end.qp != nullptr) {
        ibv_detach_mcast(end.qp, &id->group, id->group_lid);
    }
    const std::uint32_t membership = *std::exchange(id->membership, std::nullopt);
    return {"rdma_leave_multicast", file_of(*end.host).leave(membership)};
}

CmAnswer CmHosts::destroy_id(End& end) {
    Id* const id = find_id(end);
    if (id == nullptr) {
        return {"rdma_destroy_id", EINVAL};
    }
    const int error = file_of(*end.host).destroy_id(id->number);
    ids_.erase(id->name);
    of_end_.erase(&end);
    return {"rdma_destroy_id", error};
}

rdma_ucm_conn_param CmHosts::terms_of(const End& end, const std::string& private_data) {
    rdma_ucm_conn_param terms{};
    terms.qp_num = end.qpn;
    terms.private_data_len =
        static_cast<std::uint8_t>(std::min(private_data.size(), CmFile::kMostPrivateData));
    std::memcpy(terms.private_data, private_data.data(), terms.private_data_len);
    terms.srq = end.shared == nullptr ? 0 : 1;
    terms.responder_resources =
        static_cast<std::uint8_t>(end.number("responder_resources", kDefaultDepth));
    terms.initiator_depth = static_cast<std::uint8_t>(end.number("initiator_depth", kDefaultDepth));
    terms.retry_count = static_cast<std::uint8_t>(end.number("retries", kDefaultRetries));
    terms.rnr_retry_count = static_cast<std::uint8_t>(end.number("rnr_retries", kDefaultRetries));
    return terms;
}

// A queue pair that is attached to a group cannot be destroyed.
void CmHosts::close() {
    for (const auto& [end, name] : of_end_) {
        if (const Id* const id = find_id(*end); id != nullptr && id->membership && end->qp) {
            ibv_detach_mcast(end->qp, &id->group, id->group_lid);
        }
    }
    files_.clear();
    ids_.clear();
    of_end_.clear();
    requests_.clear();
}

}  // namespace scenarios
