#include "simverbs/abi/rdma_cm_library.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string_view>

#include <dlfcn.h>
#include <unistd.h>

#include "simverbs/abi/rdma_cm_calls.hpp"

namespace simverbs::abi {

bool is_librdmacm(const void* code) {
    Dl_info file{};
    if (dladdr(code, &file) == 0 || file.dli_fname == nullptr) {
        return false;
    }
    const std::string_view path = file.dli_fname;
    return path.substr(path.rfind('/') + 1).starts_with("librdmacm.so");
}

void name_missing_rdma_cm() {
    static std::atomic_flag s_looked;
    const int error = errno;
    if (s_looked.test_and_set() || access(kInterposedPath, F_OK) == 0) {
        errno = error;
        return;
    }
    if (dlsym(RTLD_DEFAULT, "simverbs_rdmacm_linked") != nullptr) {
        std::fputs(
            "simverbs: this program asks for rdma_cm, and libsimverbs-rdmacm.so stands behind libc "
            "in it: name it (simverbs::rdmacm) on the link line of the executable itself\n",
            stderr);
    } else {
        std::fputs(
            "simverbs: this program asks for rdma_cm, which it cannot reach: link the executable "
            "to libsimverbs-rdmacm.so (simverbs::rdmacm), or start it with `simverbs run` or "
            "`simverbs on`\n",
            stderr);
    }
    errno = error;
}

}  // namespace simverbs::abi
