// Verbs between threads of one process, as tests are written: each thread has an end of a
// connection of its own, and waits by polling its completion queue or by events.
//
//     threads_bench [--pairs N] [--depth N] [--messages N] [--events] [--sleepers N] [--one-thread]
//
// With --one-thread one thread has all ends, and polls their queues in turn. Prints messages a
// second, and the processor time of the process, user and system.
#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/resource.h>

#include <infiniband/verbs.h>

#include <simverbs/simverbs.h>

namespace {

void require(bool holds, const char* what) {
    if (!holds) {
        std::perror(what);
        std::exit(1);
    }
}

struct Options {
    unsigned pairs = 1;
    unsigned depth = 1;
    unsigned messages = 100'000;  // a pair and direction
    unsigned sleepers = 0;        // threads that wait for an event that never comes
    bool events = false;
    bool one_thread = false;
};

// One end of a reliable connection, with a queue of its own.
class End {
  public:
    End(int device, const Options& options) : depth_(options.depth) {
        ibv_device** devices = ibv_get_device_list(nullptr);
        require(devices != nullptr && devices[device] != nullptr, "ibv_get_device_list");
        context_ = ibv_open_device(devices[device]);
        ibv_free_device_list(devices);
        require(context_ != nullptr, "ibv_open_device");
        pd_ = ibv_alloc_pd(context_);
        channel_ = options.events ? ibv_create_comp_channel(context_) : nullptr;
        cq_ = ibv_create_cq(context_, static_cast<int>(4 * depth_), nullptr, channel_, 0);
        require(cq_ != nullptr, "ibv_create_cq");
        mr_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
        require(mr_ != nullptr, "ibv_reg_mr");
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = cq_;
        init.cap = {.max_send_wr = 2 * depth_,
                    .max_recv_wr = 2 * depth_,
                    .max_send_sge = 1,
                    .max_recv_sge = 1};
        init.qp_type = IBV_QPT_RC;
        qp_ = ibv_create_qp(pd_, &init);
        require(qp_ != nullptr, "ibv_create_qp");
        if (channel_ != nullptr) {
            require(ibv_req_notify_cq(cq_, 0) == 0, "ibv_req_notify_cq");
        }
    }
    End(const End&) = delete;
    End& operator=(const End&) = delete;

    void connect(const End& peer) {
        ibv_port_attr port{};
        require(ibv_query_port(peer.context_, 1, &port) == 0, "ibv_query_port");
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_INIT;
        attr.port_num = 1;
        modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
        attr.qp_state = IBV_QPS_RTR;
        attr.path_mtu = IBV_MTU_4096;
        attr.dest_qp_num = peer.qp_->qp_num;
        attr.min_rnr_timer = 12;
        attr.ah_attr.dlid = port.lid;
        attr.ah_attr.port_num = 1;
        modify(attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
        attr.qp_state = IBV_QPS_RTS;
        attr.timeout = 14;
        attr.retry_cnt = 7;
        attr.rnr_retry = 7;
        modify(attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
        for (unsigned i = 0; i < 2 * depth_; ++i) {
            receive();
        }
    }

    void send() {
        ibv_sge sge{reinterpret_cast<std::uint64_t>(memory_.data()), 8, mr_->lkey};
        ibv_send_wr wr{};
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_SEND;
        wr.send_flags = IBV_SEND_SIGNALED;
        ibv_send_wr* bad = nullptr;
        require(ibv_post_send(qp_, &wr, &bad) == 0, "ibv_post_send");
    }

    void receive() {
        ibv_sge sge{reinterpret_cast<std::uint64_t>(memory_.data()) + 64, 8, mr_->lkey};
        ibv_recv_wr wr{};
        wr.sg_list = &sge;
        wr.num_sge = 1;
        ibv_recv_wr* bad = nullptr;
        require(ibv_post_recv(qp_, &wr, &bad) == 0, "ibv_post_recv");
    }

    // Takes completions, if there are any. How many of them were receives.
    unsigned take() {
        std::array<ibv_wc, 32> wcs;
        const int found = ibv_poll_cq(cq_, wcs.size(), wcs.data());
        require(found >= 0, "ibv_poll_cq");
        unsigned received = 0;
        for (int i = 0; i < found; ++i) {
            require(wcs[static_cast<std::size_t>(i)].status == IBV_WC_SUCCESS, "completion");
            received += wcs[static_cast<std::size_t>(i)].opcode == IBV_WC_RECV ? 1 : 0;
        }
        if (found == 0 && channel_ != nullptr) {
            await_event();
        }
        return received;
    }

    void await_event() {
        ibv_cq* cq = nullptr;
        void* context = nullptr;
        require(ibv_get_cq_event(channel_, &cq, &context) == 0, "ibv_get_cq_event");
        ibv_ack_cq_events(cq, 1);
        require(ibv_req_notify_cq(cq, 0) == 0, "ibv_req_notify_cq");
    }

  private:
    void modify(ibv_qp_attr& attr, int mask) {
        require(ibv_modify_qp(qp_, &attr, mask) == 0, "ibv_modify_qp");
    }

    unsigned depth_;
    std::array<char, 128> memory_{};
    ibv_context* context_ = nullptr;
    ibv_pd* pd_ = nullptr;
    ibv_comp_channel* channel_ = nullptr;
    ibv_cq* cq_ = nullptr;
    ibv_mr* mr_ = nullptr;
    ibv_qp* qp_ = nullptr;
};

// One end's part: it keeps `depth` messages under way; each message received is answered.
class Part {
  public:
    Part(End& end, bool begins, const Options& options) : end_(end), messages_(options.messages) {
        for (; begins && sent_ < std::min(options.depth, messages_); ++sent_) {
            end_.send();
        }
    }
    [[nodiscard]] bool is_done() const { return received_ == messages_; }
    void go_on() {
        for (unsigned got = end_.take(); got > 0; --got) {
            ++received_;
            end_.receive();
            if (sent_ < messages_) {
                end_.send();
                ++sent_;
            }
        }
    }

  private:
    End& end_;
    unsigned messages_;
    unsigned sent_ = 0;
    unsigned received_ = 0;
};

void converse(End& end, bool begins, const Options& options) {
    for (Part part(end, begins, options); !part.is_done();) {
        part.go_on();
    }
}

// The same with all ends in one thread.
void converse_alone(std::span<const std::unique_ptr<End>> ends, const Options& options) {
    std::vector<Part> parts;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        parts.emplace_back(*ends[i], i % 2 == 0, options);
    }
    while (!std::ranges::all_of(parts, &Part::is_done)) {
        for (Part& part : parts) {
            part.go_on();
        }
    }
}

double seconds(const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

Options read(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view name = argv[i];
        const auto number = [&] {
            require(i + 1 < argc, "an option wants a number");
            return static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 10));
        };
        if (name == "--pairs") {
            options.pairs = number();
        } else if (name == "--depth") {
            options.depth = number();
        } else if (name == "--messages") {
            options.messages = number();
        } else if (name == "--sleepers") {
            options.sleepers = number();
        } else if (name == "--events") {
            options.events = true;
        } else if (name == "--one-thread") {
            options.one_thread = true;
        } else {
            std::fprintf(stderr, "threads_bench: unknown option %s\n", argv[i]);
            std::exit(2);
        }
    }
    return options;
}

}  // namespace

int main(int argc, char** argv) {
    const Options options = read(argc, argv);
    std::vector<std::unique_ptr<End>> ends;
    for (unsigned i = 0; i < 2 * options.pairs; ++i) {
        ends.push_back(std::make_unique<End>(i % 2, options));
    }
    for (unsigned i = 0; i < ends.size(); ++i) {
        ends[i]->connect(*ends[i ^ 1U]);
    }
    Options by_events;
    by_events.events = true;
    for (unsigned i = 0; i < options.sleepers; ++i) {
        auto& sleeper = ends.emplace_back(std::make_unique<End>(0, by_events));
        std::thread([&end = *sleeper] { end.await_event(); }).detach();
    }

    const auto begin = std::chrono::steady_clock::now();
    rusage before{};
    getrusage(RUSAGE_SELF, &before);
    if (options.one_thread) {
        converse_alone(std::span(ends).first(2UL * options.pairs), options);
    } else {
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < 2 * options.pairs; ++i) {
            threads.emplace_back(
                [&end = *ends[i], i, &options] { converse(end, i % 2 == 0, options); });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
    }
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    rusage after{};
    getrusage(RUSAGE_SELF, &after);
    const double messages = 2.0 * options.messages * options.pairs;
    std::printf("%.0f messages/s, %.3f s, user %.3f s, system %.3f s\n", messages / wall.count(),
                wall.count(), seconds(after.ru_utime) - seconds(before.ru_utime),
                seconds(after.ru_stime) - seconds(before.ru_stime));
    std::fflush(stdout);
    std::quick_exit(0);  // the sleepers sleep on
}
