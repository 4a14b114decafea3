// A client process of a served world: its socket, the memory shared with it, its rings and what it
// has opened. When it goes, everything of it goes, as if its host had lost power.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "simverbs/hca/client.hpp"
#include "simverbs/protocol/client_area.hpp"
#include "simverbs/protocol/served_protocol.hpp"
#include "simverbs/server/process_memory.hpp"
#include "simverbs/server/ring_pool.hpp"
#include "simverbs/server/shared_segment.hpp"
#include "simverbs/threads/thread_watch.hpp"
#include "simverbs/time/early_polls.hpp"
#include "simverbs/world/attachment.hpp"

namespace simverbs {

// Closes it at its end; -1 where the system does not have such a thing.
class OwnDescriptor {
  public:
    // Throws std::system_error where no descriptor was left for `what`.
    OwnDescriptor(int descriptor, const char* what);
    ~OwnDescriptor();
    OwnDescriptor(const OwnDescriptor&) = delete;
    OwnDescriptor& operator=(const OwnDescriptor&) = delete;
    [[nodiscard]] int number() const { return number_; }

  private:
    int number_;
};

// Orders the processes that are attached: by the number of their host, then as they were created
// (ExpectedPrograms::Arrival).
using ClientPlace = std::pair<std::size_t, std::vector<std::uint32_t>>;

class RemoteClient final : public Client {
  public:
    // Throws std::system_error when there is no memory or no descriptor left; else `socket` becomes
    // the client's own. The host's number is the rank of its first HCA. `acts`: counts the commands
    // and takings of doorbells of all clients.
    RemoteClient(Simulation& simulation, int socket, pid_t process, ClientPlace place,
                 std::uint64_t& acts);
    ~RemoteClient() override;

    [[nodiscard]] int socket() const { return socket_; }
    [[nodiscard]] pid_t process() const { return process_; }
    [[nodiscard]] const std::string& host() const { return host_; }
    [[nodiscard]] std::size_t device_count() const { return attachment_.device_count(); }
    [[nodiscard]] const Hca& device(std::size_t index) const { return attachment_.device(index); }
    [[nodiscard]] const ClientPlace& place() const { return place_; }
    [[nodiscard]] ClientArea& area() const { return *reinterpret_cast<ClientArea*>(area_.base()); }
    [[nodiscard]] ProcessMemory& process_memory() { return memory_; }
    [[nodiscard]] int take_area_descriptor() { return area_.take_descriptor(); }

    // An eventfd that the client writes.
    [[nodiscard]] int wake_descriptor() const { return wake_.number(); }
    [[nodiscard]] int process_descriptor() const { return process_descriptor_.number(); }
    // Readable once the client unmaps registered memory; -1: it does not tell.
    [[nodiscard]] int unmap_descriptor() { return memory_.shared().unmaps().descriptor(); }
    void watch_unmaps(int descriptor) { memory_.shared().unmaps().begin(descriptor); }
    // One of these two is ready; that a wake-up is has done its work.
    void note_ready(int descriptor) {
        if (descriptor == unmap_descriptor()) {
            memory_.shared().unmaps().end();
        }
    }
    // Its memory is not to be touched any more: it has ended, or runs another program.
    [[nodiscard]] bool has_gone() const;
    // It is about to be gone: what it has opened is dead already.
    void abandon() { attachment_.abandon(); }

    // Doorbells that it has rung, oldest first; `most` a call.
    void take_doorbells(std::vector<Doorbell>& doorbells,
                        std::uint32_t most = ClientArea::kDoorbells);
    // Returns true if that meant anything.
    bool ring(const Doorbell& doorbell);
    // Counts a message or a doorbell that means nothing. A program makes none, or a few where one
    // of its threads ends what another uses; one that goes on is hung up on.
    void made_no_sense(std::string_view what);
    // Ends the connection, as of the next look at has_gone().
    void hang_up(std::string_view why);
    // Why it was hung up on; empty where it was not.
    [[nodiscard]] std::string_view why_hung_up() const;
    // Runs a command; the reply's descriptors are the caller's to send and close.
    CommandReply execute(const CommandRequest& request, std::vector<int>& descriptors);

    // A command that waits for its turn (canonical).
    std::optional<CommandRequest> pending;

    // How long a thread of it has run, of several the one that has run for longest, as of the last
    // look at everybody.
    std::optional<std::chrono::nanoseconds> busy;
    EarlyPolls early_polls;

    // It has done something that its own threads may learn of otherwise than by polling: those that
    // found nothing to poll before count as running their own code, until they poll again.
    void make_pollers_look() { completion_delivered(nullptr); }
    // One of its threads has given a command by a device file: none of them spins, as of now.
    void threads_may_have_acted();

    [[nodiscard]] std::uint64_t deliveries() const { return deliveries_; }
    [[nodiscard]] std::uint64_t events_sent() const { return events_sent_; }
    // Slots that are in use; the client may only make them more.
    [[nodiscard]] std::uint32_t actor_count();
    // As of the last call of that.
    [[nodiscard]] std::uint32_t known_actors() const { return actors_seen_; }
    // Returns true if it has attached a moment ago and not come to that yet: it is waited for, a
    // second at most, unless it asks for something meanwhile.
    [[nodiscard]] bool is_about_to_name_threads();
    // Nothing else was done before it had.
    [[nodiscard]] bool named_threads_in_time() const { return !was_given_up_; }
    // Returns true if the client saw the thread being created.
    [[nodiscard]] bool is_announced(std::uint32_t actor) const {
        return area().actors[actor].announced.load(std::memory_order_relaxed) != 0;
    }
    // All threads wait: see ObjectUse.
    void begin_turn() { area().turn.value.store(++turn_, std::memory_order_release); }
    // Returns what two of its threads used in one turn, in words; "" if there is nothing.
    [[nodiscard]] std::string shared_object() const;
    [[nodiscard]] ThreadWatch& watch(std::uint32_t actor);
    // The actor has been in the library just now; one that there is not: nothing.
    void watch_anew(std::uint32_t actor);
    // Returns true if it has found nothing to poll since the call before, and something was
    // delivered before that.
    [[nodiscard]] bool has_polled(std::uint32_t actor);
    // For messages: "thread 1 (rping) of h0", the same in each run.
    [[nodiscard]] std::string describe(std::uint32_t actor) const;
    // Time has moved since its threads were looked at.
    void time_passed();
    // Canonical: notes the polls that have found nothing and wait, after so many steps.
    void note_waiting_polls(std::uint64_t step);
    // Lets those return that have news, or all. Polls that have begun since wait on: the step may
    // already have woken their threads.
    void end_noted_polls(bool all);
    // Lets those return that began before that many steps. Returns true if there are any.
    bool end_polls_before(std::uint64_t step);
    // Canonical: the actor has found nothing to poll, and waits.
    [[nodiscard]] bool is_in_poll(std::uint32_t actor) const;
    // Threads that poll give their processor up the sooner.
    void note_crowd(bool is_crowded) {
        std::atomic<std::uint64_t>& crowded = area().crowded.value;
        if ((crowded.load(std::memory_order_relaxed) != 0) != is_crowded) {
            crowded.store(is_crowded ? 1 : 0, std::memory_order_relaxed);
        }
    }
    // Returns true if something has come since polls were last ended.
    [[nodiscard]] bool has_news() const { return news_for_all_ || !news_.empty(); }
    // Returns true if a peer has ever written to its memory without a completion of its own: its
    // threads may look at memory for what comes.
    [[nodiscard]] bool is_written_to() const { return is_written_to_; }
    // Time stands, and they are about to end all the same: see EarlyPolls.
    void call_noted_polls_early();
    // Returns which thread has acted after such a poll, in words; "" if none has.
    [[nodiscard]] std::string acted_early();
    // The same of one that may have acted by the clock (simverbs/threads/clock_watch.hpp).
    [[nodiscard]] std::string acted_by_clock();

  private:
    [[nodiscard]] std::string find_actor(bool (*is_wanted)(const ActorSlot&));
    void follow_regions(const CommandRequest& request, CommandReply& reply);
    AddressSpace& memory() override { return memory_; }
    RingMemory make_ring(std::size_t bytes, std::size_t zeroed) override;
    [[nodiscard]] RingReply ring_reply(const RingMemory& ring) const override;
    void release_ring(const RingMemory& ring) override;
    void hand_over(int descriptor) override { handed_over_.push_back(descriptor); }
    void completion_delivered(const CompletionRing* queue) override;
    void memory_written() override {
        news_for_all_ = true;
        is_written_to_ = true;
    }
    void end_noted_poll(std::uint32_t actor);
    void event_delivered() override;

    int socket_;
    OwnDescriptor process_descriptor_;
    OwnDescriptor wake_;
    pid_t process_;
    std::string program_;  // its name when it attached: the same in each run
    ClientPlace place_;
    std::string host_;
    SharedSegment area_;
    std::uint64_t& acts_;
    ProcessMemory memory_;
    std::uint32_t doorbell_consumer_ = 0;
    std::uint64_t deliveries_ = 0;
    std::uint64_t events_sent_ = 0;
    std::uint32_t actors_seen_ = 0;
    std::uint64_t turn_ = 0;
    std::int64_t attached_ns_ = wall_ns();
    bool was_given_up_ = false;
    bool is_written_to_ = false;
    std::uint32_t nonsense_ = 0;
    std::string_view why_hung_up_;
    std::vector<int> handed_over_;
    std::vector<std::unique_ptr<ThreadWatch>> watches_;
    std::vector<std::uint32_t> watched_threads_;
    std::vector<std::uint64_t> polled_;  // by actor: deliveries before it last found nothing
    struct WaitingPoll {
        std::uint32_t ticket = 0;
        std::uint64_t since = 0;  // steps
    };
    std::vector<WaitingPoll> waiting_polls_;  // by actor
    std::vector<std::uint32_t> news_;         // actors to whose queues a completion has come
    bool news_for_all_ = false;
    RingPool rings_;
    Attachment attachment_;  // last: its objects refer to the rings and the memory
};

}  // namespace simverbs
