// Reading /sys through the library, against the distribution's libibverbs on the same files.
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "simverbs/abi/provider_abi.hpp"

#include "tests/abi/real_library.hpp"

namespace {

namespace fs = std::filesystem;
using simverbs::testing::RealLibrary;

class AbiSysfs : public ::testing::Test {
  public:
    AbiSysfs(const AbiSysfs&) = delete;
    AbiSysfs& operator=(const AbiSysfs&) = delete;

  protected:
    AbiSysfs() : folder_(fs::path(::testing::TempDir()) / ("sysfs." + std::to_string(getpid()))) {
        fs::create_directories(folder_);
    }
    ~AbiSysfs() override { fs::remove_all(folder_); }

    // The answer and the buffer after reading `name` with a buffer of `size` bytes.
    template <typename Read>
    std::pair<int, std::string> answer(Read read, const char* name, std::size_t size) {
        std::array<char, 16> buffer{};
        buffer.fill('#');
        const int length = read(folder_.c_str(), name, buffer.data(), size);
        return {length, std::string(buffer.data(), buffer.size())};
    }

    fs::path folder_;
};

TEST_F(AbiSysfs, ReadsAFileAsTheDistributionsDoes) {
    const RealLibrary real;
    const auto theirs =
        real.find(simverbs_abi_ibv_read_sysfs_file, "ibv_read_sysfs_file", "IBVERBS_1.0");
    for (const char* contents :
         {"", "\n", "a", "a\n", "abc\n", "abcd", "abcd\n", "abcde", "ab\n\n"}) {
        std::ofstream(folder_ / "value") << contents;
        for (std::size_t size = 1; size <= 8; ++size) {
            const auto ours = answer(&simverbs_abi_ibv_read_sysfs_file, "value", size);
            const auto expected = answer(theirs, "value", size);
            EXPECT_EQ(ours.first, expected.first) << '"' << contents << "\" in " << size;
            if (ours.first >= 0) {
                EXPECT_EQ(ours.second, expected.second) << '"' << contents << "\" in " << size;
            }
        }
    }
    EXPECT_EQ(answer(&simverbs_abi_ibv_read_sysfs_file, "absent", 8).first, -1);
    EXPECT_EQ(answer(theirs, "absent", 8).first, -1);
}

// One process has one answer, so each setting is tried in a child of its own.
int exit_code_with(const char* setting, const char* expected) {
    setenv("SYSFS_PATH", setting, 1);
    const RealLibrary real;
    const auto theirs =
        real.find(simverbs_abi_ibv_get_sysfs_path, "ibv_get_sysfs_path", "IBVERBS_1.0");
    const std::string ours = simverbs_abi_ibv_get_sysfs_path();
    return ours == expected && ours == theirs() ? 0 : 1;
}

TEST(AbiSysfsPath, TakesTheRootFromTheEnvironment) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(_exit(exit_code_with("/elsewhere//", "/elsewhere")), ::testing::ExitedWithCode(0),
                "");
    EXPECT_EXIT(_exit(exit_code_with("/sys", "/sys")), ::testing::ExitedWithCode(0), "");
}

}  // namespace
