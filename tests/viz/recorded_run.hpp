// A run of two hosts with everything that can go wrong on the way, its trace and its capture.
#pragma once

#include <string>
#include <vector>

#include "two_hosts.hpp"
#include "viz/trace_file.hpp"

namespace viz_test {

class RecordedRun : public verbs_test::TwoHosts {
  protected:
    void SetUp() override;
    void TearDown() override;

    // Files of this test.
    [[nodiscard]] std::string file(const std::string& ending) const;
    void open_trace();
    void open_capture();
    // Lets what is under way end.
    void close_trace();
    void close_capture();
    [[nodiscard]] simverbs::viz::Trace trace() const;

    // SEND, WRITE, READ and atomics, of several packets each; a packet that is lost; a receive that
    // is late (RNR NAK); a key that is wrong (NAK), after which both ends are in ERR.
    void reliable_traffic();
    void unreliable_traffic();
    void datagrams();
};

// The exit status of a program, and what it wrote to stdout.
struct Output {
    int status = -1;
    std::string text;
    [[nodiscard]] std::vector<std::string> lines() const;
};
Output run_program(const std::string& command);

}  // namespace viz_test
