#include "simverbs/devices/tree_path.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace simverbs::devices {
namespace {

// The PCI functions lie in a domain that no machine has.
constexpr const char* kViews[] = {"/sys/class/infiniband", "/sys/class/misc/rdma_cm",
                                  "/sys/devices/pci5356:", "/dev/infiniband",
                                  "/proc/sys/net/rdma_ucm"};

bool g_entered_tree = false;

// In copies that are never freed: programs that set their title, as databases do, write it over
// their environment.
Placement read_placement() {
    const char* const socket = std::getenv("SIMVERBS_SERVER");
    const char* const host = std::getenv("SIMVERBS_HOST");
    const char* const tree = std::getenv("SIMVERBS_DEVICES");
    if (socket == nullptr || host == nullptr || tree == nullptr) {
        return {};
    }
    return {strdup(socket), strdup(host), strdup(tree)};
}

// Also "/sys/class/infiniband_mad" and its siblings.
bool is_view(const char* path) {
    if (path[0] != '/' || (path[1] != 's' && path[1] != 'd' && path[1] != 'p')) [[likely]] {
        return false;
    }
    for (const char* view : kViews) {
        if (std::strncmp(path, view, std::strlen(view)) == 0) {
            return true;
        }
    }
    return false;
}

bool lies_in(const char* path, const char* tree, std::size_t length) {
    return std::strncmp(path, tree, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

// One slash where there are several, and no "." on the way: a file has one name.
void squeeze(char* path) {
    char* end = path;
    for (const char* at = path; *at != '\0'; ++at) {
        const bool ends_name = at[0] == '/' && end > path;
        if (ends_name && end[-1] == '/') {
            continue;
        }
        if (ends_name && end - path >= 2 && end[-1] == '.' && end[-2] == '/') {
            --end;
            continue;
        }
        *end++ = *at;
    }
    *end = '\0';
}

// A program that is started in a folder of the tree, as `cd` and `cat` do.
__attribute__((constructor)) void look_where_we_are() {
    if (placement().tree != nullptr) {
        const int error = errno;
        char here[PATH_MAX];
        if (getcwd(here, sizeof here) != nullptr &&
            lies_in(here, placement().tree, std::strlen(placement().tree))) {
            g_entered_tree = true;
        }
        errno = error;
    }
}

}  // namespace

const Placement& placement() {
    static const Placement kPlacement = read_placement();
    return kPlacement;
}

void entered_tree() {
    g_entered_tree = true;
}

TreePath::TreePath(int folder, const char* path) : real_(path) {
    if (path == nullptr || placement().tree == nullptr) {
        return;
    }
    if (is_view(path)) {
        const int length = std::snprintf(buffer_, sizeof buffer_, "%s%s", placement().tree, path);
        if (length > 0 && static_cast<std::size_t>(length) < sizeof buffer_) {
            use_buffer();
        }
    } else if (g_entered_tree) {
        resolve(folder, path);
    }
}

bool TreePath::is_empty() const {
    return real_ == nullptr || *real_ == '\0';
}

// A relative path from a folder of the tree, or the whole path of a file there. Parents are for the
// kernel to resolve.
void TreePath::resolve(int folder, const char* path) {
    const int error = errno;
    const char* const tree = placement().tree;
    const std::size_t length = std::strlen(tree);
    if (path[0] == '/') {
        if (lies_in(path, tree, length) &&
            std::snprintf(buffer_, sizeof buffer_, "%s", path) < PATH_MAX) {
            use_buffer();
        }
        return;
    }
    char link[64];
    if (folder == AT_FDCWD) {
        std::snprintf(link, sizeof link, "/proc/self/cwd");
    } else {
        std::snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    }
    char base[PATH_MAX];
    const ssize_t got = readlink(link, base, sizeof base - 1);
    errno = error;
    if (got <= 0) {
        return;
    }
    base[got] = '\0';
    const bool plain = std::strncmp(path, "..", 2) != 0 && std::strstr(path, "/..") == nullptr;
    if (plain && lies_in(base, tree, length) &&
        std::snprintf(buffer_, sizeof buffer_, "%s/%s", base, path) < PATH_MAX) {
        use_buffer();
    }
}

void TreePath::use_buffer() {
    squeeze(buffer_);
    real_ = buffer_;
    name_ = buffer_ + std::strlen(placement().tree);
}

}  // namespace simverbs::devices
