// Which paths are views of simulated devices, however a program writes them.
#include "simverbs/devices/tree_path.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace simverbs::devices {
namespace {

// The tree's folder, in the environment before the constructor of tree_path.cpp reads it, as it is
// in a program that `simverbs on` starts.
[[gnu::constructor(101)]] void place_tree() {
    static char folder[] = "/tmp/tree_path_test.XXXXXX";
    setenv("SIMVERBS_DEVICES", mkdtemp(folder), 1);
    setenv("SIMVERBS_SERVER", "/nowhere/default.sock", 1);
    setenv("SIMVERBS_HOST", "h0", 1);
}

std::string tree() {
    return placement().tree;
}

class Tree : public testing::Test {
  protected:
    Tree() { std::filesystem::create_directories(tree() + "/sys/class/infiniband/simverbs0"); }
    ~Tree() override { std::filesystem::remove_all(tree()); }
};

TEST_F(Tree, HoldsTheViews) {
    for (const char* path : {"/sys/class/infiniband", "/sys/class/infiniband/simverbs0/node_guid",
                             "/sys/class/infiniband_mad/umad0", "/dev/infiniband/uverbs0",
                             "/sys/devices/pci5356:00/vendor"}) {
        const TreePath found(AT_FDCWD, path);
        ASSERT_TRUE(found.is_ours()) << path;
        EXPECT_EQ(found.real(), tree() + path);
        EXPECT_STREQ(found.name(), path);
    }
}

TEST_F(Tree, LeavesOtherPathsAsTheyAre) {
    for (const char* path : {"/sys/class/net", "/dev/null", "/sys/devices/pci0000:00", "/s", "/",
                             "", "sys/class/infiniband", "/tmp/sys/class/infiniband"}) {
        const TreePath found(AT_FDCWD, path);
        EXPECT_FALSE(found.is_ours()) << path;
        EXPECT_EQ(found.real(), path);
    }
    EXPECT_EQ(TreePath(AT_FDCWD, nullptr).real(), nullptr);
}

TEST_F(Tree, GivesAFileOneName) {
    const TreePath found(AT_FDCWD, "/sys/class/infiniband//./simverbs0/.//node_guid");
    ASSERT_TRUE(found.is_ours());
    EXPECT_STREQ(found.name(), "/sys/class/infiniband/simverbs0/node_guid");
}

TEST_F(Tree, IsEnteredByRelativePathsFromAFolderOfIt) {
    const std::string folder = tree() + "/sys/class/infiniband";
    const int open_folder = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
    ASSERT_GE(open_folder, 0);
    entered_tree();
    const TreePath found(open_folder, "simverbs0/node_guid");
    ASSERT_TRUE(found.is_ours());
    EXPECT_STREQ(found.name(), "/sys/class/infiniband/simverbs0/node_guid");
    EXPECT_FALSE(TreePath(open_folder, "../net/lo").is_ours()) << "parents are the kernel's";
    close(open_folder);

    const int elsewhere = open("/", O_RDONLY | O_DIRECTORY);
    EXPECT_FALSE(TreePath(elsewhere, "simverbs0/node_guid").is_ours());
    close(elsewhere);
}

TEST_F(Tree, RefusesANameThatIsTooLong) {
    const std::string path = "/sys/class/infiniband/" + std::string(PATH_MAX, 'x');
    const TreePath found(AT_FDCWD, path.c_str());
    EXPECT_FALSE(found.is_ours());
    EXPECT_EQ(found.real(), path.c_str());
}

TEST_F(Tree, LeavesErrnoAlone) {
    entered_tree();
    errno = ENOTTY;
    const TreePath found(999, "simverbs0");
    EXPECT_FALSE(found.is_ours());
    EXPECT_EQ(errno, ENOTTY);
}

}  // namespace
}  // namespace simverbs::devices
