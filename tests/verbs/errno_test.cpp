// Verbs that return an errno value leave it in errno too, as those that go through ioctl(2) do.
#include <cerrno>
#include <cstring>
#include <functional>

#include "two_hosts.hpp"

namespace verbs_test {
namespace {

constexpr std::uint32_t kNoHandle = 0xABCDEF;

struct Failure {
    const char* verb;
    int error;
    std::function<int()> call;
};

class Errno : public TwoHosts {
  protected:
    void SetUp() override {
        TwoHosts::SetUp();
        connect();
    }
    static void expect_in_errno(const std::vector<Failure>& failures) {
        for (const Failure& failure : failures) {
            errno = 0;
            EXPECT_EQ(failure.call(), failure.error) << failure.verb;
            EXPECT_EQ(errno, failure.error) << failure.verb;
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

    ibv_qp_attr attr_{};
    ibv_qp_init_attr init_{};
};

TEST_F(Errno, HasTheErrorOfQueuePairs) {
    ibv_gid unicast{};
    expect_in_errno({
        {"modify_qp", EOPNOTSUPP, [this] { return ibv_modify_qp(a->qp, &attr_, 1 << 30); }},
        {"query_qp", EOPNOTSUPP,
         [this] { return ibv_query_qp(a->qp, &attr_, IBV_QP_RATE_LIMIT, &init_); }},
        {"query_qp", EINVAL,
         [this] {
             return without_handle(
                 a->qp, [this](ibv_qp* qp) { return ibv_query_qp(qp, &attr_, 0, &init_); });
         }},
        {"destroy_qp", EINVAL, [this] { return without_handle(a->qp, ibv_destroy_qp); }},
        {"attach_mcast", EINVAL, [this, &unicast] { return ibv_attach_mcast(a->qp, &unicast, 0); }},
        {"detach_mcast", EINVAL, [this, &unicast] { return ibv_detach_mcast(a->qp, &unicast, 0); }},
    });
}

TEST_F(Errno, HasTheErrorOfOtherObjects) {
    ibv_port_attr port{};
    ibv_modify_cq_attr moderation{};
    expect_in_errno({
        {"dealloc_pd", EBUSY, [this] { return ibv_dealloc_pd(a->pd); }},
        {"destroy_cq", EBUSY, [this] { return ibv_destroy_cq(a->cq); }},
        {"resize_cq", EINVAL, [this] { return ibv_resize_cq(a->cq, 0); }},
        {"resize_cq", EINVAL, [this] { return ibv_resize_cq(a->cq, 1 << 30); }},
        {"modify_cq", EINVAL, [this, &moderation] { return ibv_modify_cq(a->cq, &moderation); }},
        {"dereg_mr", ENOENT, [this] { return without_handle(a->mr, ibv_dereg_mr); }},
        {"query_port", EINVAL, [this, &port] { return ibv_query_port(a->context, 9, &port); }},
    });
}

TEST_F(Errno, HasTheErrorOfPosting) {
    ibv_recv_wr receive{};
    receive.num_sge = 1000;
    ibv_recv_wr* bad_receive = nullptr;
    ibv_send_wr send{};
    send.opcode = static_cast<ibv_wr_opcode>(99);
    ibv_send_wr* bad_send = nullptr;
    expect_in_errno({
        {"post_recv", EINVAL, [&] { return ibv_post_recv(a->qp, &receive, &bad_receive); }},
        {"post_send", EINVAL, [&] { return ibv_post_send(a->qp, &send, &bad_send); }},
    });
}

TEST_F(Errno, HasTheErrorOfSharedReceiveQueues) {
    Connection with;
    with.shared_receives = 8;
    End shared(0, with);
    ibv_srq_attr attr{};
    ibv_recv_wr receive{};
    receive.num_sge = 1000;
    ibv_recv_wr* bad = nullptr;
    expect_in_errno({
        {"modify_srq", EINVAL, [&] { return ibv_modify_srq(shared.srq, &attr, 1 << 7); }},
        {"query_srq", ENOENT,
         [&] {
             return without_handle(shared.srq,
                                   [&attr](ibv_srq* srq) { return ibv_query_srq(srq, &attr); });
         }},
        {"destroy_srq", EBUSY, [&] { return ibv_destroy_srq(shared.srq); }},
        {"post_srq_recv", EINVAL, [&] { return ibv_post_srq_recv(shared.srq, &receive, &bad); }},
    });
}

}  // namespace
}  // namespace verbs_test
