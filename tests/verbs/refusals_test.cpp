// Every verb that refuses says why: simverbs_last_error() names the verb, the value and what would
// be valid, whatever it said before.
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

constexpr std::uint32_t kNoHandle = 0xABCDEF;

struct Refusal {
    const char* verb;
    int error;
    std::vector<const char*> words;  // of the reason
    std::function<int()> call;       // an errno
};

int errno_of(const void* made) {
    return made == nullptr ? errno : 0;
}

class Refusals : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        connect();
    }
    static void expect(const std::vector<Refusal>& refusals) {
        for (const Refusal& refusal : refusals) {
            SCOPED_TRACE(refusal.verb);
            ASSERT_NE(simverbs_set("no_such_setting", "1"), 0);  // leaves another error
            errno = 0;
            EXPECT_EQ(refusal.call(), refusal.error);
            EXPECT_EQ(errno, refusal.error);
            const std::string said = simverbs_last_error();
            EXPECT_EQ(said.rfind(std::string(refusal.verb) + " refused", 0), 0U) << said;
            for (const char* const word : refusal.words) {
                EXPECT_NE(said.find(word), std::string::npos) << word << " is not in: " << said;
            }
        }
    }
    // Calls `verb` with a handle that names nothing.
    template <class Object, class Verb>
    static int without_handle(Object* object, Verb verb) {
        const std::uint32_t handle = object->handle;
        object->handle = kNoHandle;
        const int error = verb(object);
        object->handle = handle;
        return error;
    }
    [[nodiscard]] std::string number(std::uint32_t value) const {
        char text[16];
        std::snprintf(text, sizeof text, "%#x", value);
        return text;
    }

    ibv_qp_attr attr_{};
    ibv_qp_init_attr init_{};
    char bytes_[64]{};
};

TEST_F(Refusals, OfDestroyNameWhatStillUsesTheObject) {
    const std::string qp = "QP " + number(a->qp->qp_num);
    const std::string mr = "MR with lkey " + number(a->mr->lkey);
    expect({
        {"ibv_dealloc_pd",
         EBUSY,
         {"2 objects: ", qp.c_str(), mr.c_str()},
         [this] { return ibv_dealloc_pd(a->pd); }},
        {"ibv_destroy_cq",
         EBUSY,
         {"1 object: ", qp.c_str()},
         [this] { return ibv_destroy_cq(a->cq); }},
    });
    ibv_srq_init_attr srq_attr{};
    srq_attr.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
    ibv_srq* srq = ibv_create_srq(a->pd, &srq_attr);
    ibv_comp_channel* channel = ibv_create_comp_channel(a->context);
    ibv_cq* cq = ibv_create_cq(a->context, 4, nullptr, channel, 0);
    ibv_qp_init_attr with_srq{};
    with_srq.qp_type = IBV_QPT_RC;
    with_srq.srq = srq;
    with_srq.send_cq = with_srq.recv_cq = cq;
    with_srq.cap = {.max_send_wr = 1,
                    .max_recv_wr = 0,
                    .max_send_sge = 1,
                    .max_recv_sge = 0,
                    .max_inline_data = 0};
    ibv_qp* user = ibv_create_qp(a->pd, &with_srq);
    ASSERT_NE(user, nullptr);
    const std::string second = "1 object: QP " + number(user->qp_num);
    expect({
        {"ibv_destroy_srq", EBUSY, {second.c_str()}, [srq] { return ibv_destroy_srq(srq); }},
        {"ibv_destroy_comp_channel",
         EBUSY,
         {"1 CQ"},
         [channel] { return ibv_destroy_comp_channel(channel); }},
        {"ibv_dealloc_pd",
         EBUSY,
         {"4 objects: ", ", ..."},
         [this] { return ibv_dealloc_pd(a->pd); }},
    });
    EXPECT_EQ(ibv_destroy_qp(user), 0);
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(Refusals, OfDomainsNameWhatUsesThem) {
    ibv_td_init_attr td_init{};
    ibv_td* td = ibv_alloc_td(a->context, &td_init);
    ibv_parent_domain_init_attr parent_init{.pd = a->pd, .td = td};
    ibv_pd* parent = ibv_alloc_parent_domain(a->context, &parent_init);
    ASSERT_NE(parent, nullptr);
    ibv_ah_attr to{};
    to.port_num = 1;
    to.dlid = 1;
    ibv_pd* with_address = ibv_alloc_pd(a->context);
    ibv_ah* address = ibv_create_ah(with_address, &to);
    ASSERT_NE(address, nullptr);
    expect({
        {"ibv_dealloc_td", EBUSY, {"1 parent domain"}, [td] { return ibv_dealloc_td(td); }},
        {"ibv_dealloc_pd", EBUSY, {"1 parent domain"}, [this] { return ibv_dealloc_pd(a->pd); }},
        {"ibv_dealloc_pd",
         EBUSY,
         {"1 object: AH 0x1"},
         [with_address] { return ibv_dealloc_pd(with_address); }},
    });
    EXPECT_EQ(ibv_destroy_ah(address), 0);
    EXPECT_EQ(ibv_dealloc_pd(with_address), 0);
    EXPECT_EQ(ibv_dealloc_pd(parent), 0);
    EXPECT_EQ(ibv_dealloc_td(td), 0);
}

TEST_F(Refusals, OfMemoryNameTheValue) {
    const auto reg = [this](std::size_t length, int access) {
        return errno_of(ibv_reg_mr(a->pd, bytes_, length, access));
    };
    constexpr std::size_t kEndless = SIZE_MAX / 2;
    expect({
        {"ibv_reg_mr",
         EINVAL,
         {"REMOTE_WRITE", "IBV_ACCESS_LOCAL_WRITE"},
         [&reg] { return reg(8, IBV_ACCESS_REMOTE_WRITE); }},
        {"ibv_reg_mr",
         EINVAL,
         {"access 0x80001", "0x80000"},
         [&reg] { return reg(8, IBV_ACCESS_LOCAL_WRITE | 1 << 19); }},
        {"ibv_reg_mr",
         EINVAL,
         {"length", "at most"},
         [&reg] { return reg(kEndless, IBV_ACCESS_LOCAL_WRITE); }},
        {"ibv_reg_mr",
         EFAULT,
         {"0x1000", "not all mapped"},
         [this] { return errno_of(ibv_reg_mr(a->pd, reinterpret_cast<void*>(0x1000), 8, 0)); }},
        {"ibv_reg_mr",
         EINVAL,
         {"iova 0x1", "12 bits"},
         [this] {
             return errno_of(ibv_reg_mr_iova(
                 a->pd,
                 reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(bytes_) & ~4095ULL), 8, 1,
                 0));
         }},
        {"ibv_dereg_mr", ENOENT, {"MR"}, [this] { return without_handle(a->mr, ibv_dereg_mr); }},
        {"ibv_rereg_mr",
         EINVAL,
         {"flags"},
         [this] { return ibv_rereg_mr(a->mr, 1 << 20, nullptr, nullptr, 0, 0) == 0 ? 0 : errno; }},
        {"ibv_alloc_mw",
         EINVAL,
         {"type 7", "IBV_MW_TYPE_2"},
         [this] { return errno_of(ibv_alloc_mw(a->pd, static_cast<ibv_mw_type>(7))); }},
        {"ibv_alloc_dm",
         EINVAL,
         {"length 0"},
         [this] {
             ibv_alloc_dm_attr none{};
             return errno_of(ibv_alloc_dm(a->context, &none));
         }},
        {"ibv_alloc_dm",
         ENOMEM,
         {"max_dm_size"},
         [this] {
             ibv_alloc_dm_attr much{.length = kEndless, .log_align_req = 0, .comp_mask = 0};
             return errno_of(ibv_alloc_dm(a->context, &much));
         }},
        {"ibv_alloc_dm",
         EINVAL,
         {"log_align_req 99 is more than"},
         [this] {
             ibv_alloc_dm_attr odd{.length = 64, .log_align_req = 99, .comp_mask = 0};
             return errno_of(ibv_alloc_dm(a->context, &odd));
         }},
        {"ibv_advise_mr",
         EINVAL,
         {"num_sge"},
         [this] { return ibv_advise_mr(a->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, nullptr, 0); }},
    });
}

TEST_F(Refusals, OfDeviceMemoryNameItsRegion) {
    ibv_alloc_dm_attr wanted{.length = 64, .log_align_req = 0, .comp_mask = 0};
    ibv_dm* dm = ibv_alloc_dm(a->context, &wanted);
    ASSERT_NE(dm, nullptr);
    constexpr unsigned kAccess = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
    ibv_mr* region = ibv_reg_dm_mr(a->pd, dm, 0, 64, kAccess);
    ASSERT_NE(region, nullptr);
    expect({
        {"ibv_free_dm", EBUSY, {"1 object: MR with lkey"}, [dm] { return ibv_free_dm(dm); }},
        {"ibv_reg_dm_mr",
         EINVAL,
         {"65 bytes", "64"},
         [this, dm] { return errno_of(ibv_reg_dm_mr(a->pd, dm, 0, 65, kAccess)); }},
        {"ibv_reg_dm_mr",
         EINVAL,
         {"IBV_ACCESS_ZERO_BASED"},
         [this, dm] { return errno_of(ibv_reg_dm_mr(a->pd, dm, 0, 8, IBV_ACCESS_LOCAL_WRITE)); }},
    });
    EXPECT_EQ(ibv_dereg_mr(region), 0);
    EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(Refusals, OfCompletionQueuesNameTheValue) {
    ibv_modify_cq_attr moderation{};
    const auto moderate = [this](std::uint16_t period) {
        ibv_modify_cq_attr attr{IBV_CQ_ATTR_MODERATE, {0, period}};
        return ibv_modify_cq(a->cq, &attr);
    };
    const auto create_ex = [this](ibv_cq_init_attr_ex wanted) {
        return errno_of(ibv_create_cq_ex(a->context, &wanted));
    };
    expect({
        {"ibv_create_cq",
         EINVAL,
         {"cqe 0", "1 to max_cqe"},
         [this] { return errno_of(ibv_create_cq(a->context, 0, nullptr, nullptr, 0)); }},
        {"ibv_create_cq",
         EINVAL,
         {"cqe 1073741824", "1 to max_cqe"},
         [this] { return errno_of(ibv_create_cq(a->context, 1 << 30, nullptr, nullptr, 0)); }},
        {"ibv_create_cq",
         EINVAL,
         {"comp_vector 999", "0 to"},
         [this] { return errno_of(ibv_create_cq(a->context, 8, nullptr, nullptr, 999)); }},
        {"ibv_create_cq_ex", EINVAL, {"cqe 0"}, [&] { return create_ex({}); }},
        {"ibv_create_cq_ex",
         EINVAL,
         {"comp_mask"},
         [&] { return create_ex({.cqe = 8, .comp_mask = 1U << 30}); }},
        {"ibv_create_cq_ex",
         EOPNOTSUPP,
         {"wc_flags"},
         [&] { return create_ex({.cqe = 8, .wc_flags = 1ULL << 60}); }},
        {"ibv_resize_cq", EINVAL, {"cqe 0"}, [this] { return ibv_resize_cq(a->cq, 0); }},
        {"ibv_resize_cq", EINVAL, {"max_cqe"}, [this] { return ibv_resize_cq(a->cq, 1 << 30); }},
        {"ibv_modify_cq",
         EINVAL,
         {"attr_mask"},
         [this, &moderation] { return ibv_modify_cq(a->cq, &moderation); }},
        {"ibv_modify_cq",
         EINVAL,
         {"cq_period 65535 us is more than 4095"},
         [&] { return moderate(65'535); }},
        {"ibv_destroy_cq",
         ENOENT,
         {"CQ"},
         [this] { return without_handle(a->cq, ibv_destroy_cq); }},
    });
}

TEST_F(Refusals, OfSharedReceiveQueuesNameTheValue) {
    ibv_srq_init_attr init{};
    init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
    ibv_srq* srq = ibv_create_srq(a->pd, &init);
    ASSERT_NE(srq, nullptr);
    const auto create = [this](std::uint32_t requests, std::uint32_t segments) {
        ibv_srq_init_attr wanted{};
        wanted.attr = {.max_wr = requests, .max_sge = segments, .srq_limit = 0};
        return errno_of(ibv_create_srq(a->pd, &wanted));
    };
    const auto modify = [srq](std::uint32_t requests, std::uint32_t limit, int mask) {
        ibv_srq_attr wanted{.max_wr = requests, .max_sge = 1, .srq_limit = limit};
        return ibv_modify_srq(srq, &wanted, mask);
    };
    ibv_srq_init_attr_ex nothing{};
    expect({
        {"ibv_create_srq",
         EINVAL,
         {"max_wr 99999999", "max_srq_wr"},
         [&] { return create(99'999'999, 1); }},
        {"ibv_create_srq",
         EINVAL,
         {"max_sge 9999", "max_srq_sge"},
         [&] { return create(4, 9999); }},
        {"ibv_create_srq_ex",
         EINVAL,
         {"pd"},
         [this, &nothing] { return errno_of(ibv_create_srq_ex(a->context, &nothing)); }},
        {"ibv_modify_srq",
         EINVAL,
         {"srq_limit 9999", "max_wr"},
         [&] { return modify(0, 9999, IBV_SRQ_LIMIT); }},
        {"ibv_modify_srq",
         EINVAL,
         {"max_wr 99999999", "max_srq_wr"},
         [&] { return modify(99'999'999, 0, IBV_SRQ_MAX_WR); }},
        {"ibv_modify_srq", EINVAL, {"mask 0x100"}, [&] { return modify(0, 0, 1 << 8); }},
        {"ibv_destroy_srq",
         ENOENT,
         {"SRQ"},
         [srq] { return without_handle(srq, ibv_destroy_srq); }},
    });
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(Refusals, OfQueuePairsNameTheValue) {
    const auto create = [this](auto change) {
        ibv_qp_init_attr wanted{};
        wanted.qp_type = IBV_QPT_RC;
        wanted.send_cq = wanted.recv_cq = a->cq;
        wanted.cap = {.max_send_wr = 1,
                      .max_recv_wr = 1,
                      .max_send_sge = 1,
                      .max_recv_sge = 1,
                      .max_inline_data = 0};
        change(wanted);
        return errno_of(ibv_create_qp(a->pd, &wanted));
    };
    ibv_gid unicast{};
    expect({
        {"ibv_create_qp",
         EINVAL,
         {"cap.max_send_wr 99999999", "max_qp_wr"},
         [&] { return create([](auto& init) { init.cap.max_send_wr = 99'999'999; }); }},
        {"ibv_create_qp",
         EINVAL,
         {"cap.max_recv_sge 9999", "max_sge"},
         [&] { return create([](auto& init) { init.cap.max_recv_sge = 9999; }); }},
        {"ibv_create_qp",
         EINVAL,
         {"send_cq"},
         [&] { return create([](auto& init) { init.send_cq = nullptr; }); }},
        {"ibv_create_qp",
         EINVAL,
         {"qp_type 99"},
         [&] { return create([](auto& init) { init.qp_type = static_cast<ibv_qp_type>(99); }); }},
        {"ibv_query_qp",
         EOPNOTSUPP,
         {"attr_mask"},
         [this] { return ibv_query_qp(a->qp, &attr_, IBV_QP_RATE_LIMIT, &init_); }},
        {"ibv_destroy_qp",
         EINVAL,
         {"QP"},
         [this] { return without_handle(a->qp, ibv_destroy_qp); }},
        {"ibv_attach_mcast",
         EINVAL,
         {"is of RC", "UD"},
         [this, &unicast] { return ibv_attach_mcast(a->qp, &unicast, 0); }},
        {"ibv_detach_mcast",
         EINVAL,
         {"UD"},
         [this, &unicast] { return ibv_detach_mcast(a->qp, &unicast, 0); }},
        {"ibv_modify_qp",
         EOPNOTSUPP,
         {"does not take"},
         [this] { return ibv_modify_qp(a->qp, &attr_, 1 << 30); }},
    });
}

TEST_F(Refusals, OfAddressesSayWhichIndicesThereAre) {
    ibv_ah_attr to{};
    to.port_num = 1;
    to.is_global = 1;
    to.grh.sgid_index = 77;
    ibv_qp_attr init_attr{};
    init_attr.qp_state = IBV_QPS_INIT;
    init_attr.pkey_index = 500;
    init_attr.port_num = 1;
    ibv_qp_attr reset{};
    reset.qp_state = IBV_QPS_RESET;
    ASSERT_EQ(ibv_modify_qp(a->qp, &reset, IBV_QP_STATE), 0);
    ibv_port_attr port{};
    ibv_gid gid{};
    __be16 pkey = 0;
    expect({
        {"ibv_create_ah",
         ENODATA,
         {"sgid_index 77", "port 1 has 1 GID, indices 0 to 0"},
         [this, &to] { return errno_of(ibv_create_ah(a->pd, &to)); }},
        {"ibv_create_ah",
         EINVAL,
         {"port_num 9", "ports 1 to 1"},
         [this, to]() mutable {
             to.port_num = 9;
             return errno_of(ibv_create_ah(a->pd, &to));
         }},
        {"ibv_modify_qp",
         EINVAL,
         {"RESET to INIT", "pkey_index 500", "indices 0 to"},
         [this, &init_attr] {
             return ibv_modify_qp(
                 a->qp, &init_attr,
                 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
         }},
        {"ibv_query_port",
         EINVAL,
         {"port 9", "1 to 1"},
         [this, &port] { return ibv_query_port(a->context, 9, &port); }},
        {"ibv_query_gid",
         EINVAL,
         {"index 9999", "entries, 0 to"},
         [this, &gid] { return ibv_query_gid(a->context, 1, 9999, &gid) == 0 ? 0 : errno; }},
        {"ibv_query_pkey",
         ENOENT,
         {"index 9999", "entries, 0 to"},
         [this, &pkey] { return ibv_query_pkey(a->context, 1, 9999, &pkey) == 0 ? 0 : errno; }},
    });
}

TEST_F(Refusals, OfAFaultNameTheFault) {
    simverbs_fault fault{};
    simverbs_fault_init(&fault);
    fault.action = SIMVERBS_FAULT_CALL;
    fault.match.call = "ibv_alloc_pd";
    fault.with.value = ENOMEM;
    ASSERT_EQ(simverbs_inject(&fault, nullptr), 0) << simverbs_last_error();
    expect({{"ibv_alloc_pd", ENOMEM, {"injected fault"}, [this] {
                 return errno_of(ibv_alloc_pd(a->context));
             }}});
}

}  // namespace
}  // namespace verbs_test
