// The attributes that a device reports: ibv_query_device(3), and what ibv_query_device_ex(3) adds.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include <infiniband/verbs.h>

#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"

namespace simverbs::abi {
namespace {

constexpr std::uint32_t qp_types(Services services) {
    std::uint32_t types = 0;
    for (const ServiceProperties& row : kServices) {
        types |= services.contains(row.service) ? 1U << row.ibv_qp_type : 0U;
    }
    return types;
}

void fill_on_demand_paging(const OnDemandPaging& odp, ibv_device_attr_ex& attr) {
    attr.odp_caps.general_caps =
        (odp.explicit_regions ? static_cast<unsigned>(IBV_ODP_SUPPORT) : 0U) |
        (odp.implicit_regions ? static_cast<unsigned>(IBV_ODP_SUPPORT_IMPLICIT) : 0U);
    attr.odp_caps.per_transport_caps.rc_odp_caps = odp.rc;
    attr.odp_caps.per_transport_caps.uc_odp_caps = odp.uc;
    attr.odp_caps.per_transport_caps.ud_odp_caps = odp.ud;
    attr.xrc_odp_caps = odp.xrc;
}

void fill_tag_matching(const TagMatchingLimits& limits, ibv_device_attr_ex& attr) {
    attr.tm_caps.max_rndv_hdr_size = limits.max_rendezvous_message_bytes;
    attr.tm_caps.max_num_tags = limits.max_tags;
    attr.tm_caps.flags =
        limits.services.contains(Service::kRc) ? static_cast<unsigned>(IBV_TM_CAP_RC) : 0U;
    attr.tm_caps.max_ops = limits.max_operations;
    attr.tm_caps.max_sge = limits.max_segments;
}

// A feature without a function behind it is reported as absent, whatever the device has.
void fill_extended(const DeviceLimits& limits, ibv_device_attr_ex& attr) {
    attr.completion_timestamp_mask = limits.completion_timestamp_mask;
    attr.hca_core_clock = limits.core_clock_khz;
    attr.cq_mod_caps.max_cq_count = limits.max_cq_moderation_count;
    attr.cq_mod_caps.max_cq_period = limits.max_cq_moderation_microseconds;
    attr.device_cap_flags_ex = (limits.caps & kModelledCaps).bits;
    attr.pci_atomic_caps = {limits.pci_atomic_sizes, limits.pci_atomic_sizes,
                            limits.pci_atomic_sizes};
    if (kModelledFeatures.on_demand_paging) {
        fill_on_demand_paging(limits.odp, attr);
    }
    if (kModelledFeatures.segmentation_offload) {
        attr.tso_caps = {limits.max_tso_bytes, qp_types(limits.tso_services)};
    }
    if (kModelledFeatures.receive_side_scaling) {
        attr.rss_caps = {qp_types(limits.rss_services), limits.max_rwq_indirection_tables,
                         limits.max_rwq_indirection_table_size, limits.rx_hash_fields,
                         limits.rx_hash_functions};
        attr.max_wq_type_rq = limits.max_wq_type_rq;
    }
    if (kModelledFeatures.packet_pacing) {
        attr.packet_pacing_caps = {limits.rate_limit_min_kbps, limits.rate_limit_max_kbps,
                                   qp_types(limits.rate_limit_services)};
    }
    if (kModelledFeatures.raw_packets) {
        attr.raw_packet_caps = limits.raw_packet_caps.bits;
    }
    fill_tag_matching(limits.tag_matching, attr);
    if (kModelledFeatures.device_memory) {
        attr.max_dm_size = limits.max_device_memory_bytes;
    }
}

}  // namespace

SIMVERBS_ABI int simverbs_abi_ibv_query_device(ibv_context* handle, ibv_device_attr* attr) {
    Context& context = as_object(handle);
    if (!context.admits()) {
        return context.refuse_use("ibv_query_device");
    }
    const Personality& personality = context.personality();
    const DeviceLimits& limits = personality.limits;
    *attr = {};
    std::snprintf(attr->fw_ver, sizeof attr->fw_ver, "%s",
                  std::string(personality.identity.firmware).c_str());
    attr->node_guid = attr->sys_image_guid =
        simverbs_abi_ibv_get_device_guid(context.device().c_handle());
    attr->max_mr_size = limits.max_mr_bytes;
    attr->page_size_cap = limits.page_size_cap;
    attr->vendor_id = personality.identity.vendor_id;
    attr->vendor_part_id = personality.identity.vendor_part_id;
    attr->hw_ver = personality.identity.hw_ver;
    attr->max_qp = limits.max_qp;
    attr->max_qp_wr = limits.max_qp_wr;
    attr->device_cap_flags = static_cast<unsigned>((limits.caps & kModelledCaps).bits);
    attr->max_sge = limits.max_sge;
    attr->max_sge_rd = limits.max_sge_rd;
    attr->max_cq = limits.max_cq;
    attr->max_cqe = limits.max_cqe;
    attr->max_mr = limits.max_mr;
    attr->max_pd = limits.max_pd;
    attr->max_mw = limits.max_mw;
    attr->max_qp_rd_atom = limits.max_qp_rd_atom;
    attr->max_res_rd_atom = limits.max_res_rd_atom;
    attr->max_qp_init_rd_atom = limits.max_qp_init_rd_atom;
    attr->atomic_cap = static_cast<ibv_atomic_cap>(limits.atomic_scope);
    attr->max_raw_ethy_qp = limits.max_raw_ethy_qp;
    attr->max_mcast_grp = limits.max_mcast_grp;
    attr->max_mcast_qp_attach = limits.max_mcast_qp_attach;
    attr->max_total_mcast_qp_attach = limits.max_total_mcast_qp_attach;
    attr->max_ah = limits.max_ah;
    attr->max_srq = limits.max_srq;
    attr->max_srq_wr = limits.max_srq_wr;
    attr->max_srq_sge = limits.max_srq_sge;
    attr->max_pkeys = limits.max_pkeys;
    attr->local_ca_ack_delay = limits.local_ca_ack_delay;
    attr->phys_port_cnt = static_cast<std::uint8_t>(context.device().info().ports);
    return 0;
}

int query_device_ex(ibv_context* handle, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t size) {
    if (input != nullptr && input->comp_mask != 0) {
        return refuse("ibv_query_device_ex", EINVAL, "comp_mask {:#x} of the input has to be 0",
                      input->comp_mask);
    }
    if (size < sizeof attr->orig_attr) {
        return refuse("ibv_query_device_ex", EINVAL, "a size of {} is less than that of attr {}",
                      size, sizeof attr->orig_attr);
    }
    const Context& context = as_object(handle);
    ibv_device_attr_ex full{};
    if (const int error = simverbs_abi_ibv_query_device(handle, &full.orig_attr); error != 0) {
        return error;
    }
    full.phys_port_cnt_ex = context.device().info().ports;
    fill_extended(context.personality().limits, full);
    std::memset(attr, 0, size);
    std::memcpy(attr, &full, std::min(size, sizeof full));
    return 0;
}

}  // namespace simverbs::abi
