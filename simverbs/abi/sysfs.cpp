// The two functions by which ibv_devinfo, librdmacm and Open MPI read /sys through the library.
// They read real files: a simulated /sys is made by whoever sets SYSFS_PATH or interposes open(),
// not here.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "simverbs/abi/provider_abi.hpp"

namespace {

constexpr std::size_t kPathLimit = 256;

// SYSFS_PATH is not taken from whoever starts a set-user-ID program.
std::string sysfs_path() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): read once, while a static is initialised
    const char* wanted = getuid() == geteuid() ? std::getenv("SYSFS_PATH") : nullptr;
    if (wanted == nullptr) {
        return "/sys";
    }
    std::string path(wanted);
    path.resize(std::min(path.size(), kPathLimit));
    while (!path.empty() && path.back() == '/') {
        path.pop_back();
    }
    return path;
}

}  // namespace

const char* simverbs_abi_ibv_get_sysfs_path() {
    static const std::string kPath = sysfs_path();
    return kPath.c_str();
}

// Bytes read, without the newline at the end; -1 when there is no such file or the contents do not
// fit with a terminating zero.
int simverbs_abi_ibv_read_sysfs_file(const char* directory, const char* file, char* buffer,
                                     std::size_t size) {
    const std::string path = std::string(directory) + '/' + file;
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return -1;
    }
    const ssize_t count = read(descriptor, buffer, size);
    close(descriptor);
    if (count <= 0) {
        return static_cast<int>(count);
    }
    auto length = static_cast<std::size_t>(count);
    if (buffer[length - 1] == '\n') {
        --length;
    } else if (length == size) {
        return -1;
    }
    buffer[length] = '\0';
    return static_cast<int>(length);
}
