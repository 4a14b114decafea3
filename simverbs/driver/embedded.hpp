// The world in this process: made at first use from the environment and the control API, shared by
// everything in the process that opens a device.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fabric/core/outcome.hpp"

#include "simverbs/driver/channel.hpp"
#include "simverbs/driver/embedded_options.hpp"
#include "simverbs/driver/embedded_rdma_cm.hpp"
#include "simverbs/driver/process_branches.hpp"
#include "simverbs/driver/report_signal.hpp"
#include "simverbs/faults/fault_board.hpp"
#include "simverbs/faults/host_programs.hpp"
#include "simverbs/hca/client.hpp"
#include "simverbs/outlets/trace_outlets.hpp"
#include "simverbs/threads/conductor.hpp"

namespace simverbs::driver {

// The function that this thread calls instead of moving time (simverbs_set_wait_hook).
struct WaitHook {
    void (*wait)(void*) = nullptr;
    void* argument = nullptr;
};
extern thread_local WaitHook t_wait_hook;

// The function that tells whose program this thread is (simverbs_set_host_hook).
struct HostHook {
    const char* (*host)(void*) = nullptr;
    void* argument = nullptr;
};
extern thread_local HostHook t_host_hook;

class EmbeddedWorld final : public Channel, private Client, private HostPrograms, private Reporter {
  public:
    static fabric::Outcome<std::unique_ptr<EmbeddedWorld>> make(const EmbeddedOptions& options);
    ~EmbeddedWorld() override;

    [[nodiscard]] Simulation& simulation() { return *simulation_; }
    [[nodiscard]] Conductor& conductor() { return *conductor_; }
    // Both with the world held.
    [[nodiscard]] TraceOutlets& traces() { return traces_; }
    [[nodiscard]] FaultBoard& faults() { return faults_; }
    [[nodiscard]] EmbeddedRdmaCm& rdma_cm() { return *rdma_cm_; }
    // A thread of this process may come to wait for the world without any device open.
    void start_helper() { conductor_->start_helper(); }
    // Writes out the trace and the digest, and prints the summary, if that was asked for.
    void finish();

    [[nodiscard]] const std::vector<DeviceInfo>& devices() const override { return devices_; }
    // Returns true if the device is plugged in.
    [[nodiscard]] bool is_present(std::size_t device) const {
        return attachment_->device(device).is_present();
    }
    int execute(CommandCode code, std::span<const std::byte> command, std::span<std::byte> reply,
                int& descriptor, std::string& refusal) override;
    void ring(const Doorbell& doorbell) override;
    void empty_poll(std::uint64_t seen, CompletionRing* queue) override;
    int take_event(const EventSource& source, int descriptor, EventMessage& message) override;
    int await_event(const EventSource& source, int descriptor, EventMessage& message) override;
    // The caller blocks until `descriptor`, a socket, is readable; 0, or EINTR as read(2) would.
    int wait_readable(int descriptor);
    std::byte* map_ring(const RingReply& ring, int descriptor) override;
    void unmap_ring(std::byte* memory, std::uint64_t bytes) override;

  private:
    EmbeddedWorld(const EmbeddedOptions& options, std::unique_ptr<Simulation> simulation);

    // Returns which file cannot be written, and why; else "".
    std::string open_outlets();
    void print_summary() const;
    void leave_digest() const;

    void request_report() noexcept override { conductor_->request_report(); }

    AddressSpace& memory() override { return memory_; }
    RingMemory make_ring(std::size_t bytes, std::size_t zeroed) override;
    void release_ring(const RingMemory& ring) override;
    void hand_over(int descriptor) override { handed_over_ = descriptor; }
    void completion_delivered(const CompletionRing* queue) override {
        conductor_->delivered(
            queue == nullptr ? 0 : queue->poller.value.load(std::memory_order_relaxed));
    }
    void memory_written() override { conductor_->memory_written(); }
    void event_delivered() override { conductor_->event_delivered(); }

    void peer_never_was(std::uint32_t qpn) override;

    // Programs of a host are whoever calls verbs on its devices.
    std::string_view halt(const std::string& host) override;
    void resume(const std::string& host) override { set_stopped(host, false); }
    std::string_view end(const std::string& host, const std::string& why) override;
    [[nodiscard]] bool can_ask_when_working() const override { return true; }
    void ask_when_working(bool posting, bool polling) override {
        set_asks_at_posts(posting);
        set_asks_at_polls(polling);
    }
    void set_stopped(const std::string& host, bool stopped);
    bool wait_while_stopped(std::size_t device) override;
    [[nodiscard]] std::string why_killed(std::size_t device) const override;
    [[nodiscard]] bool admit_work(std::size_t device, std::uint32_t context) override;
    [[nodiscard]] bool was_killed(std::size_t device, std::uint32_t context) const override;
    void note_use_among_several(ObjectUse& object, Use use, std::string_view kind,
                                std::uint32_t number) override {
        conductor_->note_use(object, use, kind, number);
    }

    EmbeddedOptions options_;
    OwnMemory memory_;
    std::unique_ptr<Simulation> simulation_;
    TraceOutlets traces_;
    FaultBoard faults_;
    std::unique_ptr<Conductor> conductor_;
    std::unique_ptr<Attachment> attachment_;
    std::unique_ptr<EmbeddedRdmaCm> rdma_cm_;
    std::unique_ptr<ProcessBranches> branches_;
    std::vector<DeviceInfo> devices_;
    std::unique_ptr<std::atomic<bool>[]> stopped_;  // by device: the programs of its host are
    // By device: the contexts up to this one are of programs that a fault has killed.
    std::unique_ptr<std::atomic<std::uint32_t>[]> last_killed_;
    mutable std::mutex reasons_lock_;
    std::map<std::string, std::string> reasons_of_kills_;  // by host
    int handed_over_ = -1;
    unsigned number_ = 0;  // among the worlds of this process, from 1
    bool hinted_at_other_process_ = false;
};

}  // namespace simverbs::driver
