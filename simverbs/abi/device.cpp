// Devices and contexts: listing, opening, closing.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "fabric/core/counted.hpp"

#include "simverbs/abi/destroyed_objects.hpp"
#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/misuse.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/open_contexts.hpp"
#include "simverbs/abi/operations.hpp"
#include "simverbs/abi/process.hpp"
#include "simverbs/abi/provider_abi.hpp"
#include "simverbs/abi/rdma_cm_library.hpp"
#include "simverbs/abi/warnings.hpp"
#include "simverbs/simverbs.h"
#include "simverbs/threads/uncancelled.hpp"

namespace simverbs::abi {
namespace {

void copy_name(char* to, std::size_t size, const std::string& from) {
    std::snprintf(to, size, "%s", from.c_str());
}

}  // namespace

Device::Device(std::uint32_t index, std::uint32_t number, const DeviceInfo& info)
    : DeviceBlock{}, index_(index), number_(number), info_(info) {
    device.node_type = IBV_NODE_CA;
    device.transport_type = IBV_TRANSPORT_IB;
    const std::string node = "uverbs" + std::to_string(index);
    copy_name(device.name, sizeof device.name, info.name);
    copy_name(device.dev_name, sizeof device.dev_name, node);
    copy_name(device.dev_path, sizeof device.dev_path, "/sys/class/infiniband_verbs/" + node);
    copy_name(device.ibdev_path, sizeof device.ibdev_path, "/sys/class/infiniband/" + info.name);
}

Context::Context(Device& opened, Channel& channel, std::uint32_t handle, int event_descriptor)
    : Context(opened, channel, handle, event_descriptor,
              memfd_create(kCommandDescriptorName, MFD_CLOEXEC),
              std::make_shared<EventSubjects>(Process::current().pinned())) {}

// Both take events from one stream: whoever reads first has them.
Context::Context(const Context& original, int command_descriptor)
    : Context(original.device_, original.channel_, original.handle_,
              fcntl(original.older.context.async_fd, F_DUPFD_CLOEXEC, 0), command_descriptor,
              original.subjects_) {}

Context::Context(Device& opened, Channel& channel, std::uint32_t handle, int event_descriptor,
                 int command_descriptor, std::shared_ptr<EventSubjects> subjects)
    : NewerVerbsContext{},
      subjects_(std::move(subjects)),
      cqs(subjects_->cqs),
      qps(subjects_->qps),
      srqs(subjects_->srqs),
      wqs(subjects_->wqs),
      device_memories(subjects_->device_memories),
      device_(opened),
      channel_(channel),
      handle_(handle),
      generation_(Process::generation()) {
    if (warnings_wanted()) {
        watch_ = std::make_unique<BufferWatch>(Process::current().embedded() != nullptr);
    }
    older.sz = sizeof(NewerVerbsContext);
    ibv_context& context = older.context;
    context.device = opened.c_handle();
    context.cmd_fd = command_descriptor;
    context.async_fd = event_descriptor;
    context.num_comp_vectors = static_cast<int>(personality().limits.completion_vectors);
    context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    pthread_mutex_init(&context.mutex, nullptr);
    set_operations(*this);
}

Context::~Context() {
    const Uncancelled uncancelled;
    close(older.context.cmd_fd);
    close(older.context.async_fd);
    pthread_mutex_destroy(&older.context.mutex);
}

std::string Context::describe_objects() const {
    return device_.info().name + " with " + fabric::counted(qps.size(), "queue pair") + " and " +
           fabric::counted(cqs.size(), "completion queue") + subjects_->counts.describe();
}

bool Context::has_objects() const {
    return !qps.empty() || !cqs.empty() || subjects_->counts.any();
}

bool Context::is_foreign() const {
    return generation_ != Process::generation();
}

bool Context::is_kept_open() const {
    return is_librdmacms_ && !has_objects();
}

namespace {

void name_inheritance() {
    static std::atomic_flag s_named;
    if (warnings_wanted() && !s_named.test_and_set()) {
        std::fprintf(stderr,
                     "simverbs: process %d was forked: what it inherited is its parent's, and "
                     "answers EIO; devices that it opens itself work\n",
                     static_cast<int>(getpid()));
    }
}

void name_kill(const std::string& why) {
    static std::atomic_flag s_named;
    if (warnings_wanted() && !s_named.test_and_set()) {
        std::fprintf(stderr,
                     "simverbs: %s: its code in this process runs on, and its posts and polls fail "
                     "with EIO\n",
                     why.c_str());
    }
}

}  // namespace

bool Context::admits() const {
    if (is_foreign()) [[unlikely]] {
        if (generation_ != kAbandoned) {
            name_inheritance();
        }
        return false;
    }
    return await_running();
}

std::string Context::why_unusable() const {
    if (generation_ == kAbandoned) {
        return "the context is of a world that has ended";
    }
    return is_foreign()   ? "the context was inherited through fork: it is the parent's"
           : was_killed() ? channel_.why_killed(device_.index())
                          : std::string(kWorldHasGone);
}

int Context::refuse_use(std::string_view verb) const {
    if (!is_foreign() && was_killed()) {
        name_kill(channel_.why_killed(device_.index()));
    }
    keep_reason(verb, why_unusable());
    return with_errno(EIO);
}

bool Context::is_end_of_world() {
    static constexpr std::chrono::milliseconds kPatience{100};
    std::call_once(subjects_->looked_for_end,
                   [this] { subjects_->is_end_of_world = channel_.has_gone(kPatience); });
    return subjects_->is_end_of_world;
}

SIMVERBS_ABI ibv_device** simverbs_abi_ibv_get_device_list(int* num_devices) {
    if (is_librdmacm(__builtin_return_address(0)) && Process::current().embedded() != nullptr) {
        name_missing_rdma_cm();
    }
    const std::vector<Device*> devices = Process::current().devices();
    if (const int shortage = Process::current().shortage(); shortage != 0) {
        errno = shortage;
        return nullptr;
    }
    // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers
    auto** list = static_cast<ibv_device**>(std::calloc(devices.size() + 1, sizeof(ibv_device*)));
    if (list == nullptr) {
        errno = ENOMEM;
        return nullptr;
    }
    std::transform(devices.begin(), devices.end(), list,
                   [](Device* device) { return device->c_handle(); });
    if (num_devices != nullptr) {
        *num_devices = static_cast<int>(devices.size());
    }
    return list;
}

namespace {

// UCX looks for the file of a device before it opens it, and leaves out those that have none.
void name_missing_files() {
    static std::atomic_flag s_named;
    if (warnings_wanted() && Process::current().embedded() != nullptr &&
        !Process::current().has_opened_any() && access("/dev/infiniband/uverbs0", F_OK) != 0 &&
        !s_named.test_and_set()) {
        std::fprintf(stderr,
                     "simverbs: devices were listed and none was opened; a program that looks for "
                     "/dev/infiniband/uverbsN finds it where it is started by `simverbs run` or "
                     "`simverbs on`\n");
    }
}

// The answer to the calling thread's last simverbs_objects_left().
thread_local std::string t_objects_left;

}  // namespace

// The devices themselves stay: contexts and later lists refer to them.
SIMVERBS_ABI void simverbs_abi_ibv_free_device_list(ibv_device** list) {
    name_missing_files();
    std::free(list);
}

SIMVERBS_ABI const char* simverbs_abi_ibv_get_device_name(ibv_device* device) {
    return device->name;
}

SIMVERBS_ABI const char* simverbs_device_host(ibv_device* device) {
    return device == nullptr ? nullptr : as_object(device).info().host.c_str();
}

SIMVERBS_ABI const char* simverbs_objects_left(ibv_context* handle) {
    if (handle == nullptr) {
        return "";
    }
    const Context& context = as_object(handle);
    t_objects_left = context.has_objects() ? context.describe_objects() : "";
    return t_objects_left.c_str();
}

SIMVERBS_ABI __be64 simverbs_abi_ibv_get_device_guid(ibv_device* device) {
    static_assert(std::endian::native == std::endian::little);
    return __builtin_bswap64(as_object(device).info().guid);
}

SIMVERBS_ABI int simverbs_abi_ibv_get_device_index(ibv_device* device) {
    return static_cast<int>(as_object(device).number());
}

SIMVERBS_ABI ibv_context* simverbs_abi_ibv_open_device(ibv_device* device) {
    Device& opened = as_object(device);
    Channel* channel = Process::current().channel();
    if (channel == nullptr) {
        const int shortage = Process::current().shortage();
        refuse("ibv_open_device", shortage != 0 ? shortage : ENODEV, "there is no world");
        return nullptr;
    }
    OpenContext command;
    command.device = opened.index();
    HandleReply reply;
    int descriptor = -1;
    channel->await_running(opened.index());
    std::string refusal;
    if (const int error = channel->execute(command, reply, descriptor, refusal); error != 0) {
        explain_command(OpenContext::kCode, std::nullopt, error, refusal);
        return nullptr;
    }
    auto* context = new Context(opened, *channel, reply.handle, descriptor);
    if (is_librdmacm(__builtin_return_address(0))) {
        context->opened_by_librdmacm();
    }
    Process::current().context_opened(*context);
    return context->c_handle();
}

// Objects that are left go with the context, as the kernel would see to.
SIMVERBS_ABI int simverbs_abi_ibv_close_device(ibv_context* handle) {
    if (was_destroyed(handle, __builtin_return_address(0))) {
        return with_errno(EINVAL);
    }
    if (!take_open_context(handle)) {
        return refuse("ibv_close_device", EINVAL,
                      "{} is no open device: it was closed before, by ibv_close_device() or "
                      "simverbs_close_devices(), or was never opened",
                      fmt::ptr(handle));
    }
    Context& context = as_object(handle);
    if (!context.is_foreign()) {
        if (context.is_last()) {
            if (context.has_objects()) {
                name_misuse(context, Misuse::kNotDestroyed, 0, context.describe_objects());
            }
            context.execute(CloseContext{});
        }
        Process::current().context_closed(context);
    }
    destroy(context, {handle, handle, "device context", 0});
    return 0;
}

}  // namespace simverbs::abi
