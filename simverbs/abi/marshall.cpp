// Kernel structures to those of verbs.h and back, as librdmacm asks for. Field by field: reserved
// bytes and padding of the destination stay as they are, and a kernel word is cut to the field's
// width.
#include <cstring>

#include "simverbs/abi/provider_abi.hpp"

namespace {

template <typename To, typename From>
void assign(To& to, From from) {
    to = static_cast<To>(from);
}

void copy_gid(void* to, const void* from) {
    std::memcpy(to, from, sizeof(ibv_gid));
}

// Copies the fields that ibv_sa_path_rec and ib_user_path_rec have in common: all of it, in another
// order.
template <typename To, typename From>
void copy_path(To& to, const From& from) {
    copy_gid(&to.dgid, &from.dgid);
    copy_gid(&to.sgid, &from.sgid);
    to.dlid = from.dlid;
    to.slid = from.slid;
    assign(to.raw_traffic, from.raw_traffic);
    to.flow_label = from.flow_label;
    to.hop_limit = from.hop_limit;
    to.traffic_class = from.traffic_class;
    assign(to.reversible, from.reversible);
    to.numb_path = from.numb_path;
    to.pkey = from.pkey;
    to.sl = from.sl;
    to.mtu_selector = from.mtu_selector;
    assign(to.mtu, from.mtu);
    to.rate_selector = from.rate_selector;
    to.rate = from.rate;
    to.packet_life_time_selector = from.packet_life_time_selector;
    to.packet_life_time = from.packet_life_time;
    to.preference = from.preference;
}

}  // namespace

void simverbs_abi_ibv_copy_ah_attr_from_kern(ibv_ah_attr* dst, const ib_uverbs_ah_attr* src) {
    copy_gid(&dst->grh.dgid, src->grh.dgid);
    dst->grh.flow_label = src->grh.flow_label;
    dst->grh.sgid_index = src->grh.sgid_index;
    dst->grh.hop_limit = src->grh.hop_limit;
    dst->grh.traffic_class = src->grh.traffic_class;
    dst->dlid = src->dlid;
    dst->sl = src->sl;
    dst->src_path_bits = src->src_path_bits;
    dst->static_rate = src->static_rate;
    dst->is_global = src->is_global;
    dst->port_num = src->port_num;
}

// qp_state is not copied: the state asked for is the caller's to set (librdmacm does).
void simverbs_abi_ibv_copy_qp_attr_from_kern(ibv_qp_attr* dst, const ib_uverbs_qp_attr* src) {
    assign(dst->cur_qp_state, src->cur_qp_state);
    assign(dst->path_mtu, src->path_mtu);
    assign(dst->path_mig_state, src->path_mig_state);
    dst->qkey = src->qkey;
    dst->rq_psn = src->rq_psn;
    dst->sq_psn = src->sq_psn;
    dst->dest_qp_num = src->dest_qp_num;
    assign(dst->qp_access_flags, src->qp_access_flags);

    dst->cap.max_send_wr = src->max_send_wr;
    dst->cap.max_recv_wr = src->max_recv_wr;
    dst->cap.max_send_sge = src->max_send_sge;
    dst->cap.max_recv_sge = src->max_recv_sge;
    dst->cap.max_inline_data = src->max_inline_data;

    simverbs_abi_ibv_copy_ah_attr_from_kern(&dst->ah_attr, &src->ah_attr);
    simverbs_abi_ibv_copy_ah_attr_from_kern(&dst->alt_ah_attr, &src->alt_ah_attr);

    dst->pkey_index = src->pkey_index;
    dst->alt_pkey_index = src->alt_pkey_index;
    dst->en_sqd_async_notify = src->en_sqd_async_notify;
    dst->sq_draining = src->sq_draining;
    dst->max_rd_atomic = src->max_rd_atomic;
    dst->max_dest_rd_atomic = src->max_dest_rd_atomic;
    dst->min_rnr_timer = src->min_rnr_timer;
    dst->port_num = src->port_num;
    dst->timeout = src->timeout;
    dst->retry_cnt = src->retry_cnt;
    dst->rnr_retry = src->rnr_retry;
    dst->alt_port_num = src->alt_port_num;
    dst->alt_timeout = src->alt_timeout;
}

void simverbs_abi_ibv_copy_path_rec_from_kern(ibv_sa_path_rec* dst, const ib_user_path_rec* src) {
    copy_path(*dst, *src);
}

void simverbs_abi_ibv_copy_path_rec_to_kern(ib_user_path_rec* dst, const ibv_sa_path_rec* src) {
    copy_path(*dst, *src);
}
