// Threads that use verbs are cancelled at any moment, again and again: the others go on, and what
// the cancelled ones had is given back.
//
//     cancelled_threads ROUNDS SEED
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include <pthread.h>
#include <unistd.h>

#include <infiniband/verbs.h>

namespace {

constexpr std::uint32_t kQkey = 0x11111111;
constexpr std::size_t kThreads = 3;
constexpr int kLongestLife = 3000;  // us

void require(bool holds, const char* what) {
    if (!holds) {
        std::perror(what);
        std::_Exit(1);
    }
}

template <auto destroy>
struct Destroy {
    template <class T>
    void operator()(T* object) const {
        require(destroy(object) == 0, __PRETTY_FUNCTION__);
    }
};
template <class T, auto destroy>
using Owned = std::unique_ptr<T, Destroy<destroy>>;
using Channel = Owned<ibv_comp_channel, ibv_destroy_comp_channel>;
using Queue = Owned<ibv_cq, ibv_destroy_cq>;
using Region = Owned<ibv_mr, ibv_dereg_mr>;
using Pair = Owned<ibv_qp, ibv_destroy_qp>;
using Address = Owned<ibv_ah, ibv_destroy_ah>;

struct Device {
    ibv_context* context = nullptr;
    ibv_pd* pd = nullptr;
};

// A queue pair that sends to itself.
class Mirror {
  public:
    explicit Mirror(const Device& device)
        : channel_(ibv_create_comp_channel(device.context)),
          queue_(ibv_create_cq(device.context, 64, nullptr, channel_.get(), 0)) {
        require(queue_ != nullptr, "ibv_create_cq");
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = queue_.get();
        init.cap.max_send_wr = init.cap.max_recv_wr = 32;
        init.cap.max_send_sge = init.cap.max_recv_sge = 1;
        init.qp_type = IBV_QPT_UD;
        init.sq_sig_all = 1;
        pair_.reset(ibv_create_qp(device.pd, &init));
        require(pair_ != nullptr, "ibv_create_qp");
        ibv_qp_attr attributes{};
        attributes.qp_state = IBV_QPS_INIT;
        attributes.port_num = 1;
        attributes.qkey = kQkey;
        modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
        attributes.qp_state = IBV_QPS_RTR;
        modify(attributes, IBV_QP_STATE);
        attributes.qp_state = IBV_QPS_RTS;
        modify(attributes, IBV_QP_STATE | IBV_QP_SQ_PSN);
        ibv_port_attr port{};
        require(ibv_query_port(device.context, 1, &port) == 0, "ibv_query_port");
        ibv_ah_attr to{};
        to.dlid = port.lid;
        to.port_num = 1;
        address_.reset(ibv_create_ah(device.pd, &to));
        require(address_ != nullptr, "ibv_create_ah");
        region_.reset(
            ibv_reg_mr(device.pd, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE));
        require(region_ != nullptr, "ibv_reg_mr");
    }

    // Waits for both completions by polling, and each second time by events.
    void exchange(int turn) {
        const bool by_events = turn % 2 == 0;
        if (by_events) {
            require(ibv_req_notify_cq(queue_.get(), 0) == 0, "ibv_req_notify_cq");
        }
        ibv_sge into{address_of(0), 64, region_->lkey};
        ibv_recv_wr receive{};
        receive.sg_list = &into;
        receive.num_sge = 1;
        ibv_recv_wr* refused_receive = nullptr;
        require(ibv_post_recv(pair_.get(), &receive, &refused_receive) == 0, "ibv_post_recv");
        ibv_sge from{address_of(128), 8, region_->lkey};
        ibv_send_wr send{};
        send.sg_list = &from;
        send.num_sge = 1;
        send.opcode = IBV_WR_SEND;
        send.wr.ud.ah = address_.get();
        send.wr.ud.remote_qpn = pair_->qp_num;
        send.wr.ud.remote_qkey = kQkey;
        ibv_send_wr* refused_send = nullptr;
        require(ibv_post_send(pair_.get(), &send, &refused_send) == 0, "ibv_post_send");
        if (by_events) {
            await_event();
        }
        for (int left = 2; left > 0;) {
            std::array<ibv_wc, 2> found{};
            const int count = ibv_poll_cq(queue_.get(), left, found.data());
            require(count >= 0 && std::ranges::all_of(found,
                                                      [](const ibv_wc& each) {
                                                          return each.status == IBV_WC_SUCCESS;
                                                      }),
                    "ibv_poll_cq");
            left -= count;
        }
    }

  private:
    void await_event() {
        ibv_cq* of = nullptr;
        void* context = nullptr;
        require(ibv_get_cq_event(channel_.get(), &of, &context) == 0, "ibv_get_cq_event");
        ibv_ack_cq_events(of, 1);
    }
    void modify(ibv_qp_attr& attributes, int mask) {
        require(ibv_modify_qp(pair_.get(), &attributes, mask) == 0, "ibv_modify_qp");
    }
    [[nodiscard]] std::uint64_t address_of(std::size_t offset) const {
        return reinterpret_cast<std::uint64_t>(memory_.data() + offset);
    }

    std::array<char, 256> memory_{};
    Channel channel_;
    Queue queue_;
    Region region_;
    Address address_;
    Pair pair_;
};

void* exchange(void* argument) {
    Mirror mirror(*static_cast<Device*>(argument));
    for (int turn = 0;; ++turn) {
        pthread_testcancel();
        mirror.exchange(turn);
    }
    return nullptr;
}

void* make_objects(void* argument) {
    const Device& device = *static_cast<Device*>(argument);
    static std::array<char, std::size_t{1} << 18> s_memory;
    for (;;) {
        pthread_testcancel();
        const Channel channel(ibv_create_comp_channel(device.context));
        const Queue queue(ibv_create_cq(device.context, 16, nullptr, channel.get(), 0));
        const Region region(
            ibv_reg_mr(device.pd, s_memory.data(), s_memory.size(), IBV_ACCESS_LOCAL_WRITE));
        require(channel && queue && region, "an object");
    }
    return nullptr;
}

}  // namespace

int main(int count, char** words) {
    require(count == 3, "cancelled_threads ROUNDS SEED");
    std::mt19937 random(static_cast<std::uint32_t>(std::atoi(words[2])));
    ibv_device** const devices = ibv_get_device_list(nullptr);
    require(devices != nullptr && devices[0] != nullptr, "ibv_get_device_list");
    Device device;
    device.context = ibv_open_device(devices[0]);
    require(device.context != nullptr, "ibv_open_device");
    device.pd = ibv_alloc_pd(device.context);
    for (int round = std::atoi(words[1]); round > 0; --round) {
        std::array<pthread_t, kThreads> threads{};
        for (pthread_t& thread : threads) {
            require(pthread_create(&thread, nullptr, random() % 2 == 0 ? exchange : make_objects,
                                   &device) == 0,
                    "pthread_create");
        }
        usleep(static_cast<useconds_t>(random() % kLongestLife));
        for (const pthread_t thread : threads) {
            pthread_cancel(thread);
        }
        for (const pthread_t thread : threads) {
            pthread_join(thread, nullptr);
        }
        Mirror(device).exchange(0);
    }
    // Refused while anything of it is left.
    require(ibv_dealloc_pd(device.pd) == 0, "ibv_dealloc_pd");
    require(ibv_close_device(device.context) == 0, "ibv_close_device");
    ibv_free_device_list(devices);
}
