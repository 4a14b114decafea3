// Verbs on the embedded world, one thread, both ends in the process: messages and bytes a second,
// what an idle queue pair costs, and how long retries take that last a minute on a NIC.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>
#include <malloc.h>

#include <infiniband/verbs.h>

#include <simverbs/simverbs.h>

namespace {

void require(bool holds, const char* what) {
    if (!holds) {
        std::perror(what);
        std::exit(1);
    }
}

constexpr std::uint32_t kDepth = 128;

struct End {
    ibv_context* context = nullptr;
    ibv_pd* pd = nullptr;
    ibv_cq* cq = nullptr;
    ibv_qp* qp = nullptr;
    ibv_mr* mr = nullptr;
    std::uint16_t lid = 0;
};

// Two hosts of `pair`, each with a device open; queue pairs come and go.
class Fixture {
  public:
    explicit Fixture(std::size_t bytes) : memory_(2 * bytes) {
        require(simverbs_restart() == 0 && simverbs_set_topology("pair") == 0, "topology");
        ibv_device** devices = ibv_get_device_list(nullptr);
        require(devices != nullptr && devices[1] != nullptr, "devices");
        for (std::size_t i = 0; i < 2; ++i) {
            End& end = ends_[i];
            end.context = ibv_open_device(devices[i]);
            require(end.context != nullptr, "ibv_open_device");
            end.pd = ibv_alloc_pd(end.context);
            end.cq = ibv_create_cq(end.context, 4 * kDepth, nullptr, nullptr, 0);
            end.mr = ibv_reg_mr(end.pd, memory_.data() + i * bytes, bytes,
                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
            require(end.mr != nullptr, "ibv_reg_mr");
            ibv_port_attr port{};
            require(ibv_query_port(end.context, 1, &port) == 0, "ibv_query_port");
            end.lid = port.lid;
        }
        ibv_free_device_list(devices);
    }

    ~Fixture() {
        for (End& end : ends_) {
            if (end.qp != nullptr) {
                ibv_destroy_qp(end.qp);
            }
            ibv_dereg_mr(end.mr);
            ibv_destroy_cq(end.cq);
            ibv_dealloc_pd(end.pd);
            ibv_close_device(end.context);
        }
    }
    Fixture(const Fixture&) = delete;
    Fixture& operator=(const Fixture&) = delete;

    End& end(std::size_t i) { return ends_[i]; }

    static ibv_qp* make_qp(const End& end) {
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = end.cq;
        init.qp_type = IBV_QPT_RC;
        init.cap = {kDepth, kDepth, 1, 1, 0};
        ibv_qp* qp = ibv_create_qp(end.pd, &init);
        require(qp != nullptr, "ibv_create_qp");
        return qp;
    }

    static void connect(ibv_qp* qp, std::uint32_t peer_qpn, std::uint16_t peer_lid,
                        std::uint8_t timeout) {
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_INIT;
        attr.port_num = 1;
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
        require(ibv_modify_qp(
                    qp, &attr,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
                "INIT");
        attr.qp_state = IBV_QPS_RTR;
        attr.path_mtu = IBV_MTU_4096;
        attr.dest_qp_num = peer_qpn;
        attr.max_dest_rd_atomic = 1;
        attr.min_rnr_timer = 12;
        attr.ah_attr.dlid = peer_lid;
        attr.ah_attr.port_num = 1;
        require(ibv_modify_qp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                  IBV_QP_MIN_RNR_TIMER) == 0,
                "RTR");
        attr.qp_state = IBV_QPS_RTS;
        attr.timeout = timeout;
        attr.retry_cnt = 7;
        attr.rnr_retry = 7;
        attr.max_rd_atomic = 1;
        require(ibv_modify_qp(qp, &attr,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
                "RTS");
    }

    void connect_ends(std::uint8_t timeout = 14) {
        for (End& end : ends_) {
            end.qp = make_qp(end);
        }
        connect(ends_[0].qp, ends_[1].qp->qp_num, ends_[1].lid, timeout);
        connect(ends_[1].qp, ends_[0].qp->qp_num, ends_[0].lid, timeout);
    }

  private:
    std::vector<std::byte> memory_;
    End ends_[2];
};

void post_send(const End& from, ibv_wr_opcode opcode, std::uint32_t length, const End* to) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(from.mr->addr), length, from.mr->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (to != nullptr) {
        wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(to->mr->addr);
        wr.wr.rdma.rkey = to->mr->rkey;
    }
    ibv_send_wr* bad = nullptr;
    require(ibv_post_send(from.qp, &wr, &bad) == 0, "ibv_post_send");
}

void post_receive(const End& at, std::uint32_t length) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(at.mr->addr), length, at.mr->lkey};
    ibv_recv_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    require(ibv_post_recv(at.qp, &wr, &bad) == 0, "ibv_post_recv");
}

ibv_wc_status wait(const End& at) {
    ibv_wc wc{};
    while (ibv_poll_cq(at.cq, 1, &wc) == 0) {
    }
    return wc.status;
}

// 8 bytes, one message after the other: post, and poll both completions.
void send_one_by_one(benchmark::State& state) {
    Fixture fixture(4096);
    fixture.connect_ends();
    for (auto _ : state) {
        post_receive(fixture.end(1), 8);
        post_send(fixture.end(0), IBV_WR_SEND, 8, nullptr);
        require(wait(fixture.end(1)) == IBV_WC_SUCCESS, "receive");
        require(wait(fixture.end(0)) == IBV_WC_SUCCESS, "send");
    }
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(send_one_by_one);

// 8 bytes, a queue's depth at a time.
void send_in_batches(benchmark::State& state) {
    Fixture fixture(4096);
    fixture.connect_ends();
    std::vector<ibv_wc> wcs(kDepth);
    const auto drain = [&wcs](const End& end) {
        for (std::uint32_t got = 0; got < kDepth;) {
            const int found = ibv_poll_cq(end.cq, static_cast<int>(kDepth - got), wcs.data());
            for (int i = 0; i < found; ++i) {
                require(wcs[static_cast<std::size_t>(i)].status == IBV_WC_SUCCESS, "completion");
            }
            got += static_cast<std::uint32_t>(found);
        }
    };
    for (auto _ : state) {
        for (std::uint32_t i = 0; i < kDepth; ++i) {
            post_receive(fixture.end(1), 8);
        }
        for (std::uint32_t i = 0; i < kDepth; ++i) {
            post_send(fixture.end(0), IBV_WR_SEND, 8, nullptr);
        }
        drain(fixture.end(1));
        drain(fixture.end(0));
    }
    state.SetItemsProcessed(state.iterations() * kDepth);
}
BENCHMARK(send_in_batches);

void write_bytes(benchmark::State& state) {
    const auto bytes = static_cast<std::uint32_t>(state.range(0));
    Fixture fixture(bytes);
    fixture.connect_ends();
    for (auto _ : state) {
        post_send(fixture.end(0), IBV_WR_RDMA_WRITE, bytes, &fixture.end(1));
        require(wait(fixture.end(0)) == IBV_WC_SUCCESS, "write");
    }
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}
BENCHMARK(write_bytes)->Arg(1 << 20);

void memcpy_bytes(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    std::vector<std::byte> memory(2 * bytes);
    for (auto _ : state) {
        std::memcpy(memory.data() + bytes, memory.data(), bytes);
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}
BENCHMARK(memcpy_bytes)->Arg(1 << 20);

// Regions of 4 KiB, beside so many that stay.
void register_regions(benchmark::State& state) {
    constexpr std::size_t kBytes = 4096;
    constexpr std::size_t kBatch = 64;  // a pause takes as long as a registration
    const auto beside = static_cast<std::size_t>(state.range(0));
    Fixture fixture(kBytes);
    ibv_pd* const pd = fixture.end(0).pd;
    std::vector<std::byte> memory((kBatch + beside) * kBytes);
    std::vector<ibv_mr*> regions;
    const auto add = [&] {
        regions.push_back(ibv_reg_mr(pd, memory.data() + regions.size() * kBytes, kBytes,
                                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
        require(regions.back() != nullptr, "ibv_reg_mr");
    };
    const auto keep = [&](std::size_t count) {
        for (; regions.size() > count; regions.pop_back()) {
            ibv_dereg_mr(regions.back());
        }
    };
    while (regions.size() < beside) {
        add();
    }
    for (auto _ : state) {
        for (std::size_t i = 0; i < kBatch; ++i) {
            add();
        }
        state.PauseTiming();
        keep(beside);
        state.ResumeTiming();
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBatch));
    keep(0);
}
BENCHMARK(register_regions)->Arg(0)->Arg(5000);

// retry_cnt 7, timeout 20 used up: 34 s of virtual time, 58 s on a NIC.
void retries_used_up(benchmark::State& state) {
    for (auto _ : state) {
        state.PauseTiming();
        auto fixture = std::make_unique<Fixture>(4096);
        fixture->connect_ends(20);
        require(simverbs_set_link("h0-h1", 0) == 0, "link");
        state.ResumeTiming();
        post_send(fixture->end(0), IBV_WR_RDMA_WRITE, 8, &fixture->end(1));
        require(wait(fixture->end(0)) == IBV_WC_RETRY_EXC_ERR, "retries");
        state.PauseTiming();
        fixture.reset();
        state.ResumeTiming();
    }
}
BENCHMARK(retries_used_up);

// Bytes of heap a connected, idle queue pair, the rings that were asked for taken off.
void idle_queue_pair(benchmark::State& state) {
    constexpr std::size_t kPairs = 2000;
    for (auto _ : state) {
        Fixture fixture(4096);
        std::vector<ibv_qp*> qps;
        const std::size_t before = mallinfo2().uordblks;
        for (std::size_t i = 0; i < kPairs; ++i) {
            qps.push_back(Fixture::make_qp(fixture.end(i % 2)));
        }
        for (std::size_t i = 0; i < kPairs; i += 2) {
            Fixture::connect(qps[i], qps[i + 1]->qp_num, fixture.end(1).lid, 14);
            Fixture::connect(qps[i + 1], qps[i]->qp_num, fixture.end(0).lid, 14);
        }
        constexpr std::size_t kSlots = kDepth * (64 + 16) + kDepth * (16 + 16);
        const std::size_t used = (mallinfo2().uordblks - before) / kPairs;
        state.counters["bytes_per_qp"] = static_cast<double>(used - kSlots);
        for (ibv_qp* qp : qps) {
            ibv_destroy_qp(qp);
        }
    }
}
BENCHMARK(idle_queue_pair)->Iterations(1);

}  // namespace
