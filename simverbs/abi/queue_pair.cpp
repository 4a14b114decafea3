// Queue pairs: creating, modifying, querying, destroying. Posting is in post.cpp.
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include <infiniband/verbs.h>

#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/objects.hpp"

namespace simverbs::abi {
namespace {

AddressVector to_address_vector(const ibv_ah_attr& attr) {
    AddressVector path;
    std::memcpy(path.dgid.data(), attr.grh.dgid.raw, path.dgid.size());
    path.flow_label = attr.grh.flow_label;
    path.sgid_index = attr.grh.sgid_index;
    path.hop_limit = attr.grh.hop_limit;
    path.traffic_class = attr.grh.traffic_class;
    path.dlid = attr.dlid;
    path.sl = attr.sl;
    path.src_path_bits = attr.src_path_bits;
    path.static_rate = attr.static_rate;
    path.is_global = attr.is_global != 0;
    path.port = attr.port_num;
    return path;
}

ibv_ah_attr to_ah_attr(const AddressVector& path) {
    ibv_ah_attr attr{};
    std::memcpy(attr.grh.dgid.raw, path.dgid.data(), path.dgid.size());
    attr.grh.flow_label = path.flow_label;
    attr.grh.sgid_index = path.sgid_index;
    attr.grh.hop_limit = path.hop_limit;
    attr.grh.traffic_class = path.traffic_class;
    attr.dlid = path.dlid;
    attr.sl = path.sl;
    attr.src_path_bits = path.src_path_bits;
    attr.static_rate = path.static_rate;
    attr.is_global = path.is_global ? 1 : 0;
    attr.port_num = path.port;
    return attr;
}

QpValues to_values(const ibv_qp_attr& attr) {
    QpValues values;
    values.state = static_cast<std::uint32_t>(attr.qp_state);
    values.current_state = static_cast<std::uint32_t>(attr.cur_qp_state);
    values.path_mtu = static_cast<std::uint32_t>(attr.path_mtu);
    values.path_mig_state = static_cast<std::uint32_t>(attr.path_mig_state);
    values.qkey = attr.qkey;
    values.rq_psn = attr.rq_psn;
    values.sq_psn = attr.sq_psn;
    values.dest_qpn = attr.dest_qp_num;
    values.access = attr.qp_access_flags;
    values.pkey_index = attr.pkey_index;
    values.port = attr.port_num;
    values.timeout = attr.timeout;
    values.retry_count = attr.retry_cnt;
    values.rnr_retry = attr.rnr_retry;
    values.min_rnr_timer = attr.min_rnr_timer;
    values.max_rd_atomic = attr.max_rd_atomic;
    values.max_dest_rd_atomic = attr.max_dest_rd_atomic;
    values.en_sqd_async_notify = attr.en_sqd_async_notify;
    values.path = to_address_vector(attr.ah_attr);
    return values;
}

ibv_qp_cap to_cap(const QpCapacity& capacity) {
    ibv_qp_cap cap{};
    cap.max_send_wr = capacity.send_requests;
    cap.max_recv_wr = capacity.receive_requests;
    cap.max_send_sge = capacity.send_segments;
    cap.max_recv_sge = capacity.receive_segments;
    cap.max_inline_data = capacity.inline_bytes;
    return cap;
}

QpCapacity to_capacity(const ibv_qp_cap& cap) {
    QpCapacity capacity;
    capacity.send_requests = cap.max_send_wr;
    capacity.receive_requests = cap.max_recv_wr;
    capacity.send_segments = cap.max_send_sge;
    capacity.receive_segments = cap.max_recv_sge;
    capacity.inline_bytes = cap.max_inline_data;
    return capacity;
}

ibv_qp_attr to_qp_attr(const QueryQpReply& reply) {
    const QpValues& values = reply.values;
    ibv_qp_attr attr{};
    attr.qp_state = static_cast<ibv_qp_state>(values.state);
    attr.cur_qp_state = static_cast<ibv_qp_state>(values.current_state);
    attr.path_mtu = static_cast<ibv_mtu>(values.path_mtu);
    attr.path_mig_state = IBV_MIG_MIGRATED;
    attr.qkey = values.qkey;
    attr.rq_psn = values.rq_psn;
    attr.sq_psn = values.sq_psn;
    attr.dest_qp_num = values.dest_qpn;
    attr.qp_access_flags = values.access;
    attr.cap = to_cap(reply.capacity);
    attr.ah_attr = to_ah_attr(values.path);
    attr.pkey_index = values.pkey_index;
    attr.sq_draining = reply.draining ? 1 : 0;
    attr.max_rd_atomic = values.max_rd_atomic;
    attr.max_dest_rd_atomic = values.max_dest_rd_atomic;
    attr.min_rnr_timer = values.min_rnr_timer;
    attr.port_num = values.port;
    attr.timeout = values.timeout;
    attr.retry_cnt = values.retry_count;
    attr.rnr_retry = values.rnr_retry;
    return attr;
}

int fill_command(const ibv_qp_init_attr& init, CreateQp& command) {
    if (init.send_cq == nullptr || init.recv_cq == nullptr) {
        return EINVAL;
    }
    const ServiceProperties* service = find_service(static_cast<std::uint32_t>(init.qp_type));
    if (service == nullptr) {
        return init.qp_type == IBV_QPT_DRIVER ? EOPNOTSUPP : EINVAL;
    }
    if (init.srq != nullptr) {
        return EOPNOTSUPP;
    }
    command.service = service->service;
    command.send_cq = init.send_cq->handle;
    command.receive_cq = init.recv_cq->handle;
    command.capacity = to_capacity(init.cap);
    return 0;
}

void fill_handle(QueuePair& object, ibv_pd& pd, const ibv_qp_init_attr& init,
                 const CreateQpReply& reply) {
    ibv_qp& qp = *object.c_handle();
    qp.context = pd.context;
    qp.qp_context = init.qp_context;
    qp.pd = &pd;
    qp.send_cq = init.send_cq;
    qp.recv_cq = init.recv_cq;
    qp.handle = reply.handle;
    qp.qp_num = reply.qpn;
    qp.state = IBV_QPS_RESET;
    qp.qp_type = init.qp_type;
    pthread_mutex_init(&qp.mutex, nullptr);
    pthread_cond_init(&qp.cond, nullptr);
    object.signals_all = init.sq_sig_all != 0;
    object.service = find_service(static_cast<std::uint32_t>(init.qp_type));
    if (as_object(&pd).threads != nullptr) {
        object.queues.use_from_one_thread();
    }
}

}  // namespace

SIMVERBS_ABI ibv_qp* simverbs_abi_ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
    Context& context = as_object(pd->context);
    CreateQp command;
    command.pd = pd->handle;
    CreateQpReply reply;
    int descriptor = -1;
    int error = fill_command(*init, command);
    if (error == 0) {
        error = context.execute(command, reply, descriptor);
    }
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    std::byte* ring = context.channel().map_ring(reply.ring, descriptor);
    if (ring == nullptr) {
        errno = ENOMEM;
        return nullptr;
    }
    auto* qp =
        new QueuePair(context, reply, ring, as_object(init->send_cq), as_object(init->recv_cq));
    fill_handle(*qp, *pd, *init, reply);
    const ibv_qp_cap asked = std::exchange(init->cap, to_cap(reply.capacity));
    if (!context.personality().create_returns_rounded) {
        init->cap.max_send_wr = asked.max_send_wr;
        init->cap.max_recv_wr = asked.max_recv_wr;
    }
    const std::lock_guard lock(context.lock());
    context.qps[reply.handle] = qp;
    return qp->c_handle();
}

SIMVERBS_ABI int simverbs_abi_ibv_modify_qp(ibv_qp* handle, ibv_qp_attr* attr, int attr_mask) {
    QueuePair& qp = as_object(handle);
    ModifyQp command;
    command.handle = handle->handle;
    command.mask = static_cast<std::uint32_t>(attr_mask);
    command.values = to_values(*attr);
    if ((attr_mask & IBV_QP_STATE) != 0 && attr->qp_state == IBV_QPS_ERR) {
        qp.queues.publish_sends();
    }
    HandleReply reply;
    const int error = as_object(handle->context).execute(command, reply);
    if (error != 0) {
        return error;
    }
    if ((attr_mask & IBV_QP_STATE) != 0) {
        handle->state = attr->qp_state;
        if (attr->qp_state == IBV_QPS_RESET) {
            qp.queues.forget_work();
        }
    }
    return 0;
}

SIMVERBS_ABI int simverbs_abi_ibv_query_qp(ibv_qp* handle, ibv_qp_attr* attr, int attr_mask,
                                           ibv_qp_init_attr* init) {
    constexpr int kKnown = (IBV_QP_DEST_QPN << 1) - 1;
    if ((attr_mask & ~kKnown) != 0) {
        return EOPNOTSUPP;
    }
    QueryQp command;
    command.handle = handle->handle;
    QueryQpReply reply;
    const int error = as_object(handle->context).execute(command, reply);
    if (error != 0) {
        return error;
    }
    *attr = to_qp_attr(reply);
    handle->state = attr->qp_state;
    *init = {};
    init->qp_context = handle->qp_context;
    init->send_cq = handle->send_cq;
    init->recv_cq = handle->recv_cq;
    init->srq = handle->srq;
    init->cap = attr->cap;
    init->qp_type = handle->qp_type;
    init->sq_sig_all = as_object(handle).signals_all ? 1 : 0;
    return 0;
}

// Waits until every event that was given out has been acknowledged (ibv_ack_async_event(3)).
SIMVERBS_ABI int simverbs_abi_ibv_destroy_qp(ibv_qp* handle) {
    QueuePair& qp = as_object(handle);
    Context& context = as_object(handle->context);
    DestroyQp command;
    command.handle = handle->handle;
    if (const int error = context.execute(command); error != 0) {
        return error;
    }
    {
        const std::lock_guard lock(context.lock());
        context.qps.erase(handle->handle);
    }
    pthread_mutex_lock(&handle->mutex);
    while (handle->events_completed != qp.async_events.given) {
        pthread_cond_wait(&handle->cond, &handle->mutex);
    }
    pthread_mutex_unlock(&handle->mutex);
    pthread_cond_destroy(&handle->cond);
    pthread_mutex_destroy(&handle->mutex);
    delete &qp;
    return 0;
}

// Enhanced connection establishment is a matter between ends that have more to agree on than these.
SIMVERBS_ABI int simverbs_abi_ibv_query_ece(ibv_qp* /*qp*/, ibv_ece* ece) {
    *ece = {};
    return EOPNOTSUPP;
}

SIMVERBS_ABI int simverbs_abi_ibv_set_ece(ibv_qp* /*qp*/, ibv_ece* /*ece*/) {
    errno = EOPNOTSUPP;
    return EOPNOTSUPP;
}

// Bytes land in order within a message, one packet after the other, in this model.
SIMVERBS_ABI int simverbs_abi_ibv_query_qp_data_in_order(ibv_qp* /*qp*/, ibv_wr_opcode /*op*/,
                                                         std::uint32_t /*flags*/) {
    return 0;
}

}  // namespace simverbs::abi
