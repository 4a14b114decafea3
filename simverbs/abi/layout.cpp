// The layout that compiled programs rely on, offset by offset: they read and write these structs
// through inline functions, so a moved member is a broken binary. The numbers were measured on
// rdma-core 44, 64 and 65 (x86-64); other processors have another pthread_mutex_t, hence other
// numbers, and are not checked.
#include <cstddef>
#include <type_traits>

#include "simverbs/abi/newer_abi.hpp"

#if defined(__x86_64__)

using simverbs::abi::CompCntr;
using simverbs::abi::CompCntrCaps;
using simverbs::abi::CompCntrInitAttr;
using simverbs::abi::MrInitAttr;
using simverbs::abi::NewerPortAttr;
using simverbs::abi::NewerQpEx;
using simverbs::abi::NewerVerbsContext;
using simverbs::abi::QpAttachCompCntrAttr;

#define SIZE(type, bytes) static_assert(sizeof(type) == (bytes))
#define AT(type, member, offset) static_assert(offsetof(type, member) == (offset))
// Bytes from a slot to the ibv_context that a program holds; the same in every release.
#define BELOW_CONTEXT(slot, distance) \
    static_assert(offsetof(verbs_context, context) - offsetof(verbs_context, slot) == (distance))
#define NEWER_BELOW_CONTEXT(slot, distance)                                               \
    static_assert(offsetof(NewerVerbsContext, older) + offsetof(verbs_context, context) - \
                      offsetof(NewerVerbsContext, slot) ==                                \
                  (distance))

SIZE(verbs_context, 648);
SIZE(ibv_context, 328);
SIZE(ibv_context_ops, 256);
SIZE(ibv_device, 664);
SIZE(ibv_qp, 160);
SIZE(ibv_qp_ex, 352);
SIZE(ibv_cq, 128);
SIZE(ibv_cq_ex, 288);
SIZE(ibv_srq, 128);
SIZE(ibv_wq, 152);
SIZE(ibv_mr, 48);
SIZE(ibv_pd, 16);
SIZE(ibv_ah, 24);
SIZE(ibv_mw, 32);
SIZE(ibv_comp_channel, 16);
SIZE(ibv_port_attr, 52);
SIZE(ibv_device_attr, 232);
SIZE(ibv_device_attr_ex, 400);
SIZE(ibv_wc, 48);
SIZE(ibv_send_wr, 128);
SIZE(ibv_recv_wr, 32);
SIZE(ibv_gid_entry, 32);
SIZE(ibv_dm, 32);
SIZE(ibv_td, 8);
SIZE(ibv_xrcd, 8);
SIZE(ibv_counters, 8);
SIZE(ibv_flow, 24);
SIZE(ibv_rwq_ind_table, 24);
SIZE(ibv_qp_attr, 144);
SIZE(ibv_qp_init_attr, 64);
SIZE(ibv_qp_init_attr_ex, 136);
SIZE(ibv_srq_init_attr_ex, 64);
SIZE(ibv_cq_init_attr_ex, 56);
SIZE(ibv_async_event, 16);
SIZE(ibv_ah_attr, 32);

// The client finds the context's extension below it: it must be the last member.
static_assert(offsetof(verbs_context, context) + sizeof(ibv_context) == sizeof(verbs_context));
BELOW_CONTEXT(sz, 8);
BELOW_CONTEXT(_ABI_placeholder3, 16);
BELOW_CONTEXT(close_xrcd, 24);
BELOW_CONTEXT(open_xrcd, 32);
BELOW_CONTEXT(create_srq_ex, 40);
BELOW_CONTEXT(get_srq_num, 48);
BELOW_CONTEXT(create_qp_ex, 56);
BELOW_CONTEXT(open_qp, 64);
BELOW_CONTEXT(ABI_placeholder1, 72);
BELOW_CONTEXT(ibv_create_flow, 80);
BELOW_CONTEXT(ABI_placeholder2, 88);
BELOW_CONTEXT(ibv_destroy_flow, 96);
BELOW_CONTEXT(query_device_ex, 104);
BELOW_CONTEXT(priv, 112);
BELOW_CONTEXT(create_cq_ex, 120);
BELOW_CONTEXT(query_rt_values, 128);
BELOW_CONTEXT(create_wq, 136);
BELOW_CONTEXT(modify_wq, 144);
BELOW_CONTEXT(destroy_wq, 152);
BELOW_CONTEXT(create_rwq_ind_table, 160);
BELOW_CONTEXT(destroy_rwq_ind_table, 168);
BELOW_CONTEXT(post_srq_ops, 176);
BELOW_CONTEXT(modify_cq, 184);
BELOW_CONTEXT(alloc_td, 192);
BELOW_CONTEXT(dealloc_td, 200);
BELOW_CONTEXT(alloc_parent_domain, 208);
BELOW_CONTEXT(modify_qp_rate_limit, 216);
BELOW_CONTEXT(create_flow_action_esp, 224);
BELOW_CONTEXT(destroy_flow_action, 232);
BELOW_CONTEXT(modify_flow_action_esp, 240);
BELOW_CONTEXT(free_dm, 248);
BELOW_CONTEXT(alloc_dm, 256);
BELOW_CONTEXT(reg_dm_mr, 264);
BELOW_CONTEXT(destroy_counters, 272);
BELOW_CONTEXT(create_counters, 280);
BELOW_CONTEXT(attach_counters_point_flow, 288);
BELOW_CONTEXT(read_counters, 296);
BELOW_CONTEXT(alloc_null_mr, 304);
BELOW_CONTEXT(advise_mr, 312);
BELOW_CONTEXT(query_port, 320);

// The slots that inline functions call, counted from the context.
static_assert(offsetof(ibv_context, ops) + offsetof(ibv_context_ops, poll_cq) == 0x60);
AT(ibv_device, _ops, 0);
AT(ibv_device, node_type, 16);
AT(ibv_device, transport_type, 20);
AT(ibv_device, name, 24);
AT(ibv_device, dev_name, 88);
AT(ibv_device, dev_path, 152);
AT(ibv_device, ibdev_path, 408);

AT(ibv_context, device, 0);
AT(ibv_context, ops, 8);
AT(ibv_context, cmd_fd, 264);
AT(ibv_context, async_fd, 268);
AT(ibv_context, num_comp_vectors, 272);
AT(ibv_context, mutex, 280);
AT(ibv_context, abi_compat, 320);

AT(ibv_context_ops, _compat_query_device, 0);
AT(ibv_context_ops, _compat_query_port, 8);
AT(ibv_context_ops, alloc_mw, 56);
AT(ibv_context_ops, bind_mw, 64);
AT(ibv_context_ops, dealloc_mw, 72);
AT(ibv_context_ops, poll_cq, 88);
AT(ibv_context_ops, req_notify_cq, 96);
AT(ibv_context_ops, post_srq_recv, 160);
AT(ibv_context_ops, post_send, 200);
AT(ibv_context_ops, post_recv, 208);
AT(ibv_context_ops, _compat_async_event, 248);

AT(ibv_qp_ex, qp_base, 0);
AT(ibv_qp_ex, comp_mask, 160);
AT(ibv_qp_ex, wr_id, 168);
AT(ibv_qp_ex, wr_flags, 176);
AT(ibv_qp_ex, wr_atomic_cmp_swp, 184);
AT(ibv_qp_ex, wr_atomic_fetch_add, 192);
AT(ibv_qp_ex, wr_bind_mw, 200);
AT(ibv_qp_ex, wr_local_inv, 208);
AT(ibv_qp_ex, wr_rdma_read, 216);
AT(ibv_qp_ex, wr_rdma_write, 224);
AT(ibv_qp_ex, wr_rdma_write_imm, 232);
AT(ibv_qp_ex, wr_send, 240);
AT(ibv_qp_ex, wr_send_imm, 248);
AT(ibv_qp_ex, wr_send_inv, 256);
AT(ibv_qp_ex, wr_send_tso, 264);
AT(ibv_qp_ex, wr_set_ud_addr, 272);
AT(ibv_qp_ex, wr_set_xrc_srqn, 280);
AT(ibv_qp_ex, wr_set_inline_data, 288);
AT(ibv_qp_ex, wr_set_inline_data_list, 296);
AT(ibv_qp_ex, wr_set_sge, 304);
AT(ibv_qp_ex, wr_set_sge_list, 312);
AT(ibv_qp_ex, wr_start, 320);
AT(ibv_qp_ex, wr_complete, 328);
AT(ibv_qp_ex, wr_abort, 336);
AT(ibv_qp_ex, wr_atomic_write, 344);

AT(ibv_cq_ex, context, 0);
AT(ibv_cq_ex, channel, 8);
AT(ibv_cq_ex, cq_context, 16);
AT(ibv_cq_ex, handle, 24);
AT(ibv_cq_ex, cqe, 28);
AT(ibv_cq_ex, mutex, 32);
AT(ibv_cq_ex, cond, 72);
AT(ibv_cq_ex, comp_events_completed, 120);
AT(ibv_cq_ex, async_events_completed, 124);
AT(ibv_cq_ex, comp_mask, 128);
AT(ibv_cq_ex, status, 132);
AT(ibv_cq_ex, wr_id, 136);
AT(ibv_cq_ex, start_poll, 144);
AT(ibv_cq_ex, next_poll, 152);
AT(ibv_cq_ex, end_poll, 160);
AT(ibv_cq_ex, read_opcode, 168);
AT(ibv_cq_ex, read_vendor_err, 176);
AT(ibv_cq_ex, read_byte_len, 184);
AT(ibv_cq_ex, read_imm_data, 192);
AT(ibv_cq_ex, read_qp_num, 200);
AT(ibv_cq_ex, read_src_qp, 208);
AT(ibv_cq_ex, read_wc_flags, 216);
AT(ibv_cq_ex, read_slid, 224);
AT(ibv_cq_ex, read_sl, 232);
AT(ibv_cq_ex, read_dlid_path_bits, 240);
AT(ibv_cq_ex, read_completion_ts, 248);
AT(ibv_cq_ex, read_cvlan, 256);
AT(ibv_cq_ex, read_flow_tag, 264);
AT(ibv_cq_ex, read_tm_info, 272);
AT(ibv_cq_ex, read_completion_wallclock_ns, 280);

AT(ibv_qp, context, 0);
AT(ibv_qp, qp_context, 8);
AT(ibv_qp, pd, 16);
AT(ibv_qp, send_cq, 24);
AT(ibv_qp, recv_cq, 32);
AT(ibv_qp, srq, 40);
AT(ibv_qp, handle, 48);
AT(ibv_qp, qp_num, 52);
AT(ibv_qp, state, 56);
AT(ibv_qp, qp_type, 60);
AT(ibv_qp, mutex, 64);
AT(ibv_qp, cond, 104);
AT(ibv_qp, events_completed, 152);

AT(ibv_wq, context, 0);
AT(ibv_wq, wq_context, 8);
AT(ibv_wq, pd, 16);
AT(ibv_wq, cq, 24);
AT(ibv_wq, wq_num, 32);
AT(ibv_wq, handle, 36);
AT(ibv_wq, state, 40);
AT(ibv_wq, wq_type, 44);
AT(ibv_wq, post_recv, 48);
AT(ibv_wq, mutex, 56);
AT(ibv_wq, cond, 96);
AT(ibv_wq, events_completed, 144);
AT(ibv_wq, comp_mask, 148);

AT(ibv_srq, context, 0);
AT(ibv_srq, srq_context, 8);
AT(ibv_srq, pd, 16);
AT(ibv_srq, handle, 24);
AT(ibv_srq, mutex, 32);
AT(ibv_srq, cond, 72);
AT(ibv_srq, events_completed, 120);

AT(ibv_comp_channel, context, 0);
AT(ibv_comp_channel, fd, 8);
AT(ibv_comp_channel, refcnt, 12);

AT(ibv_mr, context, 0);
AT(ibv_mr, pd, 8);
AT(ibv_mr, addr, 16);
AT(ibv_mr, length, 24);
AT(ibv_mr, handle, 32);
AT(ibv_mr, lkey, 36);
AT(ibv_mr, rkey, 40);

AT(ibv_pd, context, 0);
AT(ibv_pd, handle, 8);

AT(ibv_ah, context, 0);
AT(ibv_ah, pd, 8);
AT(ibv_ah, handle, 16);

AT(ibv_mw, context, 0);
AT(ibv_mw, pd, 8);
AT(ibv_mw, rkey, 16);
AT(ibv_mw, handle, 20);
AT(ibv_mw, type, 24);

AT(ibv_dm, context, 0);
AT(ibv_dm, memcpy_to_dm, 8);
AT(ibv_dm, memcpy_from_dm, 16);
AT(ibv_dm, comp_mask, 24);

AT(ibv_port_attr, link_layer, 46);
AT(ibv_port_attr, flags, 47);
AT(ibv_port_attr, port_cap_flags2, 48);

AT(ibv_device_attr_ex, orig_attr, 0);
AT(ibv_device_attr_ex, comp_mask, 232);
AT(ibv_device_attr_ex, odp_caps, 240);
AT(ibv_device_attr_ex, completion_timestamp_mask, 264);
AT(ibv_device_attr_ex, hca_core_clock, 272);
AT(ibv_device_attr_ex, device_cap_flags_ex, 280);
AT(ibv_device_attr_ex, tso_caps, 288);
AT(ibv_device_attr_ex, rss_caps, 296);
AT(ibv_device_attr_ex, max_wq_type_rq, 328);
AT(ibv_device_attr_ex, packet_pacing_caps, 332);
AT(ibv_device_attr_ex, raw_packet_caps, 344);
AT(ibv_device_attr_ex, tm_caps, 348);
AT(ibv_device_attr_ex, cq_mod_caps, 368);
AT(ibv_device_attr_ex, max_dm_size, 376);
AT(ibv_device_attr_ex, pci_atomic_caps, 384);
AT(ibv_device_attr_ex, xrc_odp_caps, 392);
AT(ibv_device_attr_ex, phys_port_cnt_ex, 396);

// A queue pair handle is its extended struct, a completion queue likewise.
static_assert(std::is_standard_layout_v<ibv_qp_ex> && std::is_standard_layout_v<ibv_cq_ex>);
static_assert(offsetof(ibv_cq_ex, comp_mask) == sizeof(ibv_cq));
static_assert(sizeof(ibv_gid_entry) == 32, "entry size that _ibv_query_gid_ex is called with");

// Newer than Debian 12.
SIZE(NewerVerbsContext, 696);
SIZE(NewerQpEx, 360);
SIZE(NewerPortAttr, 56);
NEWER_BELOW_CONTEXT(alloc_dmah, 328);
NEWER_BELOW_CONTEXT(dealloc_dmah, 336);
NEWER_BELOW_CONTEXT(reg_mr_ex, 344);
NEWER_BELOW_CONTEXT(dm_export_dmabuf_fd, 352);
NEWER_BELOW_CONTEXT(alloc_buf, 360);
NEWER_BELOW_CONTEXT(free_buf, 368);
AT(NewerQpEx, wr_flush, 352);
AT(NewerPortAttr, active_speed_ex, 52);
SIZE(MrInitAttr, 72);
AT(MrInitAttr, length, 0);
AT(MrInitAttr, access, 8);
AT(MrInitAttr, comp_mask, 16);
AT(MrInitAttr, iova, 24);
AT(MrInitAttr, address, 32);
AT(MrInitAttr, descriptor, 40);
AT(MrInitAttr, descriptor_offset, 48);
AT(MrInitAttr, dma_handle, 56);
AT(MrInitAttr, buffer, 64);
SIZE(CompCntr, 16);
AT(CompCntr, handle, 8);
SIZE(CompCntrCaps, 16);
AT(CompCntrCaps, max_counters, 8);
AT(CompCntrCaps, supported_qp_attach_ops, 12);
SIZE(CompCntrInitAttr, 12);
AT(CompCntrInitAttr, type, 4);
AT(CompCntrInitAttr, flags, 8);
SIZE(QpAttachCompCntrAttr, 8);
AT(QpAttachCompCntrAttr, op_mask, 4);
static_assert(simverbs::abi::kWcFlush + 1 == IBV_WC_ATOMIC_WRITE);
static_assert(simverbs::abi::kWrFlush + 1 == IBV_WR_ATOMIC_WRITE);
static_assert(simverbs::abi::kEventDeviceSpeedChange == IBV_EVENT_WQ_FATAL + 1);

#endif
