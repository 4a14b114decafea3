// System calls on /dev/infiniband/rdma_cm of the embedded world: each is a command in its turn, and
// GET_EVENT on a blocking descriptor a blocking verb.
#include "simverbs/abi/rdma_cm_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <fcntl.h>
#include <rdma/rdma_user_cm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simverbs/abi/export.hpp"
#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/process.hpp"
#include "simverbs/abi/rdma_cm_descriptors.hpp"
#include "simverbs/hca/guarded_copy.hpp"
#include "simverbs/rdma_cm/ucma_file.hpp"

namespace simverbs::abi {
namespace {

using driver::EmbeddedRdmaCm;
using driver::EmbeddedWorld;
using driver::RdmaCmFileNumber;
using rdma_cm::UcmaFile;
using rdma_cm::UcmaInputs;
using rdma_cm::UcmaNeeds;
using rdma_cm::UcmaReply;

// The longest command is shorter; what follows one is not read.
constexpr std::size_t kMaxWritten = 4096;

int failed_with(int error) {
    errno = error;
    return -1;
}

template <class F>
void in_turn(EmbeddedWorld& world, F&& what) {
    class Call final : public PendingCommand {
      public:
        explicit Call(F& what) : what_(what) {}
        void run() override { what_(); }

      private:
        F& what_;
    };
    Call call(what);
    world.conductor().execute(call);
}

std::optional<std::vector<std::uint8_t>> read_memory(std::uint64_t address, std::size_t count) {
    std::vector<std::uint8_t> bytes(count);
    OwnMemory memory;
    const bool is_there =
        count == 0 ||
        memory.read(address, static_cast<std::byte*>(static_cast<void*>(bytes.data())), count);
    return is_there ? std::optional(std::move(bytes)) : std::nullopt;
}

// An errno. What the command was is in `written`.
int carry_out(EmbeddedWorld& world, RdmaCmFileNumber file, std::span<const std::uint8_t> written) {
    UcmaInputs inputs;
    const UcmaNeeds needs = UcmaFile::needs(written);
    const auto option = read_memory(needs.option_address, needs.option_bytes);
    if (option) {
        inputs.option = *option;
    }
    RdmaCmFileNumber named = 0;
    if (needs.descriptor) {
        const auto other = static_cast<int>(*needs.descriptor);
        inputs.descriptor_is_open = fcntl(other, F_GETFD) >= 0;
        named = RdmaCmDescriptors::find(other);
    }
    UcmaReply reply;
    in_turn(world, [&] { reply = world.rdma_cm().write(file, written, inputs, named); });
    OwnMemory memory;
    if (reply.error == 0 && !reply.bytes.empty() &&
        !memory.write(reply.address,
                      static_cast<const std::byte*>(static_cast<const void*>(reply.bytes.data())),
                      reply.bytes.size())) {
        return EFAULT;
    }
    return reply.error;
}

bool is_get_event(std::span<const std::uint8_t> written) {
    rdma_ucm_cmd_hdr header{};
    if (written.size() < sizeof header) {
        return false;
    }
    std::copy_n(written.data(), sizeof header,
                static_cast<std::uint8_t*>(static_cast<void*>(&header)));
    return header.cmd == RDMA_USER_CM_CMD_GET_EVENT;
}

// Waits for an event, or looks once more after a step where the descriptor does not block.
int get_event(EmbeddedWorld& world, int descriptor, RdmaCmFileNumber file,
              std::span<const std::uint8_t> written) {
    for (;;) {
        const std::uint64_t seen = world.deliveries();
        const int error = carry_out(world, file, written);
        if (error != EAGAIN) {
            return error;
        }
        if ((fcntl(descriptor, F_GETFL) & O_NONBLOCK) != 0) {
            world.empty_poll(seen, nullptr);
            return carry_out(world, file, written);
        }
        if (const int interrupted = world.wait_readable(descriptor); interrupted != 0) {
            return interrupted;
        }
    }
}

}  // namespace

extern "C" {

SIMVERBS_ABI int simverbs_rdma_cm_exists() {
    return Process::current().embedded() != nullptr ? 1 : 0;
}

SIMVERBS_ABI int simverbs_rdma_cm_has(int descriptor) {
    return RdmaCmDescriptors::has(descriptor) ? 1 : 0;
}

SIMVERBS_ABI int simverbs_rdma_cm_is_open(int descriptor) {
    return RdmaCmDescriptors::find(descriptor) != 0 ? 1 : 0;
}

SIMVERBS_ABI int simverbs_rdma_cm_open(int flags) {
    EmbeddedWorld* const world = Process::current().embedded();
    if (world == nullptr) {
        return failed_with(ENXIO);
    }
    const RdmaCmCalls call;
    world->start_helper();
    const driver::HostHook& hook = driver::t_host_hook;
    const char* const host = hook.host == nullptr ? nullptr : hook.host(hook.argument);
    EmbeddedRdmaCm::Opened opened;
    in_turn(*world, [&] { opened = world->rdma_cm().open(host == nullptr ? "" : host); });
    if (opened.error != 0) {
        return failed_with(opened.error);
    }
    if (!RdmaCmDescriptors::note(opened.descriptor, opened.number)) {
        in_turn(*world, [&] { world->rdma_cm().close(opened.number); });
        syscall(SYS_close, opened.descriptor);
        return failed_with(EMFILE);
    }
    if ((flags & O_NONBLOCK) != 0) {
        fcntl(opened.descriptor, F_SETFL, O_RDWR | O_NONBLOCK);
    }
    if ((flags & O_CLOEXEC) == 0) {
        fcntl(opened.descriptor, F_SETFD, 0);
    }
    return opened.descriptor;
}

SIMVERBS_ABI ssize_t simverbs_rdma_cm_write(int descriptor, const void* bytes, size_t count) {
    const RdmaCmCalls call;
    const RdmaCmFileNumber file = RdmaCmDescriptors::find(descriptor);
    if (file == 0) {
        return syscall(SYS_write, descriptor, bytes, count);
    }
    EmbeddedWorld* const world = Process::current().embedded();
    if (world == nullptr || RdmaCmDescriptors::is_inherited(descriptor)) {
        return failed_with(EIO);
    }
    const auto written =
        read_memory(reinterpret_cast<std::uintptr_t>(bytes), std::min(count, kMaxWritten));
    if (!written) {
        return failed_with(EFAULT);
    }
    const int error = is_get_event(*written) ? get_event(*world, descriptor, file, *written)
                                             : carry_out(*world, file, *written);
    return error == 0 ? static_cast<ssize_t>(count) : failed_with(error);
}

// The file ends with its last descriptor. A child does nothing to its parent's.
SIMVERBS_ABI int simverbs_rdma_cm_close(int descriptor) {
    const RdmaCmCalls call;
    const RdmaCmFileNumber file = RdmaCmDescriptors::find(descriptor);
    const bool is_own = file != 0 && !RdmaCmDescriptors::is_inherited(descriptor);
    if (file != 0) {
        RdmaCmDescriptors::forget(descriptor);
    }
    const int result = static_cast<int>(syscall(SYS_close, descriptor));
    EmbeddedWorld* const world = is_own ? Process::current().embedded() : nullptr;
    if (world != nullptr && !RdmaCmDescriptors::any(file)) {
        const int error = errno;
        in_turn(*world, [&] { world->rdma_cm().close(file); });
        errno = error;
    }
    return result;
}

SIMVERBS_ABI void simverbs_rdma_cm_copied(int descriptor, int copy) {
    RdmaCmDescriptors::copy(descriptor, copy);
}

}  // extern "C"

}  // namespace simverbs::abi
