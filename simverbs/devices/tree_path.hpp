// Which paths are views of simulated devices, and where the tree of their files lies. No
// allocation; errno is left alone.
#pragma once

#include <climits>
#include <cstddef>

namespace simverbs::devices {

// The world's socket, the host that this process is on, and the folder of the host's tree; from
// the environment, once. Without them every path is what it says.
struct Placement {
    const char* socket = nullptr;
    const char* host = nullptr;
    const char* tree = nullptr;
};
const Placement& placement();

// A path as the program wrote it, and the path to use in its place.
class TreePath {
  public:
    // `path` may be null, as a program may hand it to the kernel.
    TreePath(int folder, const char* path);

    [[nodiscard]] bool is_ours() const { return name_ != nullptr; }
    // Returns true if the program gave no path.
    [[nodiscard]] bool is_empty() const;
    // For a function that takes a path: in the tree, or as it was.
    [[nodiscard]] const char* real() const { return real_; }
    // "/sys/class/infiniband/simverbs0/node_guid"; only where is_ours().
    [[nodiscard]] const char* name() const { return name_; }

  private:
    void resolve(int folder, const char* path);
    void use_buffer();

    char buffer_[PATH_MAX];
    const char* real_;
    const char* name_ = nullptr;
};

// The working directory or an open folder may be one of the tree: relative paths are looked at.
void entered_tree();

}  // namespace simverbs::devices
