// Queue pairs: creating, modifying, querying, destroying. Posting is in post.cpp.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include <infiniband/verbs.h>

#include "fabric/core/counted.hpp"

#include "simverbs/abi/address_vector.hpp"
#include "simverbs/abi/destroyed_objects.hpp"
#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/event_acknowledgments.hpp"
#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/misuse.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"
#include "simverbs/abi/refusal_reason.hpp"

namespace simverbs::abi {
namespace {

// A member that the mask does not name may hold anything, also what is no value of its type.
template <class Enum>
std::uint32_t number_in(const Enum& member) {
    std::uint32_t number = 0;
    static_assert(sizeof member == sizeof number);
    std::memcpy(&number, &member, sizeof number);
    return number;
}

QpValues to_values(const ibv_qp_attr& attr) {
    QpValues values;
    values.state = number_in(attr.qp_state);
    values.current_state = number_in(attr.cur_qp_state);
    values.path_mtu = number_in(attr.path_mtu);
    values.path_mig_state = number_in(attr.path_mig_state);
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
    values.alternate = to_address_vector(attr.alt_ah_attr);
    values.alternate.port = attr.alt_port_num;
    values.alternate_pkey_index = attr.alt_pkey_index;
    values.alternate_timeout = attr.alt_timeout;
    values.pacing.rate_kbps = attr.rate_limit;
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
    attr.path_mig_state = static_cast<ibv_mig_state>(values.path_mig_state);
    attr.alt_ah_attr = to_ah_attr(values.alternate);
    attr.alt_pkey_index = values.alternate_pkey_index;
    attr.alt_port_num = values.alternate.port;
    attr.alt_timeout = values.alternate_timeout;
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

ReceiveHash to_hash(const ibv_rx_hash_conf& conf) {
    ReceiveHash hash;
    hash.fields = HashFields::from_bits(conf.rx_hash_fields_mask);
    hash.function = conf.rx_hash_function;
    hash.key_bytes = conf.rx_hash_key_len;
    std::copy_n(conf.rx_hash_key, std::min<std::size_t>(hash.key_bytes, hash.key.size()),
                hash.key.begin());
    return hash;
}

FrameOffloads to_offloads(std::uint32_t create_flags) {
    FrameOffloads offloads;
    const auto add = [create_flags, &offloads](std::uint32_t flag, FrameOffload offload) {
        if ((create_flags & flag) != 0) {
            offloads = offloads | offload;
        }
    };
    add(IBV_QP_CREATE_SCATTER_FCS, FrameOffload::kScatterFcs);
    add(IBV_QP_CREATE_CVLAN_STRIPPING, FrameOffload::kCvlanStripping);
    add(IBV_QP_CREATE_PCI_WRITE_END_PADDING, FrameOffload::kPciWriteEndPadding);
    return offloads;
}

// The device refuses what it finds missing; an object without a handle has none there.
int fill_command(const ibv_qp_init_attr_ex& init, CreateQp& command) {
    const ServiceProperties* service = find_service(static_cast<std::uint32_t>(init.qp_type));
    if (service == nullptr) {
        const bool is_of_driver = init.qp_type == IBV_QPT_DRIVER;
        return refuse("ibv_create_qp", is_of_driver ? EOPNOTSUPP : EINVAL,
                      "qp_type {} is none that the device has",
                      static_cast<unsigned>(init.qp_type));
    }
    const auto handle_of = [](const auto* object) {
        return object == nullptr ? 0 : object->handle;
    };
    command.service = service->service;
    command.pd = handle_of(init.pd);
    command.send_cq = handle_of(init.send_cq);
    command.receive_cq = handle_of(init.recv_cq);
    command.srq = handle_of(init.srq);
    command.xrcd = init.xrcd == nullptr ? 0 : as_object(init.xrcd).number();
    command.capacity = to_capacity(init.cap);
    const std::uint32_t flags =
        (init.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 ? init.create_flags : 0;
    command.blocks_own_multicast = (flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) != 0;
    command.offloads = to_offloads(flags).bits;
    if ((init.comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER) != 0) {
        command.capacity.tso_header_bytes = init.max_tso_header;
    }
    if ((init.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
        command.operations = to_send_operations(init.send_ops_flags);
    }
    if ((init.comp_mask & IBV_QP_INIT_ATTR_IND_TABLE) != 0) {
        command.spreads = true;
        command.indirection_table = static_cast<std::uint32_t>(init.rwq_ind_tbl->ind_tbl_handle);
        command.hash = to_hash(init.rx_hash_conf);
    }
    return 0;
}

void fill_handle(QueuePair& object, ibv_context& context, const ibv_qp_init_attr_ex& init,
                 const CreateQpReply& reply) {
    ibv_qp& qp = *object.c_handle();
    qp.context = &context;
    qp.qp_context = init.qp_context;
    qp.pd = init.pd;
    qp.send_cq = init.send_cq;
    qp.recv_cq = init.recv_cq;
    qp.srq = init.srq;
    qp.handle = reply.handle;
    qp.qp_num = reply.qpn;
    qp.state = IBV_QPS_RESET;
    qp.qp_type = init.qp_type;
    pthread_mutex_init(&qp.mutex, nullptr);
    pthread_cond_init(&qp.cond, nullptr);
    object.signals_all = init.sq_sig_all != 0;
    object.service = find_service(static_cast<std::uint32_t>(init.qp_type));
    if (init.pd != nullptr && as_object(init.pd).threads != nullptr) {
        object.queues.use_from_one_thread();
    }
    if (!as_object(&context).personality().purges_completions) {
        object.queues.leave_completions();
    }
}

// Their buffers are the program's again.
void forget_requests(const QueuePair& qp) {
    if (BufferWatch* const watch = qp.watch(); watch != nullptr) {
        watch->forget({CompletedQueue::kSend, qp.queues.qpn()});
        watch->forget({CompletedQueue::kReceive, qp.queues.qpn()});
    }
}

driver::QueuePairQueues queues_of(const ibv_qp_init_attr_ex& init) {
    driver::QueuePairQueues queues;
    if (init.send_cq != nullptr) {
        queues.send_cq = &as_object(init.send_cq).queue;
    }
    if (init.recv_cq != nullptr) {
        queues.receive_cq = &as_object(init.recv_cq).queue;
    }
    if (init.srq != nullptr) {
        queues.shared = &as_object(init.srq).queue;
    }
    return queues;
}

ibv_qp* remember(Context& context, QueuePair& qp) {
    const std::lock_guard lock(context.lock());
    context.qps.insert(qp);
    return qp.c_handle();
}

// An errno. New queues are taken over where there are any.
int resize_or_modify(Context& context, QueuePair& qp, const ModifyQp& command, ModifyQpReply& reply,
                     std::string& refusal) {
    int descriptor = -1;
    const int error = context.execute(command, reply, descriptor, refusal);
    if (error != 0 || reply.ring.bytes == 0) {
        return error;
    }
    std::byte* ring = context.channel().map_ring(reply.ring, descriptor);
    if (ring == nullptr) {
        refusal = "the memory of the device cannot be mapped into this process";
        return ENOMEM;
    }
    qp.queues.replace_ring(ring, reply);
    return 0;
}

// librdmacm tries ECE for each connection and does without: no program wants to hear of that.
int refuse_ece(const ibv_qp& qp, std::string_view verb) {
    if (as_object(qp.context).is_librdmacms()) {
        errno = EOPNOTSUPP;
        return EOPNOTSUPP;
    }
    return refuse(verb, EOPNOTSUPP, "ECE is not modelled");
}

}  // namespace

QueuePair* QueuePair::make(Context& owner, const CreateQpReply& reply, std::byte* ring,
                           const driver::QueuePairQueues& parts, bool has_operations) {
    static_assert(sizeof(QueuePair) % alignof(NewerQpEx) == 0 &&
                  alignof(QueuePair) >= alignof(NewerQpEx));
    auto* const room = static_cast<std::byte*>(
        ::operator new(sizeof(QueuePair) + (has_operations ? sizeof(NewerQpEx) : sizeof(ibv_qp))));
    if (has_operations) {
        new (room + sizeof(QueuePair)) NewerQpEx{};
    } else {
        new (room + sizeof(QueuePair)) ibv_qp{};
    }
    return new (room) QueuePair(owner, reply, ring, parts);
}

QpCapacity QueuePair::capacity() const {
    QpCapacity capacity;
    capacity.send_requests = queues.send().shape().limit;
    capacity.send_segments = queues.send().shape().max_segments;
    capacity.receive_requests = queues.receive().shape().limit;
    capacity.receive_segments = queues.receive().shape().max_segments;
    capacity.inline_bytes = inline_bytes;
    capacity.tso_header_bytes = tso_header_bytes;
    return capacity;
}

ibv_qp* create_queue_pair(ibv_context& handle, ibv_qp_init_attr_ex& init) {
    Context& context = as_object(&handle);
    CreateQp command;
    CreateQpReply reply;
    int descriptor = -1;
    int error = fill_command(init, command);
    if (error == 0) {
        error = context.execute(command, reply, descriptor);
    }
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    std::byte* ring = context.channel().map_ring(reply.ring, descriptor);
    if (ring == nullptr) {
        refuse_unmapped("ibv_create_qp");
        return nullptr;
    }
    if (!properties(command.service).has_responder) {
        init.recv_cq = nullptr;
    }
    if (command.spreads) {
        init.send_cq = init.recv_cq = nullptr;
    }
    const bool has_operations = (init.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
    auto* qp = QueuePair::make(context, reply, ring, queues_of(init), has_operations);
    fill_handle(*qp, handle, init, reply);
    const ibv_qp_cap asked = std::exchange(init.cap, to_cap(reply.capacity));
    if (!context.personality().create_returns_rounded) {
        init.cap.max_send_wr = asked.max_send_wr;
        init.cap.max_recv_wr = asked.max_recv_wr;
    }
    return remember(context, *qp);
}

SIMVERBS_ABI ibv_qp* simverbs_abi_ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
    ibv_qp_init_attr_ex with_pd{};
    with_pd.qp_context = init->qp_context;
    with_pd.send_cq = init->send_cq;
    with_pd.recv_cq = init->recv_cq;
    with_pd.srq = init->srq;
    with_pd.cap = init->cap;
    with_pd.qp_type = init->qp_type;
    with_pd.sq_sig_all = init->sq_sig_all;
    with_pd.pd = pd;
    ibv_qp* qp = create_queue_pair(*pd->context, with_pd);
    init->cap = with_pd.cap;
    return qp;
}

// Another handle on an XRC target that somebody else made (ibv_open_qp(3)).
ibv_qp* open_qp(ibv_context* handle, ibv_qp_open_attr* attr) {
    constexpr std::uint32_t kNeeded =
        IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    if ((attr->comp_mask & kNeeded) != kNeeded || attr->qp_type != IBV_QPT_XRC_RECV ||
        attr->xrcd == nullptr || attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED) {
        refuse("ibv_open_qp", EINVAL,
               "qp_num, xrcd and qp_type IBV_QPT_XRC_RECV are needed, each with its comp_mask bit");
        return nullptr;
    }
    Context& context = as_object(handle);
    OpenQp command;
    command.xrcd = as_object(attr->xrcd).number();
    command.qpn = attr->qp_num;
    HandleReply opened;
    if (const int error = context.execute(command, opened); error != 0) {
        errno = error;
        return nullptr;
    }
    const CreateQpReply reply{.handle = opened.handle, .qpn = attr->qp_num};
    ibv_qp_init_attr_ex init{};
    init.qp_type = IBV_QPT_XRC_RECV;
    if ((attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0) {
        init.qp_context = attr->qp_context;
    }
    auto* qp = QueuePair::make(context, reply, nullptr, {}, false);
    fill_handle(*qp, *handle, init, reply);
    return remember(context, *qp);
}

SIMVERBS_ABI int simverbs_abi_ibv_modify_qp(ibv_qp* handle, ibv_qp_attr* attr, int attr_mask) {
    if (is_used_after_destroy(handle, __builtin_return_address(0))) {
        return with_errno(EINVAL);
    }
    QueuePair& qp = as_object(handle);
    ModifyQp command;
    command.handle = handle->handle;
    command.mask = QpAttrs::from_bits(static_cast<std::uint32_t>(attr_mask))
                       .without(ignored_attrs(qp.service->service))
                       .bits;
    command.values = to_values(*attr);
    command.capacity = to_capacity(attr->cap);
    if ((attr_mask & IBV_QP_STATE) != 0 && attr->qp_state == IBV_QPS_ERR) {
        qp.queues.publish_sends();
    }
    Context& context = as_object(handle->context);
    const QpState from = qp.queues.state();
    ModifyQpReply reply;
    std::string refusal;
    const int error = resize_or_modify(context, qp, command, reply, refusal);
    if (error != 0) {
        const bool moves = (attr_mask & IBV_QP_STATE) != 0;
        name_bad_modify(context, qp, from, moves ? static_cast<QpState>(attr->qp_state) : from,
                        QpAttrs::from_bits(command.mask));
        explain_modify(
            context, qp,
            {from, QpAttrs::from_bits(command.mask), command.values, reply, error, refusal});
        return with_errno(error);
    }
    if (from == QpState::kInit && qp.queues.state() == QpState::kRtr &&
        qp.service->has_receive_queue && handle->srq == nullptr &&
        qp.queues.receive().producer() == 0) {
        name_misuse(context, Misuse::kNoReceiveAtRtr, handle->qp_num, {});
    }
    if ((attr_mask & IBV_QP_CAP) != 0) {
        attr->cap = to_cap(qp.capacity());
    }
    if ((attr_mask & IBV_QP_STATE) != 0) {
        handle->state = attr->qp_state;
        if (attr->qp_state == IBV_QPS_RESET) {
            forget_requests(qp);
            qp.queues.forget_work();
            qp.signaled = 0;
        }
    }
    return 0;
}

// The typical packet is a hint to devices that pace by it; this one counts bytes.
int modify_qp_rate_limit(ibv_qp* handle, ibv_qp_rate_limit_attr* attr) {
    if (attr->comp_mask != 0 || (attr->typical_pkt_sz != 0 && attr->rate_limit == 0)) {
        return refuse("ibv_modify_qp_rate_limit", EINVAL,
                      "comp_mask has to be 0, and typical_pkt_sz 0 without a rate_limit");
    }
    ModifyQp command;
    command.handle = handle->handle;
    command.mask = QpAttrs(QpAttr::kRateLimit).bits;
    command.values.pacing = {attr->rate_limit, attr->max_burst_sz};
    return as_object(handle->context).execute(command);
}

SIMVERBS_ABI int simverbs_abi_ibv_query_qp(ibv_qp* handle, ibv_qp_attr* attr, int attr_mask,
                                           ibv_qp_init_attr* init) {
    if (is_used_after_destroy(handle, __builtin_return_address(0))) {
        return with_errno(EINVAL);
    }
    // Like ibv_cmd_query_qp(), which refuses from this bit up; all attributes are filled in anyway.
    constexpr int kTaken = IBV_QP_RATE_LIMIT - 1;
    if ((attr_mask & ~kTaken) != 0) {
        return refuse("ibv_query_qp", EOPNOTSUPP, "attr_mask {:#x} has bits other than {:#x}",
                      attr_mask, kTaken);
    }
    QueryQp command;
    command.handle = handle->handle;
    QueryQpReply reply;
    const int error = as_object(handle->context).execute(command, reply);
    if (error != 0) {
        return error;
    }
    *attr = to_qp_attr(reply);
    if ((attr_mask & IBV_QP_STATE) != 0) {
        handle->state = attr->qp_state;
    }
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

SIMVERBS_ABI int simverbs_abi_ibv_destroy_qp(ibv_qp* handle) {
    if (was_destroyed(handle, __builtin_return_address(0))) {
        return with_errno(EINVAL);
    }
    QueuePair& qp = as_object(handle);
    Context& context = as_object(handle->context);
    DestroyQp command;
    command.handle = handle->handle;
    if (const int error = context.execute(command); error != 0) {
        return error;
    }
    {
        const std::lock_guard lock(context.lock());
        context.qps.erase(context.qps.iterator_to(qp));
    }
    await_acknowledgments(context, *handle, handle->qp_num, "queue pair", [&qp, handle] {
        return EventBalance{qp.async_events.given, handle->events_completed};
    });
    if (context.watch() != nullptr) {
        name_polled_once(context, qp);
        if (const std::size_t unread = qp.queues.unread(); unread > 0) {
            name_misuse(context, Misuse::kCompletionsUnread, handle->qp_num,
                        fabric::counted(unread, "completion"));
        }
    }
    forget_requests(qp);
    destroy(qp, {handle, handle->context, "queue pair", handle->qp_num, true});
    return 0;
}

// Enhanced connection establishment is a matter between ends that have more to agree on than these.
SIMVERBS_ABI int simverbs_abi_ibv_query_ece(ibv_qp* qp, ibv_ece* ece) {
    *ece = {};
    return refuse_ece(*qp, "ibv_query_ece");
}

SIMVERBS_ABI int simverbs_abi_ibv_set_ece(ibv_qp* qp, ibv_ece* /*ece*/) {
    return refuse_ece(*qp, "ibv_set_ece");
}

// Bytes land in order within a message, one packet after the other, in this model.
SIMVERBS_ABI int simverbs_abi_ibv_query_qp_data_in_order(ibv_qp* /*qp*/, ibv_wr_opcode /*op*/,
                                                         std::uint32_t /*flags*/) {
    return 0;
}

}  // namespace simverbs::abi
