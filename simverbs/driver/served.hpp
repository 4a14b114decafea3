// The channel to a world that a server owns: commands over a socket, doorbells and rings in memory
// shared with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <tl/expected.hpp>

#include "simverbs/driver/channel.hpp"
#include "simverbs/driver/lent_memory.hpp"
#include "simverbs/driver/ring_segments.hpp"
#include "simverbs/driver/served_regions.hpp"
#include "simverbs/driver/served_report.hpp"
#include "simverbs/protocol/client_area.hpp"
#include "simverbs/protocol/served_protocol.hpp"
#include "simverbs/threads/spin_lock.hpp"
#include "simverbs/threads/thread_roster.hpp"

namespace simverbs::driver {

struct AttachFailure {
    int code = 0;  // an errno
    std::string reason;
};

class ServedChannel final : public Channel, private ThreadRoster::Listener {
  public:
    // Attaches this process to the world at `path` as `host`. Fails when there is none, or it has
    // no such host.
    static tl::expected<std::unique_ptr<ServedChannel>, AttachFailure> make(
        const std::string& path, const std::string& host);
    ~ServedChannel() override;

    [[nodiscard]] const std::vector<DeviceInfo>& devices() const override { return devices_; }
    int execute(CommandCode code, std::span<const std::byte> command, std::span<std::byte> reply,
                int& descriptor, std::string& refusal) override;
    void ring(const Doorbell& doorbell) override;
    void empty_poll(std::uint64_t seen, CompletionRing* queue) override;
    int take_event(const EventSource& source, int descriptor, EventMessage& message) override;
    int await_event(const EventSource& source, int descriptor, EventMessage& message) override;
    std::byte* map_ring(const RingReply& ring, int descriptor) override;
    void unmap_ring(std::byte* memory, std::uint64_t bytes) override;
    bool has_gone(std::chrono::milliseconds wait) override;

  private:
    ServedChannel(std::string path, int socket, int wake, ClientArea& area,
                  const AttachReply& reply);

    void thread_announced(const std::shared_ptr<ThreadEntry>& entry) override;
    void thread_began(const ThreadEntry& entry) override;
    void thread_left(const ThreadEntry& entry) override;
    void note_use_among_several(ObjectUse& object, Use use, std::string_view kind,
                                std::uint32_t number) override;

    // The calling thread's slot; taken at its creation, or at its first call.
    std::uint32_t actor();
    std::uint32_t take_slot(const ThreadEntry& entry);
    bool wait_while_stopped(std::size_t /*device*/) override { return !server_gone_; }
    bool exchange(const CommandRequest& request, CommandReply& answer, int& descriptor,
                  bool& lost_descriptor);
    [[nodiscard]] unsigned own_threads() const;
    PageRange pages_to_share(CommandCode code, std::span<const std::byte> command);
    std::uint32_t give_back(const CommandRequest& request, const CommandReply& answer);
    void take_back_pages(CommandCode code, std::span<const std::byte> command);
    void wake_server();
    void note_act(ActorSlot& slot);
    void note_nap(ActorSlot& slot);
    void wait_for_step(ActorSlot& slot);
    void note_gone();
    void copy_on_request();
    [[nodiscard]] CopyWord copy_for_server(CopyWord what);

    std::string path_;  // of the world
    int socket_;
    int wake_;
    ClientArea& area_;
    bool canonical_;
    bool copies_for_server_;
    std::atomic<bool> server_gone_ = false;
    std::vector<DeviceInfo> devices_;
    std::atomic<bool> has_several_threads_{false};
    std::map<std::uint64_t, std::uint32_t> slots_;  // by ThreadEntry::number; doorbell_lock_
    std::mutex command_mutex_;
    SpinLock doorbell_lock_;
    std::uint32_t doorbell_producer_ = 0;
    ServedRegions regions_;  // command_mutex_
    RingSegments rings_;
    LentMemory lent_;  // kept where this process copies for the server
    std::atomic<bool> stop_{false};
    std::thread copier_;
    std::once_flag report_started_;
    std::optional<ServedReport> report_;
};

}  // namespace simverbs::driver
