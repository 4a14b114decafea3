// The objects behind the handles of verbs.h. Each derives from the C struct that an application
// holds, so one cast converts in both directions, and all casts stand in this file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>

#include <boost/intrusive/set.hpp>

#include <infiniband/verbs.h>

#include "simverbs/abi/buffer_watch.hpp"
#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/newer_abi.hpp"
#include "simverbs/abi/object_counts.hpp"
#include "simverbs/driver/channel.hpp"
#include "simverbs/driver/completion_counter.hpp"
#include "simverbs/driver/pinned_memory.hpp"
#include "simverbs/driver/queues.hpp"
#include "simverbs/model/misuse.hpp"
#include "simverbs/model/services.hpp"

namespace simverbs::abi {

// libmlx5 and libefa read one pointer behind an ibv_device to recognise their own: theirs is never
// this one's.
struct DeviceBlock {
    ibv_device device;
    void* provider_operations;
    void* provider_private[15];
};
static_assert(std::is_standard_layout_v<DeviceBlock> && offsetof(DeviceBlock, device) == 0);
static_assert(offsetof(DeviceBlock, provider_operations) == 664 && sizeof(DeviceBlock) >= 720);

class Device final : public DeviceBlock {
  public:
    // `index`: its place in the world; `number`: by which programs know it in the process.
    Device(std::uint32_t index, std::uint32_t number, const DeviceInfo& info);
    [[nodiscard]] ibv_device* c_handle() { return &device; }
    [[nodiscard]] std::uint32_t index() const { return index_; }
    [[nodiscard]] std::uint32_t number() const { return number_; }
    [[nodiscard]] const DeviceInfo& info() const { return info_; }

  private:
    std::uint32_t index_;
    std::uint32_t number_;
    DeviceInfo info_;
};

class CompletionQueue;
class DeviceMemory;
class QueuePair;
class SharedReceiveQueue;
class ReceiveWorkQueue;

// Who reads the events of a descriptor.
struct ChannelUse {
    SpinLock lock;
    ObjectUse use;
};

using InEventSubjects =
    boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>,
                                    boost::intrusive::optimize_size<true>>;
struct HandleOfQueuePair {
    using type = std::uint32_t;  // NOLINT(readability-identifier-naming): as Boost wants it
    std::uint32_t operator()(const QueuePair& qp) const;
};
using QueuePairsByHandle =
    boost::intrusive::set<QueuePair, boost::intrusive::base_hook<InEventSubjects>,
                          boost::intrusive::key_of_value<HandleOfQueuePair>>;

// Whom an event concerns, or an import names, by handle; under the lock, which also guards event
// counts; and what memory is pinned. One for all that have opened or imported the same context of
// the device.
struct EventSubjects {
    explicit EventSubjects(driver::PinnedMemory& of_process) : pinned(of_process) {}

    std::mutex lock;
    std::map<std::uint32_t, CompletionQueue*> cqs;
    QueuePairsByHandle qps;
    std::map<std::uint32_t, SharedReceiveQueue*> srqs;
    std::map<std::uint32_t, ReceiveWorkQueue*> wqs;
    std::map<std::uint32_t, const DeviceMemory*> device_memories;
    ObjectCounts counts;
    driver::PinnedByContext pinned;
    ChannelUse async_use;
    std::once_flag looked_for_end;
    bool is_end_of_world = false;  // as was seen then
    std::atomic_flag told_of_end;
};

// Says why the device refused a command, about object `number` if it names one; `error` stays in
// errno.
void explain_command(CommandCode code, std::optional<std::uint32_t> number, int error,
                     const std::string& refusal);

class Context final : public NewerVerbsContext {
  public:
    Context(Device& device, Channel& channel, std::uint32_t handle, int event_descriptor);
    // The same context of the device once more (ibv_import_device(3)). Takes the descriptor.
    Context(const Context& original, int command_descriptor);
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    [[nodiscard]] ibv_context* c_handle() { return &older.context; }
    [[nodiscard]] Device& device() const { return device_; }
    [[nodiscard]] const Personality& personality() const { return *device_.info().personality; }
    [[nodiscard]] Channel& channel() const { return channel_; }
    [[nodiscard]] std::uint32_t number() const { return handle_; }
    // How much is left on it, in words.
    [[nodiscard]] std::string describe_objects() const;
    [[nodiscard]] bool has_objects() const;
    // No other is left that has opened or imported the same.
    [[nodiscard]] bool is_last() const { return subjects_.use_count() == 1; }
    // Inherited through fork, or abandoned: nothing may be done with it here.
    [[nodiscard]] bool is_foreign() const;
    // The library of rdma_cm has opened it, and keeps it open for ever.
    void opened_by_librdmacm() { is_librdmacms_ = true; }
    [[nodiscard]] bool is_librdmacms() const { return is_librdmacms_; }
    // By that library alone: with nothing on it, as is where each of the program's ids has ended.
    [[nodiscard]] bool is_kept_open() const;
    // Its world is about to end: whoever has it may close it and do nothing else.
    void abandon() { generation_ = kAbandoned; }
    // Asked by every verb, of the data path too, before it does anything: false where the context
    // is foreign, or its world has gone (EIO); returns once no fault has the programs of its host
    // stopped.
    [[nodiscard]] bool admits() const;
    // Asked by posts and polls in place of that: false, too, where a fault has killed the programs
    // of its host, and this process is one of them.
    [[nodiscard]] bool admits_work() const {
        return admits() && channel_.admits_work(device_.index(), handle_);
    }
    [[nodiscard]] bool was_killed() const { return channel_.was_killed(device_.index(), handle_); }
    // The second half of admits(): after a verb that let time move.
    [[nodiscard]] bool await_running() const { return channel_.await_running(device_.index()); }
    // One of its descriptors has reached its end: the device is gone, or the world with it. Looks
    // once; the others wait for the answer.
    bool is_end_of_world();
    // True once, for the first who is to tell of that.
    bool tells_of_end() { return !subjects_->told_of_end.test_and_set(); }

    // Says why admits_work() is false, in simverbs_last_error(), and of a killed program once on
    // stderr, which has the others already. EIO, in errno too, which a verb that returns -1 needs
    // alone.
    int refuse_use(std::string_view verb) const;  // NOLINT(modernize-use-nodiscard)

    // An errno, and in errno too; EIO in a forked child. `refusal` says why, in words.
    template <Command C>
    int execute(C command, typename C::Reply& reply, int& descriptor, std::string& refusal) {
        if (!admits()) {
            refusal = why_unusable();
            return with_errno(EIO);
        }
        command.context = handle_;
        const int error = channel_.execute(command, reply, descriptor, refusal);
        if constexpr (is_counted(C::kCode)) {
            if (error == 0) {
                subjects_->counts.note(C::kCode);
            }
        }
        return with_errno(error);
    }
    // The same; the reason is for simverbs_last_error().
    template <Command C>
    int execute(const C& command, typename C::Reply& reply, int& descriptor) {
        if (!admits()) {
            return refuse_use(fmt::format("ibv_{}", to_string(C::kCode)));
        }
        std::string refusal;
        const int error = execute(command, reply, descriptor, refusal);
        if (error != 0) {
            std::optional<std::uint32_t> number;
            if constexpr (requires { command.handle; }) {
                number = command.handle;
            }
            explain_command(C::kCode, number, error, refusal);
        }
        return error;
    }
    template <Command C>
    int execute(const C& command, typename C::Reply& reply) {
        int descriptor = -1;
        return execute(command, reply, descriptor);
    }
    template <Command C>
    int execute(const C& command) {
        typename C::Reply reply{};
        return execute(command, reply);
    }

    // The errno with which an injected fault refuses a post to that object, in errno too; 0: none.
    template <CommandCode Code>
    int refused_post(std::uint32_t handle) {
        return channel_.asks_at_posts() ? execute(AskForPost<Code>{.handle = handle}) : 0;
    }

    // Returns true if polls are to ask completions_of_poll().
    [[nodiscard]] bool asks_at_polls() const { return channel_.asks_at_polls(); }
    // How many of the `found` completions a poll returns while faults wait for polls.
    int completions_of_poll(CompletionQueue& cq, int found);

    std::mutex& lock() { return subjects_->lock; }
    ChannelUse& async_use() { return subjects_->async_use; }
    driver::PinnedByContext& pinned() { return subjects_->pinned; }
    // Where mistakes are to be named, as of the opening; else null.
    [[nodiscard]] BufferWatch* watch() const { return watch_.get(); }

  private:
    [[nodiscard]] std::string why_unusable() const;

    Context(Device& device, Channel& channel, std::uint32_t handle, int event_descriptor,
            int command_descriptor, std::shared_ptr<EventSubjects> subjects);

    std::shared_ptr<EventSubjects> subjects_;

  public:
    std::map<std::uint32_t, CompletionQueue*>& cqs;
    QueuePairsByHandle& qps;
    std::map<std::uint32_t, SharedReceiveQueue*>& srqs;
    std::map<std::uint32_t, ReceiveWorkQueue*>& wqs;
    std::map<std::uint32_t, const DeviceMemory*>& device_memories;

  private:
    Device& device_;
    Channel& channel_;
    std::uint32_t handle_;
    static constexpr std::uint64_t kAbandoned = 0;

    std::uint64_t generation_;
    bool is_librdmacms_ = false;
    std::unique_ptr<BufferWatch> watch_;
};

class ThreadDomain final : public ibv_td {
  public:
    explicit ThreadDomain(Context& owner) : ibv_td{owner.c_handle()} {}
    std::uint32_t uses = 0;  // parent domains; under the context's lock
};

// A parent domain is one, too: the same domain to the device, with what it adds here.
class ProtectionDomain final : public ibv_pd {
  public:
    ProtectionDomain(Context& owner, std::uint32_t number) : ibv_pd{owner.c_handle(), number} {}
    ProtectionDomain(ProtectionDomain& original, ThreadDomain* thread_domain)
        : ibv_pd{original.context, original.handle}, extends(&original), threads(thread_domain) {}

    ProtectionDomain* extends = nullptr;  // of a parent domain: what it was made on
    ThreadDomain* threads = nullptr;
    std::uint32_t uses = 0;  // parent domains made on it; under the context's lock
};

class MemoryRegion final : public ibv_mr {
  public:
    MemoryRegion(ibv_pd& owner, void* first, std::size_t bytes, const RegisterMrReply& reply)
        : ibv_mr{owner.context, &owner, first, bytes, reply.handle, reply.lkey, reply.rkey} {}

    bool is_null = false;
    bool is_pinned = false;  // its pages count against the limit
};

class DeviceMemory final : public ibv_dm {
  public:
    DeviceMemory(std::byte* base, std::uint64_t bytes) : ibv_dm{}, base_(base), bytes_(bytes) {}
    [[nodiscard]] std::byte* base() const { return base_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  private:
    std::byte* base_;
    std::uint64_t bytes_;
};

class MemoryWindow final : public ibv_mw {
  public:
    MemoryWindow(ibv_pd& owner, ibv_mw_type kind, const AllocateMwReply& reply)
        : ibv_mw{owner.context, &owner, reply.rkey, reply.handle, kind} {}
};

class CompletionChannel final : public ibv_comp_channel {
  public:
    CompletionChannel(Context& owner, std::uint32_t number, int descriptor)
        : ibv_comp_channel{owner.c_handle(), descriptor, 0}, number_(number) {}
    [[nodiscard]] std::uint32_t number() const { return number_; }

    ChannelUse use;

  private:
    std::uint32_t number_;
};

// Events that the application was given and has not acknowledged hold up the destruction of what
// they are about (ibv_ack_cq_events(3)).
struct EventCount {
    std::uint32_t given = 0;
};

class CompletionQueue final : public ibv_cq_ex {
  public:
    CompletionQueue(Context& owner, const CreateCqReply& reply, std::byte* ring)
        : ibv_cq_ex{},
          queue(owner.channel(), owner.device().index(), reply.handle, ring, reply.ring.bytes,
                reply.entries) {}
    [[nodiscard]] ibv_cq* c_handle() { return ibv_cq_ex_to_cq(this); }

    driver::CompletionQueue queue;
    const Cqe* current = nullptr;  // that the iterator stands at
    bool is_extended = false;      // made by ibv_create_cq_ex()
    bool read_undefined = false;   // to be named when the iterator ends
    // Polls in vain before the first completion, kHasFound after it; counted where mistakes are to
    // be named.
    static constexpr std::uint32_t kHasFound = UINT32_MAX;
    std::atomic<std::uint32_t> vain_polls{0};
    const ibv_pd* parent_domain = nullptr;  // that it was made with
    EventCount completion_events;
    EventCount async_events;
};

class SharedReceiveQueue final : public ibv_srq {
  public:
    SharedReceiveQueue(Context& owner, const CreateSrqReply& reply, std::byte* ring)
        : ibv_srq{}, queue(owner.channel(), owner.number(), reply, ring) {}

    driver::SharedReceiveQueue queue;
    CompletionQueue* completions = nullptr;  // XRC and tag matching
    EventCount async_events;
};

class ReceiveWorkQueue final : public ibv_wq {
  public:
    ReceiveWorkQueue(Context& owner, const CreateWqReply& reply, std::byte* ring,
                     driver::CompletionQueue& completions)
        : ibv_wq{}, queue(owner.channel(), owner.number(), reply, ring, completions) {}

    driver::ReceiveWorkQueue queue;
    EventCount async_events;
};

class XrcDomain final : public ibv_xrcd {
  public:
    XrcDomain(Context& owner, std::uint32_t number) : ibv_xrcd{owner.c_handle()}, number_(number) {}
    [[nodiscard]] std::uint32_t number() const { return number_; }

  private:
    std::uint32_t number_;
};

class Counters final : public ibv_counters {
  public:
    Counters(Context& owner, std::uint32_t number)
        : ibv_counters{owner.c_handle()}, number_(number) {}
    [[nodiscard]] std::uint32_t number() const { return number_; }

  private:
    std::uint32_t number_;
};

class CompletionCounter final : public CompCntr {
  public:
    CompletionCounter(Context& owner, const CreateCompletionCounterReply& reply, std::byte* ring)
        : CompCntr{owner.c_handle(), reply.handle},
          counter(owner.channel(), owner.device().index(), reply, ring) {}

    driver::CompletionCounter counter;
};

struct SendBatch;  // extended_queue_pair.cpp
struct EndSendBatch {
    void operator()(SendBatch* batch) const;
};

// Lies before the struct that the application holds: a whole NewerQpEx where it was made with send
// operations, otherwise the ibv_qp at its beginning. There may be many, so it is small.
class alignas(8) QueuePair final : public InEventSubjects {
  public:
    // `has_operations`: made with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS. Ends by destroy() of
    // destroyed_objects.hpp.
    static QueuePair* make(Context& owner, const CreateQpReply& reply, std::byte* ring,
                           const driver::QueuePairQueues& parts, bool has_operations);
    ~QueuePair() = default;

    [[nodiscard]] ibv_qp* c_handle() { return reinterpret_cast<ibv_qp*>(this + 1); }
    [[nodiscard]] const ibv_qp* c_handle() const {
        return reinterpret_cast<const ibv_qp*>(this + 1);
    }
    [[nodiscard]] BufferWatch* watch() const;  // the context's
    [[nodiscard]] QpCapacity capacity() const;
    // Only of one with send operations.
    [[nodiscard]] NewerQpEx& extended() { return *reinterpret_cast<NewerQpEx*>(this + 1); }

    driver::QueuePair queues;
    std::uint32_t inline_bytes;      // of one request
    std::uint32_t tso_header_bytes;  // likewise
    const ServiceProperties* service = nullptr;
    std::unique_ptr<SendBatch, EndSendBatch> batch;  // of a queue pair made with send operations
    bool signals_all = false;
    std::uint32_t signaled = 0;  // one past the last signaled request; guarded by the queue's lock
    std::optional<Misuse> mistake;  // to be named once that lock is free
    EventCount async_events;

  private:
    QueuePair(Context& owner, const CreateQpReply& reply, std::byte* ring,
              const driver::QueuePairQueues& parts)
        : queues(owner.channel(), owner.number(), reply, ring, parts),
          inline_bytes(reply.capacity.inline_bytes),
          tso_header_bytes(reply.capacity.tso_header_bytes) {}
};

static_assert(std::is_standard_layout_v<NewerVerbsContext> &&
              std::is_standard_layout_v<NewerQpEx> && offsetof(NewerQpEx, older) == 0);

inline std::uint32_t HandleOfQueuePair::operator()(const QueuePair& qp) const {
    return qp.c_handle()->handle;
}

inline Device& as_object(ibv_device* handle) {
    return *static_cast<Device*>(reinterpret_cast<DeviceBlock*>(handle));
}
inline Context& as_object(ibv_context* handle) {
    constexpr std::size_t kOffset =
        offsetof(NewerVerbsContext, older) + offsetof(verbs_context, context);
    auto* block =
        reinterpret_cast<NewerVerbsContext*>(reinterpret_cast<std::byte*>(handle) - kOffset);
    return *static_cast<Context*>(block);
}
inline ThreadDomain& as_object(ibv_td* handle) {
    return *static_cast<ThreadDomain*>(handle);
}
inline ProtectionDomain& as_object(ibv_pd* handle) {
    return *static_cast<ProtectionDomain*>(handle);
}
inline MemoryRegion& as_object(ibv_mr* handle) {
    return *static_cast<MemoryRegion*>(handle);
}
inline DeviceMemory& as_object(ibv_dm* handle) {
    return *static_cast<DeviceMemory*>(handle);
}
inline MemoryWindow& as_object(ibv_mw* handle) {
    return *static_cast<MemoryWindow*>(handle);
}
inline CompletionChannel& as_object(ibv_comp_channel* handle) {
    return *static_cast<CompletionChannel*>(handle);
}
// ibv_cq and ibv_cq_ex share their head, and every queue is made as the larger.
inline CompletionQueue& as_object(ibv_cq* handle) {
    return *static_cast<CompletionQueue*>(reinterpret_cast<ibv_cq_ex*>(handle));
}
inline CompletionQueue& as_object(ibv_cq_ex* handle) {
    return *static_cast<CompletionQueue*>(handle);
}
inline SharedReceiveQueue& as_object(ibv_srq* handle) {
    return *static_cast<SharedReceiveQueue*>(handle);
}
inline ReceiveWorkQueue& as_object(ibv_wq* handle) {
    return *static_cast<ReceiveWorkQueue*>(handle);
}
inline XrcDomain& as_object(ibv_xrcd* handle) {
    return *static_cast<XrcDomain*>(handle);
}
inline Counters& as_object(ibv_counters* handle) {
    return *static_cast<Counters*>(handle);
}
inline CompletionCounter& as_object(CompCntr* handle) {
    return *static_cast<CompletionCounter*>(handle);
}
inline QueuePair& as_object(ibv_qp* handle) {
    return *(reinterpret_cast<QueuePair*>(handle) - 1);
}

inline BufferWatch* QueuePair::watch() const {
    return as_object(c_handle()->context).watch();
}

}  // namespace simverbs::abi
