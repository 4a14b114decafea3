// A process that a fault stops, and one that it cannot.
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/server/served_world.hpp"

namespace server_test {
namespace {

// A program that makes its objects and ends is stopped while it registers memory.
class StoppedProcess : public testing::Test {
  protected:
    void SetUp() override {
        std::string folder = std::filesystem::temp_directory_path() / "simverbs-test-XXXXXX";
        ASSERT_NE(mkdtemp(folder.data()), nullptr);
        folder_ = folder;
        std::ofstream(file()) << "hosts: {h0: {run: \"exec " SIMVERBS_VERBS_CLIENT
                                 " </dev/null\"}}\n"
                                 "faults:\n"
                                 "  - action: process_stop\n"
                                 "    node: h0\n"
                                 "    duration: 1ms\n"
                                 "    when: {on: call, host: h0, call: ibv_reg_mr}\n"
                                 "expect: {never: [{record: fault_missed}], time: {at_least: 1ms}}"
                                 "\n";
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    // Returns what the command says of it; `status` takes how it ends.
    std::string run(bool forbid_process_vm, int& status) const {
        Process command({SIMVERBS_COMMAND, "scenario", file()}, {}, forbid_process_vm);
        std::string text;
        for (std::string line; !(line = command.hear()).empty();) {
            text += line + '\n';
        }
        status = command.end();
        return text;
    }

  private:
    [[nodiscard]] std::string file() const { return folder_ + "/stopped.yaml"; }

    std::string folder_;
};

TEST_F(StoppedProcess, GoesOnWhenTheTimeIsOver) {
    int status = -1;
    const std::string text = run(false, status);
    EXPECT_EQ(status, 0) << text;
}

// The server would wait for its copies.
TEST_F(StoppedProcess, IsNoneThatCopiesForTheServer) {
    int status = -1;
    const std::string text = run(true, status);
    EXPECT_EQ(status, 1) << text;
    EXPECT_NE(text.find("copies for the server, which may not reach its memory"), std::string::npos)
        << text;
}

}  // namespace
}  // namespace server_test
