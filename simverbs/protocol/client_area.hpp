// The memory that a served world shares with one client process: doorbells, who of its threads
// waits, and the buffer through which it copies where the server may not reach its memory.
//
// The server made the segment and sealed its size. It believes nothing that it reads here: a copy
// is taken, indices are bounded, and what makes no sense is ignored.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "simverbs/hca/doorbell.hpp"
#include "simverbs/transport/work_queue.hpp"

namespace simverbs {

// The activity of a thread of a client.
enum class ActorWord : std::uint32_t {
    kFree,     // the slot belongs to no thread
    kRunning,  // its own code
    kPolling,  // found nothing to poll; `seen` says as of which delivery
    kBlocked,  // in a blocking verb; `seen` counts events
};

// The last poll of a thread: kEnded though time stood (EarlyPolls); the thread has kActed since.
enum class EarlyWord : std::uint32_t { kNo, kEnded, kActed };

// A thread has slept for a time since the server last looked: without doorbells that the server had
// not taken when it went on, or with some.
enum class NapWord : std::uint32_t { kNone, kIdle, kPosted };

struct alignas(kCacheLine) ActorSlot {
    std::atomic<std::uint32_t> state;      // ActorWord
    std::atomic<std::uint32_t> thread;     // as the kernel numbers it; 0: it has not begun yet
    std::atomic<std::uint32_t> announced;  // 1: the client saw it being created
    std::atomic<std::uint32_t> early;      // canonical: EarlyWord
    std::atomic<std::uint32_t> by_clock;   // canonical: 1: perhaps it has acted by the clock
    std::atomic<std::uint32_t> nap;        // canonical: NapWord
    std::atomic<std::uint32_t>
        any_news;                       // canonical: 1: it looks in no queue; any news end its poll
    std::atomic<std::uint32_t> sleeps;  // canonical: 1: on `released`, and wants to be woken
    std::atomic<std::uint32_t> ticket;  // canonical: how often it asked to be let go on
    std::atomic<std::uint32_t> released;  // canonical: and was, written by the server
    std::atomic<std::uint64_t> seen;      // deliveries before it looked
    // Free: 1 + the one on which it was when it rang or polled last; 0: it has done neither.
    std::atomic<std::uint32_t> processor;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct alignas(kCacheLine) SharedCount {
    std::atomic<std::uint64_t> value;
};

// A request of the server to copy on the client's side, one at a time.
enum class CopyWord : std::uint32_t { kIdle, kRead, kWrite, kDone, kFault };

struct alignas(kCacheLine) CopyRequest {
    std::atomic<std::uint32_t> state;  // CopyWord; also what the client's copying thread waits on
    std::uint32_t length;
    std::uint64_t address;
};

// The reason, found by the client, why the run may differ from the next one.
struct alignas(kCacheLine) ClientMark {
    std::atomic<std::uint32_t> is_set;
    std::array<char, 188> text;  // read once it is set; ends with a zero byte
};

struct ClientArea {
    static constexpr std::uint32_t kDoorbells = 4096;  // a power of two
    static constexpr std::uint32_t kActors = 256;
    static constexpr std::uint32_t kCopyBytes = 128 * 1024;

    alignas(kCacheLine) SharedIndex doorbell_producer;  // written by the client
    alignas(kCacheLine) SharedIndex doorbell_consumer;  // written by the server
    alignas(kCacheLine) SharedIndex server_sleeps;      // 1: wake it after a doorbell
    SharedCount deliveries;  // completions and events, written by the server
    SharedCount events;      // of them those on descriptors, written by the server
    alignas(kCacheLine) SharedIndex actors_made;  // slots in use, written by the client
    SharedCount turn;     // canonical: how often all threads were let go on, written by the server
    SharedCount crowded;  // canonical: 1: more threads poll than there are processors
    ClientMark shared_object;  // two of its threads used one in the same turn
    CopyRequest copy;
    std::array<Doorbell, kDoorbells> doorbells;
    std::array<ActorSlot, kActors> actors;
    std::array<std::byte, kCopyBytes> copied;
};

}  // namespace simverbs
