// Extended queue pairs: creation with more than the classic attributes, and posting by function
// (ibv_wr_*): requests are written one by one, and the device sees all of a batch or none.
//
// As with rdma-core's mlx5, only operations that were asked for at creation have a function; the
// first mistake of a batch is what ibv_wr_complete() answers.
#include <array>
#include <cerrno>

#include <infiniband/verbs.h>

#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/misuse.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"
#include "simverbs/abi/refusal_reason.hpp"
#include "simverbs/abi/send_request.hpp"

namespace simverbs::abi {

// The batch that ibv_wr_start() opened; the queue's lock is held as long.
struct SendBatch {
    SendDraft draft;
    std::uint32_t first = 0;  // index of its first request
    int error = 0;
};

void EndSendBatch::operator()(SendBatch* batch) const {
    delete batch;
}

namespace {

QueuePair& queue_pair_of(ibv_qp_ex* handle) {
    return as_object(&handle->qp_base);
}

const Personality& personality_of(const ibv_qp_ex* handle) {
    return as_object(handle->qp_base.context).personality();
}

// ---- building requests

// Ends the request that was begun, if one was.
void finish(QueuePair& qp, const Personality& personality) {
    SendBatch& batch = *qp.batch;
    if (batch.error != 0 || batch.draft.slot == nullptr) {
        return;
    }
    const bool without_target = qp.service->uses_ah && batch.draft.wqe.address_handle == 0;
    batch.error = without_target ? EINVAL : finish_send(qp, personality, batch.draft);
}

// nullptr when the batch has failed.
SendWqe* begin(ibv_qp_ex* handle, ibv_wr_opcode opcode) {
    QueuePair& qp = queue_pair_of(handle);
    const Personality& personality = personality_of(handle);
    finish(qp, personality);
    SendBatch& batch = *qp.batch;
    if (batch.error == 0) {
        batch.draft.wqe = {};
        const unsigned flags = handle->wr_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);
        batch.error = begin_send(qp, personality, static_cast<std::uint32_t>(opcode), handle->wr_id,
                                 flags, batch.draft);
    }
    return batch.error == 0 ? &batch.draft.wqe : nullptr;
}

void begin_remote(ibv_qp_ex* handle, ibv_wr_opcode opcode, std::uint32_t rkey,
                  std::uint64_t remote_address, std::uint32_t immediate = 0) {
    if (SendWqe* wqe = begin(handle, opcode)) {
        wqe->rkey = rkey;
        wqe->remote_address = remote_address;
        wqe->immediate = immediate;
    }
}

void begin_atomic(ibv_qp_ex* handle, ibv_wr_opcode opcode, std::uint32_t rkey,
                  std::uint64_t remote_address, std::uint64_t compare_add, std::uint64_t swap) {
    if (SendWqe* wqe = begin(handle, opcode)) {
        wqe->rkey = rkey;
        wqe->remote_address = remote_address;
        wqe->compare_add = compare_add;
        wqe->swap = swap;
    }
}

void wr_send(ibv_qp_ex* qp) {
    begin(qp, IBV_WR_SEND);
}
void wr_send_imm(ibv_qp_ex* qp, __be32 immediate) {
    begin_remote(qp, IBV_WR_SEND_WITH_IMM, 0, 0, immediate);
}
void wr_send_inv(ibv_qp_ex* qp, std::uint32_t rkey) {
    begin_remote(qp, IBV_WR_SEND_WITH_INV, 0, 0, rkey);
}
void wr_rdma_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
    begin_remote(qp, IBV_WR_RDMA_WRITE, rkey, address);
}
void wr_rdma_write_imm(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, __be32 immediate) {
    begin_remote(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address, immediate);
}
void wr_rdma_read(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
    begin_remote(qp, IBV_WR_RDMA_READ, rkey, address);
}
void wr_atomic_cmp_swp(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address,
                       std::uint64_t compare, std::uint64_t swap) {
    begin_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address, compare, swap);
}
void wr_atomic_fetch_add(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address,
                         std::uint64_t add) {
    begin_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address, add, 0);
}
void wr_local_inv(ibv_qp_ex* qp, std::uint32_t rkey) {
    begin_remote(qp, IBV_WR_LOCAL_INV, 0, 0, rkey);
}

void wr_bind_mw(ibv_qp_ex* handle, ibv_mw* mw, std::uint32_t rkey,
                const ibv_mw_bind_info* bind_info) {
    if (SendWqe* wqe = begin(handle, IBV_WR_BIND_MW)) {
        ibv_send_wr wr{};
        wr.bind_mw.mw = mw;
        wr.bind_mw.rkey = rkey;
        wr.bind_mw.bind_info = *bind_info;
        queue_pair_of(handle).batch->error =
            write_binding(wr, personality_of(handle), Binder::kWorkRequest, *wqe);
    }
}
void wr_flush(ibv_qp_ex* handle, std::uint32_t rkey, std::uint64_t address, std::size_t length,
              std::uint8_t type, std::uint8_t level) {
    SendWqe* wqe = begin(handle, kWrFlush);
    if (wqe == nullptr) {
        return;
    }
    wqe->rkey = rkey;
    wqe->remote_address = address;
    put_flush({static_cast<std::uint32_t>(length), type, level}, *wqe);
    if (length > UINT32_MAX) {
        queue_pair_of(handle).batch->error = EINVAL;
    }
}
// The eight bytes go into the slot (ibv_wr_atomic_write(3)).
void wr_atomic_write(ibv_qp_ex* handle, std::uint32_t rkey, std::uint64_t address,
                     const void* value) {
    SendWqe* wqe = begin(handle, IBV_WR_ATOMIC_WRITE);
    if (wqe == nullptr) {
        return;
    }
    wqe->rkey = rkey;
    wqe->remote_address = address;
    QueuePair& qp = queue_pair_of(handle);
    qp.batch->error = put_atomic_value(qp, value, qp.batch->draft);
}

void wr_send_tso(ibv_qp_ex* handle, void* header, std::uint16_t bytes, std::uint16_t mss) {
    if (begin(handle, IBV_WR_TSO) != nullptr) {
        QueuePair& qp = queue_pair_of(handle);
        qp.batch->error = put_header(qp, header, bytes, mss, qp.batch->draft);
    }
}

// ---- giving them data and a destination

bool is_open(const SendBatch& batch) {
    return batch.error == 0 && batch.draft.slot != nullptr;
}

void wr_set_sge_list(ibv_qp_ex* handle, std::size_t count, const ibv_sge* segments) {
    QueuePair& qp = queue_pair_of(handle);
    SendBatch& batch = *qp.batch;
    if (is_open(batch)) {
        batch.error = put_segments(qp, segments, count, batch.draft);
    }
}
void wr_set_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
    const ibv_sge segment{address, length, lkey};
    wr_set_sge_list(qp, 1, &segment);
}

void wr_set_inline_data_list(ibv_qp_ex* handle, std::size_t count, const ibv_data_buf* buffers) {
    QueuePair& qp = queue_pair_of(handle);
    SendBatch& batch = *qp.batch;
    if (!is_open(batch)) {
        return;
    }
    if (batch.draft.opcode == nullptr || !batch.draft.opcode->may_be_inline) {
        batch.error = EINVAL;
        return;
    }
    const auto range_of = [buffers](std::size_t i) {
        return std::span(static_cast<const std::byte*>(buffers[i].addr), buffers[i].length);
    };
    batch.error = put_inline(qp, count, range_of, batch.draft);
}
void wr_set_inline_data(ibv_qp_ex* qp, void* address, std::size_t length) {
    const ibv_data_buf buffer{address, length};
    wr_set_inline_data_list(qp, 1, &buffer);
}

void wr_set_ud_addr(ibv_qp_ex* handle, ibv_ah* ah, std::uint32_t remote_qpn,
                    std::uint32_t remote_qkey) {
    SendBatch& batch = *queue_pair_of(handle).batch;
    if (is_open(batch)) {
        batch.draft.wqe.address_handle = ah->handle;
        batch.draft.wqe.remote_qpn = remote_qpn;
        batch.draft.wqe.remote_qkey = remote_qkey;
    }
}
void wr_set_xrc_srqn(ibv_qp_ex* handle, std::uint32_t remote_srqn) {
    SendBatch& batch = *queue_pair_of(handle).batch;
    // Every request may be told; what the device does by itself goes to no queue.
    const WrOpcodeProperties* opcode = batch.draft.opcode;
    if (is_open(batch) && opcode != nullptr && opcode->message != MessageKind::kNone) {
        batch.draft.wqe.remote_qpn = remote_srqn;
    }
}

// ---- batches

void wr_start(ibv_qp_ex* handle) {
    QueuePair& qp = queue_pair_of(handle);
    SendBatch& batch = *qp.batch;
    Context& context = as_object(handle->qp_base.context);
    const int refused = context.admits_work()
                            ? context.refused_post<CommandCode::kPostSend>(handle->qp_base.qp_num)
                            : EIO;
    qp.queues.send().lock().lock();
    batch.first = qp.queues.send().producer();
    batch.draft.slot = nullptr;
    const int no_room = personality_of(handle).no_room_in_batch_errno;
    batch.draft.errors = {.queue_full = no_room, .too_much = no_room};
    batch.error = refused;
}

int wr_complete(ibv_qp_ex* handle) {
    QueuePair& qp = queue_pair_of(handle);
    const Personality& personality = personality_of(handle);
    finish(qp, personality);
    SendBatch& batch = *qp.batch;
    driver::WorkQueue& queue = qp.queues.send();
    const std::optional<PostTooEarly> too_early = too_early_to_send(qp, personality);
    if (batch.error != 0 || too_early == PostTooEarly::kRefuse) {
        queue.take_back(batch.first);
    } else if (!too_early && queue.producer() != batch.first) {
        qp.queues.ring_send();
    }
    const int error = batch.error == 0 && too_early ? EINVAL : batch.error;
    const std::optional<Misuse> mistake = take_mistake(qp);
    queue.lock().unlock();
    if (mistake) [[unlikely]] {
        name_misuse(as_object(handle->qp_base.context), *mistake, handle->qp_base.qp_num, {});
    }
    if (error != 0) [[unlikely]] {
        explain_batch(as_object(handle->qp_base.context), qp, error);
    }
    return with_errno(error);
}

void wr_abort(ibv_qp_ex* handle) {
    QueuePair& qp = queue_pair_of(handle);
    qp.queues.send().take_back(qp.batch->first);
    qp.queues.send().lock().unlock();
}

// ---- creation

struct SendOperation {
    std::uint64_t flag;  // of enum ibv_qp_create_send_ops_flags
    WrOpcode opcode;
    void (*install)(NewerQpEx& qp);
};
constexpr auto kSendOperations = std::to_array<SendOperation>({
    {IBV_QP_EX_WITH_RDMA_WRITE, WrOpcode::kRdmaWrite,
     [](NewerQpEx& qp) { qp.older.wr_rdma_write = wr_rdma_write; }},
    {IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, WrOpcode::kRdmaWriteWithImm,
     [](NewerQpEx& qp) { qp.older.wr_rdma_write_imm = wr_rdma_write_imm; }},
    {IBV_QP_EX_WITH_SEND, WrOpcode::kSend, [](NewerQpEx& qp) { qp.older.wr_send = wr_send; }},
    {IBV_QP_EX_WITH_SEND_WITH_IMM, WrOpcode::kSendWithImm,
     [](NewerQpEx& qp) { qp.older.wr_send_imm = wr_send_imm; }},
    {IBV_QP_EX_WITH_RDMA_READ, WrOpcode::kRdmaRead,
     [](NewerQpEx& qp) { qp.older.wr_rdma_read = wr_rdma_read; }},
    {IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, WrOpcode::kAtomicCmpAndSwp,
     [](NewerQpEx& qp) { qp.older.wr_atomic_cmp_swp = wr_atomic_cmp_swp; }},
    {IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, WrOpcode::kAtomicFetchAndAdd,
     [](NewerQpEx& qp) { qp.older.wr_atomic_fetch_add = wr_atomic_fetch_add; }},
    {IBV_QP_EX_WITH_LOCAL_INV, WrOpcode::kLocalInv,
     [](NewerQpEx& qp) { qp.older.wr_local_inv = wr_local_inv; }},
    {IBV_QP_EX_WITH_BIND_MW, WrOpcode::kBindMw,
     [](NewerQpEx& qp) { qp.older.wr_bind_mw = wr_bind_mw; }},
    {IBV_QP_EX_WITH_ATOMIC_WRITE, WrOpcode::kAtomicWrite,
     [](NewerQpEx& qp) { qp.older.wr_atomic_write = wr_atomic_write; }},
    {kQpExWithFlush, WrOpcode::kFlush, [](NewerQpEx& qp) { qp.wr_flush = wr_flush; }},
    {IBV_QP_EX_WITH_TSO, WrOpcode::kTso, [](NewerQpEx& qp) { qp.older.wr_send_tso = wr_send_tso; }},
    {IBV_QP_EX_WITH_SEND_WITH_INV, WrOpcode::kSendWithInv,
     [](NewerQpEx& qp) { qp.older.wr_send_inv = wr_send_inv; }},
});

// EOPNOTSUPP where the service lacks one of them, or it is not modelled.
int check_operations(std::uint64_t asked, Service service, const Personality& personality) {
    for (const SendOperation& row : kSendOperations) {
        if (has_function(personality, properties(row.opcode), service)) {
            asked &= ~row.flag;
        }
    }
    return asked == 0 ? 0
                      : refuse("ibv_create_qp_ex", EOPNOTSUPP,
                               "send_ops_flags {:#x} are no operations of {} on this device", asked,
                               properties(service).name);
}

void install_operations(QueuePair& qp, std::uint64_t asked) {
    ibv_qp_ex& handle = qp.extended().older;
    for (const SendOperation& row : kSendOperations) {
        if ((asked & row.flag) != 0) {
            row.install(qp.extended());
        }
    }
    handle.wr_start = wr_start;
    handle.wr_complete = wr_complete;
    handle.wr_abort = wr_abort;
    handle.wr_set_sge = wr_set_sge;
    handle.wr_set_sge_list = wr_set_sge_list;
    handle.wr_set_inline_data = wr_set_inline_data;
    handle.wr_set_inline_data_list = wr_set_inline_data_list;
    handle.wr_set_ud_addr = wr_set_ud_addr;
    handle.wr_set_xrc_srqn = wr_set_xrc_srqn;
    qp.batch.reset(new SendBatch);
}

// The device looks at the other creation flags; SOURCE_QPN is IPoIB's, which nobody here does.
int check(const ibv_qp_init_attr_ex& init, const Personality& personality) {
    constexpr std::string_view kVerb = "ibv_create_qp_ex";
    constexpr std::uint32_t kAttributes = (IBV_QP_INIT_ATTR_SEND_OPS_FLAGS << 1) - 1;
    constexpr std::uint32_t kFlags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SCATTER_FCS |
                                     IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SOURCE_QPN |
                                     IBV_QP_CREATE_PCI_WRITE_END_PADDING;
    const auto given = [&init](std::uint32_t attribute) {
        return (init.comp_mask & attribute) != 0;
    };
    const ServiceProperties* service = find_service(static_cast<std::uint32_t>(init.qp_type));
    const std::uint32_t flags = given(IBV_QP_INIT_ATTR_CREATE_FLAGS) ? init.create_flags : 0;
    if ((init.comp_mask & ~kAttributes) != 0 || (flags & ~kFlags) != 0) {
        return refuse(kVerb, EINVAL, "comp_mask {:#x} or create_flags {:#x} has unknown bits",
                      init.comp_mask, flags);
    }
    const bool spreads = given(IBV_QP_INIT_ATTR_IND_TABLE);
    if (spreads != given(IBV_QP_INIT_ATTR_RX_HASH) ||
        (spreads && (init.rwq_ind_tbl == nullptr || init.rx_hash_conf.rx_hash_key == nullptr))) {
        return refuse(kVerb, EINVAL,
                      "rwq_ind_tbl and rx_hash_conf with its key are needed together");
    }
    if ((flags & IBV_QP_CREATE_SOURCE_QPN) != 0) {
        return refuse(kVerb, EOPNOTSUPP, "IBV_QP_CREATE_SOURCE_QPN is not modelled");
    }
    const bool takes_domain = service != nullptr && service->srq_from_packet;
    if (takes_domain ? !given(IBV_QP_INIT_ATTR_XRCD) || init.xrcd == nullptr
                     : !given(IBV_QP_INIT_ATTR_PD) || init.pd == nullptr) {
        return refuse(kVerb, EINVAL, "{} and its bit of comp_mask are missing",
                      takes_domain ? "xrcd" : "pd");
    }
    return given(IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) && service != nullptr
               ? check_operations(init.send_ops_flags, service->service, personality)
               : 0;
}

}  // namespace

SendOperations to_send_operations(std::uint64_t flags) {
    SendOperations operations = 0;
    for (const SendOperation& row : kSendOperations) {
        operations |= (flags & row.flag) != 0 ? operation(row.opcode) : 0;
    }
    return operations;
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* init) {
    if (check(*init, as_object(context).personality()) != 0) {
        return nullptr;
    }
    ibv_qp_init_attr_ex described = *init;
    if ((init->comp_mask & IBV_QP_INIT_ATTR_PD) == 0) {
        described.pd = nullptr;
    }
    if ((init->comp_mask & IBV_QP_INIT_ATTR_XRCD) == 0) {
        described.xrcd = nullptr;
    }
    ibv_qp* qp = create_queue_pair(*context, described);
    if (qp == nullptr) {
        return nullptr;
    }
    init->cap = described.cap;
    if ((init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
        install_operations(as_object(qp), init->send_ops_flags);
    }
    return qp;
}

// nullptr for a queue pair that was made without send operations (ibv_create_qp_ex(3)).
SIMVERBS_ABI ibv_qp_ex* simverbs_abi_ibv_qp_to_qp_ex(ibv_qp* handle) {
    QueuePair& qp = as_object(handle);
    return qp.batch == nullptr ? nullptr : &qp.extended().older;
}

}  // namespace simverbs::abi
