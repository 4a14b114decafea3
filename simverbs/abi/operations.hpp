// The functions behind the pointers that a context carries for the inline functions of verbs.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include <infiniband/verbs.h>

#include "simverbs/abi/objects.hpp"
#include "simverbs/model/limits.hpp"

namespace simverbs::abi {

// Features that exist behind these functions and that query_device_ex reports by figures.
struct ModelledFeatures {
    bool on_demand_paging = true;
    bool segmentation_offload = true;
    bool receive_side_scaling = true;
    bool packet_pacing = true;
    bool raw_packets = true;
    bool device_memory = true;
};
inline constexpr ModelledFeatures kModelledFeatures{};

void set_operations(Context& context);

// A queue pair by its full description; attributes that it lacks are null. The capabilities granted
// go to `init`. nullptr with errno.
ibv_qp* create_queue_pair(ibv_context& context, ibv_qp_init_attr_ex& init);
// Translates enum ibv_qp_create_send_ops_flags; flags that are unknown are left out.
SendOperations to_send_operations(std::uint64_t flags);
int modify_qp_rate_limit(ibv_qp* qp, ibv_qp_rate_limit_attr* attr);
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr);
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* init);
int post_srq_ops(ibv_srq* srq, ibv_ops_wr* op, ibv_ops_wr** bad_op);
int get_srq_num(ibv_srq* srq, std::uint32_t* number);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);
ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* init);
int close_xrcd(ibv_xrcd* xrcd);

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr, std::size_t size);
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t size);
int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr);
// One BIND_MW on behalf of ibv_bind_mw(); an errno.
int post_bind(ibv_qp* qp, ibv_send_wr& wr);
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);
int poll_cq(ibv_cq* cq, int num_entries, ibv_wc* wc);
int req_notify_cq(ibv_cq* cq, int solicited_only);
ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attr);
int destroy_flow(ibv_flow* flow);

ibv_counters* create_counters(ibv_context* context, ibv_counters_init_attr* init);
int destroy_counters(ibv_counters* counters);
int attach_counters_point_flow(ibv_counters* counters, ibv_counter_attach_attr* attr,
                               ibv_flow* flow);
int read_counters(ibv_counters* counters, std::uint64_t* values, std::uint32_t count,
                  std::uint32_t flags);

ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* init);
int modify_wq(ibv_wq* wq, ibv_wq_attr* attr);
int destroy_wq(ibv_wq* wq);
ibv_rwq_ind_table* create_rwq_ind_table(ibv_context* context, ibv_rwq_ind_table_init_attr* init);
int destroy_rwq_ind_table(ibv_rwq_ind_table* table);

// nullptr with errno. Of the attributes it reads neither wc_flags nor comp_mask, nor the domain.
CompletionQueue* make_cq(ibv_context* context, const ibv_cq_init_attr_ex& wanted);
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* wanted);
int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attr);
int query_rt_values(ibv_context* context, ibv_values_ex* values);
// Returns the value of a clock of the device at this virtual time (hca_core_clock,
// completion_timestamp_mask).
std::uint64_t to_clock_ticks(std::uint64_t picoseconds, const DeviceLimits& limits);

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr);
int dealloc_td(ibv_td* td);
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr);

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* init);
ibv_mr* alloc_null_mr(ibv_pd* pd);
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* sg_list,
              std::uint32_t num_sge);
ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr);
int free_dm(ibv_dm* dm);
ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length,
                  unsigned access);

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type);
int dealloc_mw(ibv_mw* mw);
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);
// Who posts a BIND_MW.
enum class Binder : std::uint8_t { kWorkRequest, kVerb };
// Puts what a BIND_MW says into the slot; an errno.
int write_binding(const ibv_send_wr& wr, const Personality& personality, Binder binder,
                  SendWqe& wqe);

}  // namespace simverbs::abi
