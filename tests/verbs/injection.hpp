// Two hosts and faults that are asked for by struct simverbs_fault, with the firings written down.
#pragma once

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "two_hosts.hpp"

namespace verbs_test {

inline constexpr std::int64_t kMicrosecond = 1'000'000;  // in picoseconds
inline constexpr std::int64_t kMillisecond = 1'000 * kMicrosecond;

inline simverbs_fault fault_of(simverbs_fault_action action) {
    simverbs_fault fault;
    simverbs_fault_init(&fault);
    fault.action = action;
    return fault;
}

class Injection : public TwoHosts {
  protected:
    struct Firing {
        std::uint64_t fault = 0;
        std::string node;
        std::string action;
        std::string operation;
        std::uint64_t psn = 0;
        std::uint64_t attempt = 0;
        std::uint64_t flow = 0;
        std::uint64_t target = 0;  // number of the node
        std::uint64_t target_qpn = 0;
        std::int64_t time = 0;
    };

    // Makes a fault of the requests that h0's first queue pair sends.
    static simverbs_fault on_request(simverbs_fault_action action, std::uint32_t psn) {
        simverbs_fault fault = fault_of(action);
        fault.match.from = "h0";
        fault.match.qp = 1;
        fault.match.psn = psn;
        fault.match.direction = SIMVERBS_REQUESTS;
        return fault;
    }
    static std::uint32_t inject(const simverbs_fault& fault) {
        std::uint32_t id = 0;
        EXPECT_EQ(simverbs_inject(&fault, &id), 0) << simverbs_last_error();
        return id;
    }
    // An errno, and a word of the reason.
    static void expect_refused(const simverbs_fault& fault, int error, const char* word) {
        std::uint32_t id = 77;
        EXPECT_EQ(simverbs_inject(&fault, &id), error) << word;
        EXPECT_NE(std::strstr(simverbs_last_error(), word), nullptr) << simverbs_last_error();
        EXPECT_EQ(id, 77U);
    }
    static std::uint64_t fired(std::uint32_t id) {
        std::uint64_t count = 0;
        EXPECT_EQ(simverbs_fault_fired(id, &count), 0) << simverbs_last_error();
        return count;
    }
    void watch() { ASSERT_EQ(simverbs_trace_callback(&Injection::record, this), 0); }
    [[nodiscard]] std::size_t discarded(const std::string& fate) const {
        std::size_t count = 0;
        for (const std::string& each : fates) {
            count += each == fate ? 1 : 0;
        }
        return count;
    }

    // A WRITE of `packets` packets of 1024 bytes, the n-th filled with n; b's memory starts at 0.
    void write(std::uint64_t id, std::uint32_t packets, std::size_t to = 0) {
        for (std::uint32_t i = 0; i < packets; ++i) {
            std::memset(a->at(std::size_t{i} * kPacket), static_cast<int>(i + 1), kPacket);
        }
        ASSERT_EQ(Request(IBV_WR_RDMA_WRITE)
                      .id(id)
                      .from(a->range(0, packets * kPacket))
                      .to(b->address(to), b->mr->rkey)
                      .post(*a),
                  0);
    }
    void expect_written(std::uint32_t packets, std::size_t to = 0) {
        EXPECT_EQ(std::memcmp(a->at(0), b->at(to), std::size_t{packets} * kPacket), 0);
    }
    static void expect(End& end, std::uint64_t id, ibv_wc_status status) {
        const ibv_wc wc = end.wait();
        EXPECT_EQ(wc.wr_id, id);
        EXPECT_EQ(wc.status, status) << ibv_wc_status_str(wc.status);
    }
    void expect_both_live() {
        EXPECT_EQ(a->state(), IBV_QPS_RTS);
        EXPECT_EQ(b->state(), IBV_QPS_RTS);
        EXPECT_TRUE(a->events().empty());
        EXPECT_TRUE(b->events().empty());
    }
    // Two runs from the start have one digest.
    void expect_repeats(const std::function<void()>& run) {
        run();
        const std::uint64_t first = run_digest();
        a.reset();
        b.reset();
        ASSERT_EQ(simverbs_restart(), 0);
        run();
        EXPECT_EQ(run_digest(), first);
    }

    static constexpr std::uint32_t kPacket = 1024;
    std::vector<Firing> firings;
    std::vector<std::string> missed;  // reasons
    std::vector<std::string> fates;   // of packets that were discarded
    // "h0 completion": how many records of that name the trace has of that node.
    std::map<std::string, std::size_t> records;

  private:
    static void record(const simverbs_record* record, void* argument) {
        auto& self = *static_cast<Injection*>(argument);
        const std::string name = record->name;
        Firing firing{.node = record->node, .time = record->time_ps};
        ++self.records[firing.node + " " + name];
        for (std::size_t i = 0; i < record->field_count; ++i) {
            const simverbs_field& field = record->fields[i];
            const std::string key = field.name;
            if (key == "fault") {
                firing.fault = field.number;
            } else if (key == "action") {
                firing.action = field.text;
            } else if (key == "operation") {
                firing.operation = field.text;
            } else if (key == "relative_psn") {
                firing.psn = field.number;
            } else if (key == "attempt") {
                firing.attempt = field.number;
            } else if (key == "flow") {
                firing.flow = field.number;
            } else if (key == "target") {
                firing.target = field.number;
            } else if (key == "target_qpn") {
                firing.target_qpn = field.number;
            } else if (key == "reason" && name == "fault_missed") {
                self.missed.emplace_back(field.text);
            } else if (key == "fate" && name == "packet_discarded") {
                self.fates.emplace_back(field.text);
            }
        }
        if (name == "fault_fired") {
            self.firings.push_back(firing);
        }
    }
};

}  // namespace verbs_test
