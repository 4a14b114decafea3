#include "two_hosts.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mman.h>

namespace verbs_test {
namespace {

constexpr std::size_t kPageBytes = 4096;
// More polls than any test has events.
constexpr int kPatience = 200'000;

}  // namespace

void End::Free::operator()(std::uint8_t* block) const {
    std::free(block);
}

End::End(std::size_t device, const Connection& with)
    : memory_(static_cast<std::uint8_t*>(std::aligned_alloc(kPageBytes, kBytes))) {
    std::memset(memory_.get(), 0, kBytes);
    ibv_device** devices = ibv_get_device_list(nullptr);
    context = ibv_open_device(devices[device]);
    ibv_free_device_list(devices);
    fcntl(context->async_fd, F_SETFL, O_NONBLOCK);
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, with.cq_entries, this, nullptr, 0);
    mr = ibv_reg_mr(pd, memory_.get(), kBytes, kAllAccess);
    if (with.shared_receives > 0) {
        ibv_srq_init_attr shared{};
        shared.attr.max_wr = with.shared_receives;
        shared.attr.max_sge = 2;
        srq = ibv_create_srq(pd, &shared);
    }
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.srq = srq;
    init.cap = with.cap;
    init.qp_type = with.type;
    init.sq_sig_all = with.signal_all;
    qp = ibv_create_qp(pd, &init);
}

// Whatever a test has taken away itself is null.
End::~End() {
    events();
    if (qp != nullptr) {
        EXPECT_EQ(ibv_destroy_qp(qp), 0);
    }
    if (ah != nullptr) {
        EXPECT_EQ(ibv_destroy_ah(ah), 0);
    }
    if (srq != nullptr) {
        EXPECT_EQ(ibv_destroy_srq(srq), 0);
    }
    if (mr != nullptr) {
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
    }
    if (cq != nullptr) {
        EXPECT_EQ(ibv_destroy_cq(cq), 0);
    }
    if (pd != nullptr) {
        EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    }
    EXPECT_EQ(ibv_close_device(context), 0);
}

int End::receive(std::uint64_t id, std::vector<ibv_sge> segments) {
    ibv_recv_wr wr{};
    wr.wr_id = id;
    wr.sg_list = segments.data();
    wr.num_sge = static_cast<int>(segments.size());
    ibv_recv_wr* bad = nullptr;
    return srq == nullptr ? ibv_post_recv(qp, &wr, &bad) : ibv_post_srq_recv(srq, &wr, &bad);
}

ibv_wc End::wait() {
    ibv_wc wc{};
    for (int i = 0; i < kPatience; ++i) {
        const int found = ibv_poll_cq(cq, 1, &wc);
        if (found != 0) {
            EXPECT_EQ(found, 1);
            return wc;
        }
    }
    ADD_FAILURE() << "no completion";
    wc = {};
    wc.status = IBV_WC_GENERAL_ERR;
    return wc;
}

std::vector<ibv_wc> End::drain() {
    std::vector<ibv_wc> all;
    ibv_wc wc{};
    while (ibv_poll_cq(cq, 1, &wc) == 1) {
        all.push_back(wc);
    }
    return all;
}

ibv_qp_attr End::query() {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr;
}

ibv_qp_state End::state() {
    return query().qp_state;
}

int End::to_state(ibv_qp_state state) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

std::vector<ibv_event_type> End::events() {
    std::vector<ibv_event_type> all;
    ibv_async_event event{};
    while (ibv_get_async_event(context, &event) == 0) {
        all.push_back(event.event_type);
        ibv_ack_async_event(&event);
    }
    return all;
}

Request& Request::compare_and_swap(std::uint64_t address, std::uint32_t rkey,
                                   std::uint64_t expected, std::uint64_t replacement) {
    wr_.wr.atomic.remote_addr = address;
    wr_.wr.atomic.rkey = rkey;
    wr_.wr.atomic.compare_add = expected;
    wr_.wr.atomic.swap = replacement;
    return *this;
}

Request& Request::fetch_and_add(std::uint64_t address, std::uint32_t rkey, std::uint64_t addend) {
    wr_.wr.atomic.remote_addr = address;
    wr_.wr.atomic.rkey = rkey;
    wr_.wr.atomic.compare_add = addend;
    return *this;
}

Request& Request::immediate(std::uint32_t value) {
    wr_.imm_data = htonl(value);
    return *this;
}

int Request::post(End& end) {
    wr_.sg_list = segments_.data();
    wr_.num_sge = static_cast<int>(segments_.size());
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(end.qp, &wr_, &bad);
    EXPECT_EQ(error != 0, bad == &wr_);
    return error;
}

void TwoHosts::SetUp() {
    ASSERT_EQ(simverbs_restart(), 0) << simverbs_last_error();
    ASSERT_EQ(simverbs_set_topology("star:2"), 0) << simverbs_last_error();
}

void TwoHosts::TearDown() {
    a.reset();
    b.reset();
    // For whoever compares runs: tests/determinism.
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(run_digest()));
    if (repeats) {
        RecordProperty("run_digest", text);
    }
    EXPECT_EQ(simverbs_restart(), 0) << simverbs_last_error();
}

ibv_qp_attr TwoHosts::init_attr(const Connection& with) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = with.access;
    attr.qkey = with.qkey;
    return attr;
}

int TwoHosts::init_mask(const Connection& with) {
    return with.type == IBV_QPT_UD ? IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY
                                   : kInitMask;
}

int TwoHosts::rtr_mask(const Connection& with) {
    switch (with.type) {
        case IBV_QPT_UD:
            return IBV_QP_STATE;
        case IBV_QPT_UC:
            return kRtrMask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
        default:
            return kRtrMask;
    }
}

int TwoHosts::rts_mask(const Connection& with) {
    return with.type == IBV_QPT_RC ? kRtsMask : IBV_QP_STATE | IBV_QP_SQ_PSN;
}

void take_away(void* pages, std::size_t bytes) {
    EXPECT_EQ(mmap(pages, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), pages);
}

void expect_reason(std::string_view words) {
    const std::string said = simverbs_last_error();
    EXPECT_NE(said.find(words), std::string::npos) << '"' << words << "\" is not in: " << said;
}

std::uint8_t ipv4_gid_index(ibv_context* context) {
    constexpr std::uint8_t kEntries = 4;
    ibv_gid_entry entry{};
    for (std::uint8_t i = 0; i < kEntries; ++i) {
        if (ibv_query_gid_ex(context, 1, i, &entry, 0) == 0 &&
            entry.gid_type == IBV_GID_TYPE_ROCE_V2 && entry.gid.global.subnet_prefix == 0) {
            return i;
        }
    }
    ADD_FAILURE() << "no RoCE v2 address over IPv4";
    return 0;
}

ibv_qp_attr TwoHosts::rtr_attr(const End& peer, const Connection& with) {
    ibv_port_attr port{};
    EXPECT_EQ(ibv_query_port(peer.context, 1, &port), 0);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = with.mtu;
    attr.dest_qp_num = peer.qp->qp_num;
    attr.rq_psn = kPsn;
    attr.max_dest_rd_atomic = with.reads;
    attr.min_rnr_timer = with.min_rnr_timer;
    attr.ah_attr.dlid = port.lid;
    attr.ah_attr.port_num = 1;
    if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        attr.ah_attr.is_global = 1;
        const std::uint8_t index = with.gid_index ? *with.gid_index : ipv4_gid_index(peer.context);
        attr.ah_attr.grh.sgid_index = index;
        EXPECT_EQ(ibv_query_gid(peer.context, 1, index, &attr.ah_attr.grh.dgid), 0);
    }
    return attr;
}

ibv_qp_attr TwoHosts::rts_attr(const Connection& with) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = with.timeout;
    attr.retry_cnt = with.retries;
    attr.rnr_retry = with.rnr_retries;
    attr.sq_psn = kPsn;
    attr.max_rd_atomic = with.reads;
    return attr;
}

void TwoHosts::connect(const Connection& with) {
    a = std::make_unique<End>(0, with);
    b = std::make_unique<End>(1, with);
    ASSERT_NE(a->qp, nullptr);
    ASSERT_NE(b->qp, nullptr);
    bring_up(with);
}

void TwoHosts::bring_up(End& one, End& other, const Connection& with) {
    for (End* end : {&one, &other}) {
        const End& peer = end == &one ? other : one;
        ibv_qp_attr attr = init_attr(with);
        ASSERT_EQ(ibv_modify_qp(end->qp, &attr, init_mask(with)), 0);
        attr = rtr_attr(peer, with);
        ASSERT_EQ(ibv_modify_qp(end->qp, &attr, rtr_mask(with)), 0);
        if (with.type == IBV_QPT_UD) {
            end->ah = ibv_create_ah(end->pd, &attr.ah_attr);
            ASSERT_NE(end->ah, nullptr);
        }
        attr = rts_attr(with);
        ASSERT_EQ(ibv_modify_qp(end->qp, &attr, rts_mask(with)), 0);
    }
}

void TwoHosts::pass(std::int64_t milliseconds) {
    ASSERT_EQ(simverbs_advance_ps(milliseconds * 1'000'000'000), 0) << simverbs_last_error();
}

std::int64_t TwoHosts::now_us() {
    std::int64_t now = 0;
    EXPECT_EQ(simverbs_now_ps(&now), 0);
    return now / 1'000'000;
}

std::uint64_t TwoHosts::run_digest() {
    std::uint64_t digest = 0;
    EXPECT_EQ(simverbs_run_digest(&digest), 0) << simverbs_last_error();
    return digest;
}

void TwoHosts::expect_silence() {
    constexpr std::int64_t kAnHour = 3'600'000;
    pass(kAnHour);
    EXPECT_TRUE(a->drain().empty());
    EXPECT_TRUE(b->drain().empty());
}

void TwoHosts::expect_works() {
    constexpr std::size_t kFrom = End::kBytes - 64;
    std::memset(a->at(kFrom), 0xA5, 16);
    std::memset(b->at(kFrom), 0, 16);
    ASSERT_EQ(b->receive(9001, {b->range(kFrom, 16)}), 0);
    ASSERT_EQ(Request(IBV_WR_SEND).id(9002).from(a->range(kFrom, 16)).post(*a), 0);
    EXPECT_EQ(b->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(a->wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(a->at(kFrom), b->at(kFrom), 16), 0);
}

}  // namespace verbs_test

void PrintTo(const ibv_wc& wc, std::ostream* out) {
    *out << "{id " << wc.wr_id << ", " << ibv_wc_status_str(wc.status) << ", opcode " << wc.opcode
         << ", " << wc.byte_len << " bytes}";
}
