// Buffers that the library allocates (ibv_alloc_buf(3)) and registration by a struct of attributes
// (ibv_reg_mr_ex), as libibverbs does both for a device that has no ways of its own: buffers are
// ordinary memory, never DMA-bufs. DMA-bufs and DMA handles are refused.
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include <unistd.h>

#include <infiniband/verbs.h>

#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/newer_abi.hpp"
#include "simverbs/abi/warnings.hpp"

namespace simverbs::abi {

struct Buffer {
    void* address;
    std::size_t bytes;
    const ibv_pd* domain;
};

namespace {

ibv_mr* refuse_registration(const char* reason) {
    refuse("ibv_reg_mr_ex", EINVAL, "{}", reason);
    return nullptr;
}

ibv_mr* refuse_unmodelled(std::atomic_flag& named, const char* call) {
    name_refusal(named, call);
    return nullptr;
}

// Returns true if the attributes name a part of their buffer, and nothing that a buffer stands for.
bool is_within_buffer(const ibv_pd* pd, const MrInitAttr& attr) {
    const Buffer& buffer = *attr.buffer;
    const auto offset = reinterpret_cast<std::uintptr_t>(attr.address) -
                        reinterpret_cast<std::uintptr_t>(buffer.address);
    return pd == buffer.domain && (attr.comp_mask & kRegMrAddress) != 0 &&
           (attr.comp_mask & (kRegMrDescriptor | kRegMrDescriptorOffset)) == 0 &&
           attr.address >= buffer.address && offset <= buffer.bytes &&
           attr.length <= buffer.bytes - offset;
}

// Returns true if the mask says all that a DMA-buf needs, and no address in this process.
constexpr bool describes_dma_buf(std::uint64_t mask) {
    constexpr std::uint64_t kNeeded = kRegMrDescriptor | kRegMrDescriptorOffset | kRegMrIova;
    return (mask & (kNeeded | kRegMrAddress)) == kNeeded;
}

}  // namespace

SIMVERBS_ABI void* simverbs_abi_ibv_alloc_buf(ibv_pd* pd, std::size_t size, Buffer** buffer) {
    void* memory = nullptr;
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    if (const int error = posix_memalign(&memory, page, size); error != 0) {
        refuse("ibv_alloc_buf", error, "there is no memory for {} bytes", size);
        return nullptr;
    }
    *buffer = new Buffer{memory, size, pd};
    return memory;
}

SIMVERBS_ABI void simverbs_abi_ibv_free_buf(Buffer* handle) {
    const std::unique_ptr<Buffer> buffer(handle);
    std::free(buffer->address);  // NOLINT(cppcoreguidelines-no-malloc): posix_memalign
}

SIMVERBS_ABI int simverbs_abi_ibv_export_buf_dmabuf_fd(Buffer* /*buffer*/) {
    refuse("ibv_export_buf_dmabuf_fd", ENODATA, "the buffer is ordinary memory, no DMA-buf");
    return -1;
}

SIMVERBS_ABI ibv_mr* simverbs_abi_ibv_reg_mr_ex(ibv_pd* pd, const MrInitAttr* attr) {
    static std::atomic_flag named_attribute;
    static std::atomic_flag named_dma_buf;
    std::uint64_t mask = attr->comp_mask;
    if ((mask & kRegMrBuffer) != 0) {
        if (!is_within_buffer(pd, *attr)) {
            return refuse_registration("the range is not within the buffer, or its PD is another");
        }
        mask &= ~kRegMrBuffer;
    }
    constexpr std::uint64_t kKnown =
        kRegMrIova | kRegMrAddress | kRegMrDescriptor | kRegMrDescriptorOffset;
    if ((mask & ~kKnown) != 0) {
        return refuse_unmodelled(named_attribute,
                                 "ibv_reg_mr_ex() with a DMA handle or an unknown attribute");
    }
    if ((mask & kRegMrDescriptor) != 0) {
        return describes_dma_buf(mask)
                   ? refuse_unmodelled(named_dma_buf, "ibv_reg_mr_ex() of a DMA-buf")
                   : refuse_registration("a DMA-buf takes fd, fd_offset and iova, and no address");
    }
    if ((mask & kRegMrAddress) == 0 || (mask & kRegMrDescriptorOffset) != 0) {
        return refuse_registration("the address is missing");
    }
    const std::uint64_t iova =
        (mask & kRegMrIova) != 0 ? attr->iova : reinterpret_cast<std::uint64_t>(attr->address);
    return simverbs_abi_ibv_reg_mr_iova2(pd, attr->address, attr->length, iova,
                                         static_cast<unsigned>(attr->access));
}

SIMVERBS_ABI ibv_mr* simverbs_abi_ibv_reg_buf_mr(ibv_pd* pd, Buffer* buffer, void* address,
                                                 std::size_t length, int access) {
    MrInitAttr attr{};
    attr.comp_mask = kRegMrBuffer | kRegMrAddress;
    attr.length = length;
    attr.access = access;
    attr.address = address;
    attr.buffer = buffer;
    return simverbs_abi_ibv_reg_mr_ex(pd, &attr);
}

}  // namespace simverbs::abi
