#include "tag_matching.hpp"

namespace verbs_test {

void TagMatching::TearDown() {
    if (tags != nullptr) {
        EXPECT_EQ(ibv_destroy_qp(b->qp), 0);
        b->qp = nullptr;
        b->srq = nullptr;
        EXPECT_EQ(ibv_destroy_srq(tags), 0);
        EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
    }
    TwoHosts::TearDown();
}

void TagMatching::make_tag_queue(const TagLimits& limits) {
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = limits.cq_entries;
    wanted.wc_flags = IBV_WC_EX_WITH_TM_INFO | IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_QP_NUM |
                      IBV_WC_EX_WITH_IMM;
    ex = ibv_create_cq_ex(b->context, &wanted);
    ASSERT_NE(ex, nullptr);
    ibv_srq_init_attr_ex init{};
    init.attr = {.max_wr = limits.receives, .max_sge = 1, .srq_limit = 0};
    init.comp_mask =
        IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
    init.srq_type = IBV_SRQT_TM;
    init.pd = b->pd;
    init.cq = ibv_cq_ex_to_cq(ex);
    init.tm_cap = {limits.tags, limits.operations};
    tags = ibv_create_srq_ex(b->context, &init);
    ASSERT_NE(tags, nullptr) << std::strerror(errno);
}

void TagMatching::connect_tags(const TagLimits& limits, const Connection& with) {
    connect(with);
    make_tag_queue(limits);
    ASSERT_NE(tags, nullptr);
    ASSERT_EQ(ibv_destroy_qp(b->qp), 0);
    ibv_qp_init_attr init{};
    init.send_cq = b->cq;
    init.recv_cq = ibv_cq_ex_to_cq(ex);
    init.srq = tags;
    init.cap = with.cap;
    init.qp_type = IBV_QPT_RC;
    b->qp = ibv_create_qp(b->pd, &init);
    ASSERT_NE(b->qp, nullptr);
    b->srq = tags;
    ASSERT_EQ(a->to_state(IBV_QPS_RESET), 0);
    bring_up(with);
}

int TagMatching::add(std::uint64_t receive_id, std::uint64_t tag,
                     const std::vector<ibv_sge>& buffer, std::uint64_t mask, int flags,
                     std::uint32_t seen) {
    std::vector<ibv_sge> segments = buffer;
    ibv_ops_wr op{};
    op.wr_id = receive_id + 1000;
    op.opcode = IBV_WR_TAG_ADD;
    op.flags = flags;
    op.tm.unexpected_cnt = seen;
    op.tm.add.recv_wr_id = receive_id;
    op.tm.add.sg_list = segments.data();
    op.tm.add.num_sge = static_cast<int>(segments.size());
    op.tm.add.tag = tag;
    op.tm.add.mask = mask;
    ibv_ops_wr* bad = nullptr;
    const int error = ibv_post_srq_ops(tags, &op, &bad);
    EXPECT_EQ(bad, error == 0 ? nullptr : &op);
    last_handle = op.tm.handle;
    return error;
}

int TagMatching::remove(std::uint32_t handle, int flags, std::uint32_t seen) {
    ibv_ops_wr op{};
    op.wr_id = handle + 2000;
    op.opcode = IBV_WR_TAG_DEL;
    op.flags = flags;
    op.tm.unexpected_cnt = seen;
    op.tm.handle = handle;
    ibv_ops_wr* bad = nullptr;
    return ibv_post_srq_ops(tags, &op, &bad);
}

int TagMatching::sync(std::uint32_t seen, int flags) {
    ibv_ops_wr op{};
    op.wr_id = 3000;
    op.opcode = IBV_WR_TAG_SYNC;
    op.flags = flags;
    op.tm.unexpected_cnt = seen;
    ibv_ops_wr* bad = nullptr;
    return ibv_post_srq_ops(tags, &op, &bad);
}

ibv_tmh TagMatching::header(ibv_tmh_op opcode, std::uint64_t tag, std::uint32_t priv) {
    ibv_tmh made{};
    made.opcode = static_cast<std::uint8_t>(opcode);
    made.app_ctx = htobe32(priv);
    made.tag = htobe64(tag);
    return made;
}

// The header goes inline: the next message may have another one.
void TagMatching::send_eager(std::uint64_t tag, std::uint32_t payload, std::uint32_t priv,
                             std::size_t from) {
    const ibv_tmh made = header(IBV_TMH_EAGER, tag, priv);
    if (payload <= 128) {
        std::vector<std::uint8_t> bytes(sizeof made + payload);
        std::memcpy(bytes.data(), &made, sizeof made);
        std::memcpy(bytes.data() + sizeof made, a->at(from), payload);
        send_bytes(bytes);
        return;
    }
    std::memcpy(a->at(0), &made, sizeof made);
    a->drain();
    ASSERT_EQ(
        Request(IBV_WR_SEND).from(a->range(0, sizeof made)).from(a->range(from, payload)).post(*a),
        0);
}

void TagMatching::send_rendezvous(std::uint64_t tag, std::uint32_t length, std::uint32_t priv,
                                  std::size_t from, std::uint32_t extra) {
    struct {
        ibv_tmh tmh;
        ibv_rvh rvh;
    } made{};
    made.tmh = header(IBV_TMH_RNDV, tag, priv);
    made.rvh.va = htobe64(a->address(from));
    made.rvh.rkey = htobe32(a->mr->rkey);
    made.rvh.len = htobe32(length);
    std::vector<std::uint8_t> bytes(sizeof made + extra, 0x5A);
    std::memcpy(bytes.data(), &made, sizeof made);
    send_bytes(bytes);
}

void TagMatching::send_bytes(const std::vector<std::uint8_t>& bytes) {
    const ibv_sge segment{reinterpret_cast<std::uint64_t>(bytes.data()),
                          static_cast<std::uint32_t>(bytes.size()), 0};
    a->drain();
    ASSERT_EQ(Request(IBV_WR_SEND).with(IBV_SEND_INLINE).from(segment).post(*a), 0);
}

std::optional<TagCompletion> TagMatching::poll() {
    ibv_poll_cq_attr attr{};
    if (ibv_start_poll(ex, &attr) != 0) {
        return std::nullopt;
    }
    TagCompletion found;
    found.wr_id = ex->wr_id;
    found.status = ex->status;
    found.qp_num = ibv_wc_read_qp_num(ex);
    const bool is_defined = found.status == IBV_WC_SUCCESS || found.status == IBV_WC_TM_ERR ||
                            found.status == IBV_WC_TM_RNDV_INCOMPLETE;
    if (is_defined) {
        found.opcode = ibv_wc_read_opcode(ex);
        found.flags = ibv_wc_read_wc_flags(ex);
        found.bytes = ibv_wc_read_byte_len(ex);
        ibv_wc_tm_info info{};
        ibv_wc_read_tm_info(ex, &info);
        found.tag = info.tag;
        found.priv = info.priv;
    }
    ibv_end_poll(ex);
    return found;
}

TagCompletion TagMatching::next() {
    for (int i = 0; i < 100'000; ++i) {
        if (const auto found = poll()) {
            return *found;
        }
    }
    ADD_FAILURE() << "no completion came";
    return {};
}

}  // namespace verbs_test
