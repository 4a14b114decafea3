// The way from a driver to its devices: commands, doorbells, and the two ways of waiting.
//
// Two implementations: the world in this process, and a server's. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simverbs/hca/command.hpp"
#include "simverbs/hca/event_pipe.hpp"
#include "simverbs/model/personality.hpp"
#include "simverbs/threads/object_use.hpp"
#include "simverbs/world/attachment.hpp"

namespace simverbs {

// A device that can be opened; `index` of OpenContext is its place in Channel::devices().
struct DeviceInfo {
    std::string name;  // "simverbs0"
    std::string host;
    std::uint64_t guid = 0;
    std::uint16_t ports = 1;
    const Personality* personality = nullptr;

    bool operator==(const DeviceInfo&) const = default;
};

// Why a command fails once its server has ended.
inline constexpr std::string_view kWorldHasGone = "the world has gone: its server ended";

class Channel {
  public:
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;
    virtual ~Channel() = default;

    [[nodiscard]] virtual const std::vector<DeviceInfo>& devices() const = 0;

    // An errno. `descriptor` takes what comes with the reply, -1 if nothing does; `refusal` why the
    // command was refused, in words, "" where nothing more than the errno is known.
    virtual int execute(CommandCode code, std::span<const std::byte> command,
                        std::span<std::byte> reply, int& descriptor, std::string& refusal) = 0;
    virtual void ring(const Doorbell& doorbell) = 0;

    // How often something was delivered to this process: to be read before a queue is looked at.
    [[nodiscard]] std::uint64_t deliveries() const {
        return deliveries_->load(std::memory_order_acquire);
    }
    // The caller found nothing to poll, as of `seen` deliveries: time may move. `queue` is where it
    // looked; without one it may go on whenever anything happens.
    virtual void empty_poll(std::uint64_t seen, CompletionRing* queue) = 0;
    // Takes the next event of `source`, the caller's number of whose descriptor is given. 0;
    // EAGAIN: there is none; EIO: what sends it is gone; or another errno of recv(2).
    virtual int take_event(const EventSource& source, int descriptor, EventMessage& message) = 0;
    // The same, but where there is none the caller blocks; also EINTR, as read(2). EAGAIN: another
    // thread took it.
    virtual int await_event(const EventSource& source, int descriptor, EventMessage& message) = 0;

    // Returns true if several threads act, so that it matters which of them used an object first.
    [[nodiscard]] bool has_several_actors() const {
        return several_actors_->load(std::memory_order_relaxed);
    }
    // The calling thread uses an object, `kind` and `number` of which name it; with the object's
    // lock held.
    void note_use(ObjectUse& object, Use use, std::string_view kind, std::uint32_t number) {
        if (has_several_actors()) [[unlikely]] {
            note_use_among_several(object, use, kind, number);
        }
    }

    // Returns once no fault has the programs of that device's host stopped; at once where none has.
    // False: the world has gone, and nothing will come of what the caller waits for.
    bool await_running(std::size_t device) {
        return stopped_hosts_.load(std::memory_order_relaxed) == 0 || wait_while_stopped(device);
    }
    // Asked by posts and polls, before they take any lock. False: was_killed().
    [[nodiscard]] bool admits_work(std::size_t device, std::uint32_t context) {
        return !watches_work_.load(std::memory_order_relaxed) || admit_work(device, context);
    }
    // Returns true if a fault has killed the program that opened this context of that device, where
    // programs are threads of this process: no one else can stop them.
    [[nodiscard]] virtual bool was_killed(std::size_t /*device*/, std::uint32_t /*context*/) const {
        return false;
    }
    // Says which fault it was, and when; of such a device only.
    [[nodiscard]] virtual std::string why_killed(std::size_t /*device*/) const { return {}; }
    // Returns true if posts are to ask the device first, since a fault waits for one.
    [[nodiscard]] bool asks_at_posts() const {
        return asks_at_posts_.load(std::memory_order_relaxed);
    }
    // Likewise polls that find something.
    [[nodiscard]] bool asks_at_polls() const {
        return asks_at_polls_.load(std::memory_order_relaxed);
    }
    // Looks whether the world has gone: a system call. A server that was killed closes what it
    // shares with this process one by one: `wait` is how long to watch for the rest.
    virtual bool has_gone(std::chrono::milliseconds /*wait*/) { return false; }

    // Memory of a ring that a reply announced; nullptr if it cannot be mapped.
    virtual std::byte* map_ring(const RingReply& ring, int descriptor) = 0;
    virtual void unmap_ring(std::byte* memory, std::uint64_t bytes) = 0;

    template <Command C>
    int execute(const C& command, typename C::Reply& reply, int& descriptor, std::string& refusal) {
        return execute(C::kCode, std::as_bytes(std::span(&command, 1)),
                       std::as_writable_bytes(std::span(&reply, 1)), descriptor, refusal);
    }
    template <Command C>
    int execute(const C& command, typename C::Reply& reply) {
        int descriptor = -1;
        std::string refusal;
        return execute(command, reply, descriptor, refusal);
    }

  protected:
    explicit Channel(const std::atomic<std::uint64_t>& deliveries) : deliveries_(&deliveries) {}
    void count_deliveries_in(const std::atomic<std::uint64_t>& deliveries) {
        deliveries_ = &deliveries;
    }
    void look_for_several_actors_in(const std::atomic<bool>& several) {
        several_actors_ = &several;
    }
    // Not 0: await_running() asks wait_while_stopped().
    void count_stopped_hosts(std::uint32_t count) {
        stopped_hosts_.store(count, std::memory_order_relaxed);
    }

    // From now on admits_work() asks admit_work().
    void watch_work() { watches_work_.store(true, std::memory_order_release); }

    void set_asks_at_posts(bool asks) { asks_at_posts_.store(asks, std::memory_order_relaxed); }
    void set_asks_at_polls(bool asks) { asks_at_polls_.store(asks, std::memory_order_relaxed); }

  private:
    [[nodiscard]] virtual bool admit_work(std::size_t device, std::uint32_t context) {
        return !was_killed(device, context);
    }
    virtual bool wait_while_stopped(std::size_t /*device*/) { return true; }
    virtual void note_use_among_several(ObjectUse& object, Use use, std::string_view kind,
                                        std::uint32_t number) = 0;

    static constexpr std::atomic<bool> kOne{false};

    // All are read at every poll.
    const std::atomic<bool>* several_actors_ = &kOne;
    const std::atomic<std::uint64_t>* deliveries_;
    std::atomic<std::uint32_t> stopped_hosts_{0};
    std::atomic<bool> watches_work_{false};
    std::atomic<bool> asks_at_posts_{false};
    std::atomic<bool> asks_at_polls_{false};
};

}  // namespace simverbs
