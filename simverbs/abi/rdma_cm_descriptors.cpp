#include "simverbs/abi/rdma_cm_descriptors.hpp"

#include <algorithm>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simverbs/abi/process.hpp"

namespace simverbs::abi {

using driver::RdmaCmFileNumber;

namespace {

struct Entry {
    std::atomic<RdmaCmFileNumber> file;  // 0: none
    std::atomic<ino_t> inode;
    std::atomic<std::uint64_t> generation;  // of the process that has opened it
};

Entry g_entries[RdmaCmDescriptors::kMax];
std::atomic<int> g_highest{-1};

// Not fstat(3), which says what the device would.
ino_t inode_of(int descriptor) {
    struct stat about {};
    return syscall(SYS_fstat, descriptor, &about) == 0 ? about.st_ino : 0;
}

}  // namespace

bool RdmaCmDescriptors::has(int descriptor) {
    return descriptor >= 0 && descriptor < kMax &&
           g_entries[descriptor].file.load(std::memory_order_acquire) != 0;
}

RdmaCmFileNumber RdmaCmDescriptors::find(int descriptor) {
    if (!has(descriptor)) {
        return 0;
    }
    Entry& entry = g_entries[descriptor];
    const RdmaCmFileNumber file = entry.file;
    if (inode_of(descriptor) == entry.inode) {
        return file;
    }
    forget(descriptor);
    return 0;
}

bool RdmaCmDescriptors::is_inherited(int descriptor) {
    return g_entries[descriptor].generation != Process::generation();
}

bool RdmaCmDescriptors::note(int descriptor, RdmaCmFileNumber file) {
    if (descriptor < 0 || descriptor >= kMax) {
        return false;
    }
    Entry& entry = g_entries[descriptor];
    entry.inode = inode_of(descriptor);
    entry.generation = Process::generation();
    entry.file.store(file, std::memory_order_release);
    int highest = g_highest;
    while (highest < descriptor && !g_highest.compare_exchange_weak(highest, descriptor)) {
    }
    return true;
}

void RdmaCmDescriptors::copy(int descriptor, int copy) {
    const RdmaCmFileNumber file = find(descriptor);
    if (file != 0 && note(copy, file)) {
        g_entries[copy].generation = g_entries[descriptor].generation.load();
    }
}

void RdmaCmDescriptors::forget(int descriptor) {
    g_entries[descriptor].file.store(0, std::memory_order_release);
}

bool RdmaCmDescriptors::any(RdmaCmFileNumber file) {
    for (int descriptor = 0; descriptor <= g_highest; ++descriptor) {
        if (g_entries[descriptor].file == file && find(descriptor) == file) {
            return true;
        }
    }
    return false;
}

}  // namespace simverbs::abi
