// Extended completion queues: what they are made with, the iterator, and every field that it reads;
// moderation of events and the device's clock.
//
// A field that was not asked for at creation has a null pointer, as with rdma-core's providers.
#include <cerrno>
#include <limits>
#include <utility>

#include <infiniband/verbs.h>

#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/misuse.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"

namespace simverbs::abi {
namespace {

constexpr std::uint64_t kPicosecondsPerNanosecond = 1000;
// A clock of n kHz ticks n times in so many picoseconds.
constexpr std::uint64_t kPicosecondsPerMillisecond = 1'000'000'000;

// ---- the iterator

int show(CompletionQueue& cq, const Cqe* entry) {
    cq.current = entry;
    if (entry == nullptr) {
        return ENOENT;
    }
    if (BufferWatch* watch = as_object(cq.context).watch(); watch != nullptr) [[unlikely]] {
        watch->completed(*entry);
    }
    cq.status = static_cast<ibv_wc_status>(entry->status);
    cq.wr_id = entry->wr_id;
    return 0;
}

// The first entry of a poll that a fault may shorten, of so many that are `there`.
const Cqe* first_in_part(Context& context, CompletionQueue& cq, int& there) {
    there = cq.queue.count(std::numeric_limits<int>::max(), true);
    const int most = context.completions_of_poll(cq, there);
    if (most == 0) {
        return nullptr;
    }
    return most < there ? cq.queue.first_or_step(static_cast<std::uint32_t>(most))
                        : cq.queue.first_or_step();
}

int start_poll(ibv_cq_ex* handle, ibv_poll_cq_attr* attr) {
    Context& context = as_object(handle->context);
    const bool admitted = context.admits_work();
    if (!admitted && context.is_foreign()) {
        return context.refuse_use("ibv_start_poll");
    }
    if (attr->comp_mask != 0 && context.personality().checks_extended_cq_masks) {
        return refuse("ibv_start_poll", EINVAL, "comp_mask {:#x} has bits set: it must be 0",
                      attr->comp_mask);
    }
    CompletionQueue& cq = as_object(handle);
    const Cqe* entry = nullptr;
    int there = 0;
    if (context.asks_at_polls()) [[unlikely]] {
        entry = first_in_part(context, cq, there);
    } else {
        entry = cq.queue.first_or_step();
    }
    if (context.watch() != nullptr) [[unlikely]] {
        count_poll(cq, entry != nullptr || there > 0);
    }
    return entry == nullptr && !admitted ? context.refuse_use("ibv_start_poll") : show(cq, entry);
}

int next_poll(ibv_cq_ex* handle) {
    CompletionQueue& cq = as_object(handle);
    return show(cq, cq.queue.next());
}

// Harmless after an ENOENT of next_poll(), where it is due (ibv_create_cq_ex(3)).
void end_poll(ibv_cq_ex* handle) {
    CompletionQueue& cq = as_object(handle);
    const bool read_undefined = std::exchange(cq.read_undefined, false);
    cq.queue.end();
    Context& context = as_object(handle->context);
    if (read_undefined) {
        name_misuse(context, Misuse::kUndefinedField, handle->handle, {});
    }
    if (context.watch() != nullptr) [[unlikely]] {
        name_found(context);
    }
}

// ---- the fields

const Cqe& entry_of(ibv_cq_ex* handle) {
    return *as_object(handle).current;
}
// For a field that a completion in error does not define.
const Cqe& successful_entry_of(ibv_cq_ex* handle) {
    CompletionQueue& cq = as_object(handle);
    if (cq.status != IBV_WC_SUCCESS) [[unlikely]] {
        cq.read_undefined = true;
    }
    return *cq.current;
}

// For a field that tag matching also defines where its status is an error.
const Cqe& tagged_entry_of(ibv_cq_ex* handle) {
    const ibv_wc_status status = handle->status;
    return status == IBV_WC_TM_ERR || status == IBV_WC_TM_RNDV_INCOMPLETE
               ? entry_of(handle)
               : successful_entry_of(handle);
}

ibv_wc_opcode read_opcode(ibv_cq_ex* cq) {
    return static_cast<ibv_wc_opcode>(tagged_entry_of(cq).opcode);
}
std::uint32_t read_vendor_err(ibv_cq_ex* cq) {
    return entry_of(cq).vendor_error;
}
unsigned int read_wc_flags(ibv_cq_ex* cq) {
    return tagged_entry_of(cq).wc_flags;
}
std::uint32_t read_byte_len(ibv_cq_ex* cq) {
    return tagged_entry_of(cq).byte_length;
}
__be32 read_imm_data(ibv_cq_ex* cq) {
    return successful_entry_of(cq).immediate;
}
std::uint32_t read_qp_num(ibv_cq_ex* cq) {
    return entry_of(cq).qpn;
}
std::uint32_t read_src_qp(ibv_cq_ex* cq) {
    return successful_entry_of(cq).source_qpn;
}
std::uint32_t read_slid(ibv_cq_ex* cq) {
    return successful_entry_of(cq).slid;
}
std::uint8_t read_sl(ibv_cq_ex* cq) {
    return successful_entry_of(cq).sl;
}
std::uint8_t read_dlid_path_bits(ibv_cq_ex* cq) {
    return successful_entry_of(cq).dlid_path_bits;
}
std::uint64_t read_completion_ts(ibv_cq_ex* cq) {
    return to_clock_ticks(entry_of(cq).timestamp_ps, as_object(cq->context).personality().limits);
}
// Priority, DEI and VLAN id of the tag that was taken out of a frame; 0 where none was.
std::uint16_t read_cvlan(ibv_cq_ex* cq) {
    return successful_entry_of(cq).cvlan;
}
std::uint32_t read_flow_tag(ibv_cq_ex* cq) {
    return successful_entry_of(cq).flow_tag;
}
// Tells of the message that has matched; nothing with other completions (tag_matching.md).
void read_tm_info(ibv_cq_ex* cq, ibv_wc_tm_info* info) {
    const Cqe& entry = tagged_entry_of(cq);
    const bool is_match = (entry.wc_flags & IBV_WC_TM_MATCH) != 0;
    const TagInfo found = is_match ? tag_info_of(entry) : TagInfo{};
    info->tag = found.tag;
    info->priv = found.context;
}
// Virtual time has no date: nanoseconds since the world began.
std::uint64_t read_completion_wallclock_ns(ibv_cq_ex* cq) {
    return entry_of(cq).timestamp_ps / kPicosecondsPerNanosecond;
}

// The bits of wc_flags that a device can answer for: clocks where it has one, VLAN tags where it
// takes them out of frames, flow tags where it steers, tag headers where it matches them.
std::uint64_t known_fields(const DeviceLimits& limits) {
    std::uint64_t known = IBV_WC_STANDARD_FLAGS;
    if (limits.completion_timestamp_mask != 0) {
        known |=
            IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
    }
    if (limits.raw_packet_caps.contains(RawPacketCap::kCvlanStripping)) {
        known |= IBV_WC_EX_WITH_CVLAN;
    }
    if (limits.caps.contains(DeviceCap::kManagedFlowSteering)) {
        known |= IBV_WC_EX_WITH_FLOW_TAG;
    }
    if (limits.tag_matching.max_tags > 0) {
        known |= IBV_WC_EX_WITH_TM_INFO;
    }
    return known;
}

void set_pointers(ibv_cq_ex& cq, std::uint64_t fields) {
    const auto set = [fields](std::uint64_t field, auto& slot, auto function) {
        if ((fields & field) != 0) {
            slot = function;
        }
    };
    cq.start_poll = start_poll;
    cq.next_poll = next_poll;
    cq.end_poll = end_poll;
    cq.read_opcode = read_opcode;
    cq.read_vendor_err = read_vendor_err;
    cq.read_wc_flags = read_wc_flags;
    set(IBV_WC_EX_WITH_BYTE_LEN, cq.read_byte_len, read_byte_len);
    set(IBV_WC_EX_WITH_IMM, cq.read_imm_data, read_imm_data);
    set(IBV_WC_EX_WITH_QP_NUM, cq.read_qp_num, read_qp_num);
    set(IBV_WC_EX_WITH_SRC_QP, cq.read_src_qp, read_src_qp);
    set(IBV_WC_EX_WITH_SLID, cq.read_slid, read_slid);
    set(IBV_WC_EX_WITH_SL, cq.read_sl, read_sl);
    set(IBV_WC_EX_WITH_DLID_PATH_BITS, cq.read_dlid_path_bits, read_dlid_path_bits);
    set(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, cq.read_completion_ts, read_completion_ts);
    set(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, cq.read_completion_wallclock_ns,
        read_completion_wallclock_ns);
    set(IBV_WC_EX_WITH_CVLAN, cq.read_cvlan, read_cvlan);
    set(IBV_WC_EX_WITH_FLOW_TAG, cq.read_flow_tag, read_flow_tag);
    set(IBV_WC_EX_WITH_TM_INFO, cq.read_tm_info, read_tm_info);
}

// An errno, with its reason; in rdma-core's order: sizes and masks, then what the device lacks.
int check(const ibv_cq_init_attr_ex& wanted, const Personality& personality) {
    constexpr std::uint32_t kMasks = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
    constexpr std::uint32_t kFlags =
        IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    const std::uint32_t flags =
        (wanted.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? wanted.flags : 0;
    const bool unknown_flag = (flags & ~kFlags) != 0 && personality.checks_extended_cq_masks;
    const bool needs_domain = (wanted.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0;
    constexpr std::string_view kVerb = "ibv_create_cq_ex";
    if (wanted.cqe == 0) {
        return refuse(kVerb, EINVAL, "cqe 0 is none of 1 to max_cqe {}",
                      personality.limits.max_cqe);
    }
    if ((wanted.comp_mask & ~kMasks) != 0) {
        return refuse(kVerb, EINVAL, "comp_mask {:#x} has bits other than {:#x}", wanted.comp_mask,
                      kMasks);
    }
    if (unknown_flag) {
        return refuse(kVerb, EINVAL, "flags {:#x} has bits other than {:#x}", flags, kFlags);
    }
    if (needs_domain &&
        (wanted.parent_domain == nullptr || as_object(wanted.parent_domain).extends == nullptr)) {
        return refuse(kVerb, EINVAL, "parent_domain is not of ibv_alloc_parent_domain()");
    }
    const std::uint64_t known = known_fields(personality.limits);
    if ((wanted.wc_flags & ~known) != 0) {
        return refuse(kVerb, EOPNOTSUPP, "wc_flags {:#x}: the device has {:#x} alone",
                      wanted.wc_flags, known);
    }
    if ((flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0 && !personality.cq_may_ignore_overrun) {
        return refuse(kVerb, EOPNOTSUPP, "a CQ of this device cannot ignore overruns");
    }
    return 0;
}

}  // namespace

std::uint64_t to_clock_ticks(std::uint64_t picoseconds, const DeviceLimits& limits) {
    const std::uint64_t whole = picoseconds / kPicosecondsPerMillisecond * limits.core_clock_khz;
    const std::uint64_t rest = picoseconds % kPicosecondsPerMillisecond * limits.core_clock_khz /
                               kPicosecondsPerMillisecond;
    return (whole + rest) & limits.completion_timestamp_mask;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* wanted) {
    if (check(*wanted, as_object(context).personality()) != 0) {
        return nullptr;
    }
    ibv_cq_init_attr_ex plain = *wanted;
    if ((wanted->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) == 0) {
        plain.flags = 0;
    }
    CompletionQueue* cq = make_cq(context, plain);
    if (cq == nullptr) {
        return nullptr;
    }
    bool one_thread = (plain.flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
    if ((wanted->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0) {
        cq->parent_domain = wanted->parent_domain;
        one_thread = one_thread || as_object(wanted->parent_domain).threads != nullptr;
    }
    if (one_thread) {
        cq->queue.use_from_one_thread();
    }
    cq->is_extended = true;
    set_pointers(*cq, wanted->wc_flags);
    return cq;
}

int modify_cq(ibv_cq* handle, ibv_modify_cq_attr* attr) {
    if (attr->attr_mask == 0) {
        return refuse("ibv_modify_cq", EINVAL, "attr_mask is 0: IBV_CQ_ATTR_MODERATE is missing");
    }
    if ((attr->attr_mask & ~static_cast<std::uint32_t>(IBV_CQ_ATTR_MODERATE)) != 0) {
        return refuse("ibv_modify_cq", EOPNOTSUPP,
                      "attr_mask {:#x} has bits other than IBV_CQ_ATTR_MODERATE", attr->attr_mask);
    }
    ModifyCq command;
    command.handle = handle->handle;
    command.count = attr->moderate.cq_count;
    command.period_us = attr->moderate.cq_period;
    return as_object(handle->context).execute(command);
}

// As mlx5 has it: ticks of the device's clock, whole, in the nanoseconds.
int query_rt_values(ibv_context* handle, ibv_values_ex* values) {
    Context& context = as_object(handle);
    const bool wants_clock = (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) != 0;
    if (!wants_clock) {
        values->comp_mask = 0;
        return 0;
    }
    QueryClockReply reply;
    if (const int error = context.execute(QueryClock{}, reply); error != 0) {
        return error;
    }
    const std::uint64_t ticks = to_clock_ticks(reply.now_ps, context.personality().limits);
    values->raw_clock.tv_sec = 0;
    values->raw_clock.tv_nsec = static_cast<long>(ticks);
    values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    return 0;
}

}  // namespace simverbs::abi
