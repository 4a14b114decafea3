// A device as one client has opened it: the objects that it made there, and the commands that make,
// change and end them.
//
// Handles are checked on every command: what names nothing here is ENOENT (EINVAL for a queue pair,
// as rdma-core's kernel side answers), whoever sent it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "fabric/net/port.hpp"

#include "simverbs/hca/client.hpp"
#include "simverbs/hca/command.hpp"
#include "simverbs/hca/completion_counter.hpp"
#include "simverbs/hca/completion_queue.hpp"
#include "simverbs/hca/device_memory.hpp"
#include "simverbs/hca/event_pipe.hpp"
#include "simverbs/hca/flow_table.hpp"
#include "simverbs/hca/memory_region.hpp"
#include "simverbs/hca/memory_window.hpp"
#include "simverbs/hca/multicast_table.hpp"
#include "simverbs/hca/queue_pair.hpp"

namespace simverbs {

class Hca;

struct AddressHandle {
    ProtectionDomain* pd = nullptr;
    AddressVector path;
};

struct NumberOfQueuePair {
    using type = std::uint32_t;  // NOLINT(readability-identifier-naming): as Boost wants it
    std::uint32_t operator()(const QueuePair& qp) const { return qp.qpn(); }
};
using QueuePairsByNumber = boost::intrusive::set<QueuePair, boost::intrusive::base_hook<InContext>,
                                                 boost::intrusive::key_of_value<NumberOfQueuePair>>;

class DeviceContext {
  public:
    DeviceContext(Hca& hca, Client& client, std::uint32_t handle);
    // Everything that is left goes, as if the host had lost power.
    ~DeviceContext();
    DeviceContext(const DeviceContext&) = delete;
    DeviceContext& operator=(const DeviceContext&) = delete;

    [[nodiscard]] Hca& hca() const { return hca_; }
    [[nodiscard]] Client& client() const { return client_; }
    [[nodiscard]] std::uint32_t handle() const { return handle_; }
    [[nodiscard]] int take_event_reader() { return events_.take_reader(); }
    // Its device died, or left: also when the device is back.
    [[nodiscard]] bool is_dead() const { return is_dead_; }

    // Keeps why the command is refused, for take_refusal(); returns `error`.
    template <class... Args>
    int refuse(int error, fmt::format_string<Args...> format, Args&&... args) const {
        refusal_ = fmt::format(format, std::forward<Args>(args)...);
        return error;
    }
    // Why the last command was refused, in words; "" where nothing more than its errno is known.
    [[nodiscard]] std::string take_refusal() { return std::exchange(refusal_, {}); }

    int execute(const AllocatePd& command, HandleReply& reply);
    int execute(const DeallocatePd& command, EmptyReply& reply);
    int execute(const RegisterMr& command, RegisterMrReply& reply);
    int execute(const DeregisterMr& command, EmptyReply& reply);
    int execute(const ReregisterMr& command, RegisterMrReply& reply);
    int execute(const AllocateNullMr& command, RegisterMrReply& reply);
    int execute(const AdviseMr& command, AdviseMrReply& reply);
    int execute(const AllocateDm& command, AllocateDmReply& reply);
    int execute(const FreeDm& command, EmptyReply& reply);
    int execute(const RegisterDmMr& command, RegisterMrReply& reply);
    int execute(const AllocateMw& command, AllocateMwReply& reply);
    int execute(const DeallocateMw& command, EmptyReply& reply);
    int execute(const CreateChannel& command, HandleReply& reply);
    int execute(const DestroyChannel& command, EmptyReply& reply);
    int execute(const CreateCq& command, CreateCqReply& reply);
    int execute(const DestroyCq& command, EmptyReply& reply);
    int execute(const ResizeCq& command, ResizeCqReply& reply);
    int execute(const CreateQp& command, CreateQpReply& reply);
    int execute(const ModifyQp& command, ModifyQpReply& reply);
    int execute(const QueryQp& command, QueryQpReply& reply);
    int execute(const DestroyQp& command, EmptyReply& reply);
    int execute(const CreateAh& command, HandleReply& reply);
    int execute(const DestroyAh& command, EmptyReply& reply);
    int execute(const AttachMulticast& command, EmptyReply& reply);
    int execute(const DetachMulticast& command, EmptyReply& reply);
    int execute(const CreateSrq& command, CreateSrqReply& reply);
    int execute(const ModifySrq& command, ModifySrqReply& reply);
    int execute(const QuerySrq& command, QuerySrqReply& reply);
    int execute(const DestroySrq& command, EmptyReply& reply);
    int execute(const OpenXrcd& command, HandleReply& reply);
    int execute(const CloseXrcd& command, EmptyReply& reply);
    int execute(const OpenQp& command, HandleReply& reply);
    int execute(const QueryPort& command, QueryPortReply& reply);
    int execute(const QueryGid& command, QueryGidReply& reply);
    int execute(const QueryPkey& command, QueryPkeyReply& reply);
    int execute(const ModifyCq& command, EmptyReply& reply);
    int execute(const QueryClock& command, QueryClockReply& reply);
    int execute(const QueryPd& command, EmptyReply& reply);
    int execute(const QueryMr& command, QueryMrReply& reply);
    int execute(const ReportMisuse& command, EmptyReply& reply);
    template <CommandCode Code>
    int execute(const AskForPost<Code>& /*command*/, EmptyReply& /*reply*/) {
        return 0;
    }
    int execute(const AskForPoll& command, AskForPollReply& reply);
    int execute(const ResolveEthernet& command, ResolveEthernetReply& reply);
    int execute(const CreateFlow& command, HandleReply& reply);
    int execute(const DestroyFlow& command, EmptyReply& reply);
    int execute(const CreateCounters& command, HandleReply& reply);
    int execute(const DestroyCounters& command, EmptyReply& reply);
    int execute(const AttachCounters& command, EmptyReply& reply);
    int execute(const ReadCounters& command, ReadCountersReply& reply);
    int execute(const CreateCompletionCounter& command, CreateCompletionCounterReply& reply);
    int execute(const DestroyCompletionCounter& command, EmptyReply& reply);
    int execute(const SetCompletionCounter& command, EmptyReply& reply);
    int execute(const IncrementCompletionCounter& command, EmptyReply& reply);
    int execute(const AttachCompletionCounter& command, EmptyReply& reply);
    int execute(const CreateWq& command, CreateWqReply& reply);
    int execute(const ModifyWq& command, HandleReply& reply);
    int execute(const DestroyWq& command, EmptyReply& reply);
    int execute(const CreateIndirectionTable& command, HandleReply& reply);
    int execute(const DestroyIndirectionTable& command, EmptyReply& reply);

    // nullptr unless this context made it.
    [[nodiscard]] QueuePair* find_qp(std::uint32_t handle) const;
    [[nodiscard]] CompletionQueue* find_cq(std::uint32_t handle) const {
        return find(cqs_, handle);
    }
    [[nodiscard]] ReceiveWorkQueue* find_wq(std::uint32_t handle) const {
        return find(wqs_, handle);
    }
    [[nodiscard]] SharedReceiveQueue* find_srq(std::uint32_t handle) const {
        return find(srqs_, handle);
    }
    // nullptr unless this context made it.
    [[nodiscard]] const AddressHandle* find_address(std::uint32_t handle) const {
        const auto found = addresses_.find(handle);
        return found == addresses_.end() ? nullptr : &found->second;
    }
    template <class F>
    void for_each_qp(F&& visit) {
        for (QueuePair& qp : qps_) {
            visit(qp);
        }
    }
    template <class F>
    void for_each_cq(F&& visit) const {
        for (const auto& [handle, cq] : cqs_) {
            visit(*cq);
        }
    }
    template <class F>
    void for_each_pd(F&& visit) const {
        for (const auto& [handle, pd] : pds_) {
            visit(*pd);
        }
    }
    template <class F>
    void for_each_region(F&& visit) const {
        for (const auto& [handle, region] : regions_) {
            visit(*region);
        }
    }
    template <class F>
    void for_each_srq(F&& visit) const {
        for (const auto& [handle, srq] : srqs_) {
            visit(*srq);
        }
    }
    [[nodiscard]] std::size_t queue_pair_count() const { return qps_.size(); }

    // Nothing completes any more and no event is raised. `why` follows "because": the first reason
    // is kept.
    void die(std::string_view why);
    // The same, and its queue pairs are as if they had been destroyed.
    void abandon(std::string_view why);
    // Why it is dead, in words; "" while it is not.
    [[nodiscard]] std::string_view why_dead() const { return why_dead_; }
    [[nodiscard]] bool is_abandoned() const { return is_abandoned_; }

    // Tells the application; recorded in the trace.
    void raise(AsyncEvent event, std::uint32_t subject) { raise(event, subject, subject); }
    // The trace names the subject by its number, the application knows it by a handle.
    void raise(AsyncEvent event, std::uint32_t number, std::uint32_t handle);
    void send_event(EventPipe& pipe, const EventMessage& message);
    // The pipe of a completion channel, or with 0 that of asynchronous events. nullptr: there is no
    // such channel.
    [[nodiscard]] EventPipe* events_of(std::uint32_t channel);

  private:
    // For a handle that names no object of this context.
    int refuse_handle(int error, std::string_view kind, std::uint32_t handle) const {
        return refuse(error, "{} {} is none of this context", kind, handle);
    }
    // For memory of a ring that the machine does not have.
    [[nodiscard]] int refuse_ring() const {
        return refuse(ENOMEM, "there is no memory for its ring");
    }
    [[nodiscard]] int refuse_spread() const {
        return refuse(EOPNOTSUPP, "the queue pair spreads frames (RSS) and has no states");
    }
    // object_users.cpp: EBUSY, with what uses an object that cannot go.
    [[nodiscard]] int refuse_use(const ProtectionDomain& pd) const;
    [[nodiscard]] int refuse_use(const CompletionChannel& channel) const;
    [[nodiscard]] int refuse_use(const CompletionQueue& cq) const;
    [[nodiscard]] int refuse_use(const SharedReceiveQueue& srq) const;
    [[nodiscard]] int refuse_use(const QueuePair& qp) const;
    [[nodiscard]] int refuse_use(const ReceiveWorkQueue& wq) const;
    [[nodiscard]] int refuse_use(std::uint32_t number, const OpenedXrcDomain& xrcd) const;
    [[nodiscard]] int refuse_use(std::uint32_t number, const IndirectionTable& table) const;
    [[nodiscard]] int refuse_use(std::uint32_t number, const DeviceMemory& memory) const;
    [[nodiscard]] int refuse_use(std::uint32_t number, const CounterSet& counters) const;
    [[nodiscard]] int refuse_use(std::uint32_t number, const CompletionCounter& counter) const;
    // The errno of the personality for a region with windows.
    [[nodiscard]] int refuse_use(const MemoryRegion& region) const;
    // memory_commands.cpp
    int check_reregister(const ReregisterMr& command, MemoryRegion& after) const;
    int add_region(std::unique_ptr<MemoryRegion> region, RegisterMrReply& reply);
    void keep_payloads_of(const MemoryRegion& region);
    void unbind_windows_of(std::uint32_t qpn);
    [[nodiscard]] int check_capacity(const CreateQp& command) const;
    [[nodiscard]] int check_offloads(const CreateQp& command) const;
    // Finds the objects that the service needs, an errno where one is missing; a new queue pair's
    // objects go to `parts`.
    [[nodiscard]] int find_parts(const CreateQp& command, QueuePairParts& parts) const;
    [[nodiscard]] int check_spread(const CreateQp& command, const IndirectionTable* table) const;
    // shared_receive_commands.cpp
    void leave(QueuePair& qp, std::uint32_t handle);
    void drop_srq(std::uint32_t handle);
    [[nodiscard]] int find_group(const std::array<std::uint8_t, 16>& gid, std::uint16_t lid,
                                 const QueuePair* qp, MulticastGroup& group) const;
    [[nodiscard]] int refuse_port(std::uint32_t port) const;
    [[nodiscard]] std::uint16_t pkey_entries(const fabric::Port& port) const;
    template <class T>
    static T* find(const std::map<std::uint32_t, std::unique_ptr<T>>& objects,
                   std::uint32_t handle) {
        const auto found = objects.find(handle);
        return found == objects.end() ? nullptr : found->second.get();
    }

    Hca& hca_;
    Client& client_;
    std::uint32_t handle_;  // by which it has its numbers, too
    EventPipe events_;
    bool is_dead_ = false;
    std::string why_dead_;
    bool is_abandoned_ = false;
    mutable std::string refusal_;
    std::map<std::uint32_t, std::unique_ptr<ProtectionDomain>> pds_;
    std::map<std::uint32_t, std::unique_ptr<MemoryRegion>> regions_;
    std::map<std::uint32_t, std::unique_ptr<MemoryWindow>> windows_;
    std::map<std::uint32_t, std::unique_ptr<DeviceMemory>> device_memories_;
    std::uint64_t device_memory_bytes_ = 0;
    std::map<std::uint32_t, std::unique_ptr<CompletionChannel>> channels_;
    std::map<std::uint32_t, std::unique_ptr<CompletionQueue>> cqs_;
    std::map<std::uint32_t, std::unique_ptr<OpenedXrcDomain>> xrcds_;
    std::map<std::uint32_t, std::unique_ptr<SharedReceiveQueue>> srqs_;
    std::map<std::uint32_t, std::unique_ptr<ReceiveWorkQueue>> wqs_;
    std::map<std::uint32_t, std::unique_ptr<IndirectionTable>> tables_;
    std::map<std::uint32_t, AddressHandle> addresses_;
    std::map<std::uint32_t, std::unique_ptr<CompletionCounter>> completion_counters_;
    std::map<std::uint32_t, QueuePair*> opened_qps_;  // by the handle of the opening
    QueuePairsByNumber qps_;                          // owned
    std::map<std::uint32_t, std::unique_ptr<CounterSet>> counters_;
    std::map<std::uint32_t, std::unique_ptr<FlowRule>> flows_;
    std::uint32_t last_pd_ = 0;
    std::uint32_t last_channel_ = 0;
    std::uint32_t last_cq_ = 0;
    std::uint32_t last_xrcd_ = 0;
    std::uint32_t last_opening_ = 0;
    std::uint32_t last_address_ = 0;
    std::uint32_t last_flow_ = 0;
    std::uint32_t last_counters_ = 0;
    std::uint32_t last_completion_counter_ = 0;
    std::uint32_t last_table_ = 0;
    std::uint32_t last_device_memory_ = 0;
};

}  // namespace simverbs
