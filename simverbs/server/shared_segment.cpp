#include "simverbs/server/shared_segment.hpp"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace simverbs {

SharedSegment::SharedSegment(std::size_t bytes, const char* name, Pages pages) : bytes_(bytes) {
    const auto refuse = [this](const char* what) {
        const int error = errno;
        if (descriptor_ >= 0) {
            close(descriptor_);
        }
        throw std::system_error(error, std::generic_category(), what);
    };
    descriptor_ = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor_ < 0 || ftruncate(descriptor_, static_cast<off_t>(bytes_)) != 0 ||
        fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        refuse("shared memory");
    }
    void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                        MAP_SHARED | (pages == Pages::kAtOnce ? MAP_POPULATE : 0), descriptor_, 0);
    if (mapped == MAP_FAILED) {
        refuse("mapping shared memory");
    }
    base_ = static_cast<std::byte*>(mapped);
}

SharedSegment::~SharedSegment() {
    munmap(base_, bytes_);
    if (descriptor_ >= 0) {
        close(descriptor_);
    }
}

int SharedSegment::take_descriptor() {
    return std::exchange(descriptor_, -1);
}

}  // namespace simverbs
