// Fills the pointers of a context. A null pointer in an extended slot is how a client learns that
// a feature is absent; those that clients call without a look get a function that refuses.
#include "simverbs/abi/operations.hpp"

#include "simverbs/abi/entry_points.hpp"

namespace simverbs::abi {

void set_operations(Context& context) {
    ibv_context_ops& ops = context.c_handle()->ops;
    ops._compat_query_device = simverbs_abi_ibv_query_device;
    ops._compat_query_port = simverbs_abi_ibv_query_port;
    ops.poll_cq = poll_cq;
    ops.req_notify_cq = req_notify_cq;
    ops.post_send = post_send;
    ops.post_recv = post_recv;
    ops.post_srq_recv = post_srq_recv;
    ops.alloc_mw = alloc_mw;
    ops.bind_mw = bind_mw;
    ops.dealloc_mw = dealloc_mw;
    verbs_context& extended = context.older;
    extended.query_port = query_port;
    extended.query_device_ex = query_device_ex;
    extended.open_xrcd = open_xrcd;
    extended.close_xrcd = close_xrcd;
    extended.create_srq_ex = create_srq_ex;
    extended.get_srq_num = get_srq_num;
    extended.open_qp = open_qp;
    extended.create_cq_ex = create_cq_ex;
    extended.modify_cq = modify_cq;
    extended.query_rt_values = query_rt_values;
    extended.alloc_td = alloc_td;
    extended.dealloc_td = dealloc_td;
    extended.alloc_parent_domain = alloc_parent_domain;
    extended.create_qp_ex = create_qp_ex;
    extended.ibv_create_flow = create_flow;
    extended.ibv_destroy_flow = destroy_flow;
    const Personality& personality = context.personality();
    if (personality.limits.caps.contains(DeviceCap::kManagedFlowSteering)) {
        extended.create_counters = create_counters;
        extended.destroy_counters = destroy_counters;
        extended.attach_counters_point_flow = attach_counters_point_flow;
        extended.read_counters = read_counters;
    }
    if (personality.limits.rate_limit_max_kbps > 0) {
        extended.modify_qp_rate_limit = modify_qp_rate_limit;
    }
    if (personality.limits.max_wq_type_rq > 0) {
        extended.create_wq = create_wq;
        extended.modify_wq = modify_wq;
        extended.destroy_wq = destroy_wq;
        extended.create_rwq_ind_table = create_rwq_ind_table;
        extended.destroy_rwq_ind_table = destroy_rwq_ind_table;
    }
    if (personality.limits.tag_matching.max_tags > 0) {
        extended.post_srq_ops = post_srq_ops;
    }
    if (personality.null_mr) {
        extended.alloc_null_mr = alloc_null_mr;
    }
    if (personality.limits.odp.explicit_regions) {
        extended.advise_mr = advise_mr;
    }
    if (personality.limits.max_device_memory_bytes > 0) {
        extended.alloc_dm = alloc_dm;
        extended.free_dm = free_dm;
        extended.reg_dm_mr = reg_dm_mr;
    }
}

}  // namespace simverbs::abi
