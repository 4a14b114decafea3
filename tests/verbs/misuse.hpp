// Two hosts of a world that names mistakes (SIMVERBS_WARN=1).
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "two_hosts.hpp"

namespace verbs_test {

inline std::string in_hexadecimal(std::uint32_t number) {
    std::ostringstream text;
    text << "0x" << std::hex << number;
    return text.str();
}

class Misuse : public TwoHosts {
  protected:
    void SetUp() override {
        setenv("SIMVERBS_WARN", "1", 1);
        TwoHosts::SetUp();
        testing::internal::CaptureStderr();
        capturing = true;
    }
    void TearDown() override {
        if (capturing) {
            testing::internal::GetCapturedStderr();
        }
        TwoHosts::TearDown();
        unsetenv("SIMVERBS_WARN");
    }
    // Returns what was said so far.
    std::string said() {
        std::string text = testing::internal::GetCapturedStderr();
        testing::internal::CaptureStderr();
        return text;
    }
    std::string said_of(const std::string& name) {
        const std::string text = said();
        const std::size_t begin = text.find("simverbs: " + name + ": ");
        return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
    }
    int write(std::uint64_t id, bool signaled) {
        Request request(IBV_WR_RDMA_WRITE);
        request.id(id).from(a->range(0, 8)).to(b->address(0), b->mr->rkey);
        return (signaled ? request : request.unsignaled()).post(*a);
    }
    // Ends connected, each with a receive before RTR.
    void connect_with_receives(const Connection& with = {}) {
        connect(with);
        said();
    }
    // From now on `traced` counts the events.
    static void count_traced() {
        const auto count = [](const simverbs_record* record, void*) {
            traced += std::string(record->name) == "misuse" ? 1 : 0;
            traced.notify_all();
        };
        EXPECT_EQ(simverbs_trace_callback(count, nullptr), 0);
    }
    static inline std::atomic<std::uint64_t> traced{0};

    bool capturing = false;
};

}  // namespace verbs_test
