// A program built with the thread sanitizer, which the library is not: two threads, a connection
// between them, and no race. It exits with 66 where the sanitizer reports one.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <infiniband/verbs.h>

#include <simverbs/connect.hpp>

namespace {

constexpr int kMessages = 50;
constexpr std::size_t kBytes = 4096;

void require(bool holds, const char* what) {
    if (!holds) {
        std::fprintf(stderr, "%s\n", what);
        std::_Exit(1);
    }
}

struct End {
    explicit End(ibv_device* device) {
        context = ibv_open_device(device);
        pd = ibv_alloc_pd(context);
        channel = ibv_create_comp_channel(context);
        cq = ibv_create_cq(context, 2 * kMessages, nullptr, channel, 0);
        mr = ibv_reg_mr(pd, bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE);
        ibv_qp_init_attr init{};
        init.qp_type = IBV_QPT_RC;
        init.send_cq = init.recv_cq = cq;
        init.sq_sig_all = 1;
        init.cap.max_send_wr = init.cap.max_recv_wr = kMessages;
        init.cap.max_send_sge = init.cap.max_recv_sge = 1;
        qp = ibv_create_qp(pd, &init);
        require(qp != nullptr, "no queue pair");
    }
    ~End() {
        const int errors = ibv_destroy_qp(qp) + ibv_dereg_mr(mr) + ibv_destroy_cq(cq) +
                           ibv_destroy_comp_channel(channel) + ibv_dealloc_pd(pd) +
                           ibv_close_device(context);
        require(errors == 0, "something stays in use");
    }
    End(const End&) = delete;
    End& operator=(const End&) = delete;

    ibv_sge piece() { return {reinterpret_cast<std::uintptr_t>(bytes.data()), kBytes, mr->lkey}; }
    void receive() {
        ibv_sge whole = piece();
        ibv_recv_wr request{};
        request.sg_list = &whole;
        request.num_sge = 1;
        ibv_recv_wr* bad = nullptr;
        require(ibv_post_recv(qp, &request, &bad) == 0, "no receive posted");
    }
    void send(std::uint8_t value) {
        bytes.fill(value);
        ibv_sge whole = piece();
        ibv_send_wr request{};
        request.opcode = IBV_WR_SEND;
        request.sg_list = &whole;
        request.num_sge = 1;
        ibv_send_wr* bad = nullptr;
        require(ibv_post_send(qp, &request, &bad) == 0, "no send posted");
    }
    void complete() {
        ibv_wc wc{};
        int found = 0;
        while ((found = ibv_poll_cq(cq, 1, &wc)) == 0) {
        }
        require(found == 1 && wc.status == IBV_WC_SUCCESS, "no completion");
    }
    // The same, asleep until there is one.
    void await() {
        require(ibv_req_notify_cq(cq, 0) == 0, "the queue is not armed");
        ibv_wc wc{};
        if (ibv_poll_cq(cq, 1, &wc) == 0) {
            ibv_cq* rung = nullptr;
            void* ours = nullptr;
            require(ibv_get_cq_event(channel, &rung, &ours) == 0, "no event");
            ibv_ack_cq_events(rung, 1);
            complete();
        }
    }

    ibv_context* context = nullptr;
    ibv_pd* pd = nullptr;
    ibv_comp_channel* channel = nullptr;
    ibv_cq* cq = nullptr;
    ibv_mr* mr = nullptr;
    ibv_qp* qp = nullptr;
    std::array<std::uint8_t, kBytes> bytes{};
};

void answer(End& end) {
    for (int i = 0; i < kMessages; ++i) {
        end.complete();
        require(end.bytes[kBytes - 1] == i, "other bytes");
        end.receive();
        end.send(static_cast<std::uint8_t>(end.bytes[0] + 1));
        end.complete();
    }
}

void ask(End& end) {
    for (int i = 0; i < kMessages; ++i) {
        end.receive();
        end.send(static_cast<std::uint8_t>(i));
        end.complete();
        end.await();
        require(end.bytes[0] == i + 1, "other bytes");
    }
}

}  // namespace

int main() {  // NOLINT(bugprone-exception-escape): an exception ends the test
    int count = 0;
    ibv_device** const devices = ibv_get_device_list(&count);
    require(count == 2, "no two devices");
    {
        End client(devices[0]);
        End server(devices[1]);
        simverbs::connect(*client.qp, *server.qp);
        server.receive();
        std::thread idle([] {});  // calls no verb
        std::thread first([&server] { answer(server); });
        std::thread second([&client] { ask(client); });
        idle.join();
        first.join();
        second.join();
    }
    ibv_free_device_list(devices);
}
