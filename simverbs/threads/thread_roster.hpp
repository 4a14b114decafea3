// The threads of this process, known from their creation on, so that a world can wait for one that
// is on its way to its first verb (DESIGN section 4).
//
// The interposed pthread_create (simverbs/abi/threads.cpp) announces each thread. A thread that it
// does not see, because the library was loaded by dlopen(3), say, has an entry from its first verb
// on only, and no place in the order of creations. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <pthread.h>
#include <sys/types.h>

namespace simverbs {

// A thread, and how many threads it had created by then: all that it did before is known to be
// over.
struct ThreadPoint {
    std::uint64_t thread = 0;  // ThreadEntry::number
    std::uint32_t segment = 0;
};

struct ThreadEntry {
    std::uint64_t number = 0;   // never another's in this process
    std::uint64_t creator = 0;  // its number; 0: the creation was not seen
    // Which child of which child of the main thread it is; empty: the main thread.
    std::vector<std::uint32_t> path;
    bool is_announced = false;        // the path says something
    std::atomic<pid_t> id{0};         // as the kernel numbers it; 0: it has not begun yet
    std::atomic<bool> leaves{false};  // it calls no verb any more
    // How often it has entered the library and not left it: see Inside. Nobody else writes it.
    std::atomic<int> inside{0};
    std::atomic<bool> begins{false};      // it was announced, and is on its way
    std::atomic<pthread_t> handle{};      // of one that may be joined
    std::atomic<std::uint64_t> joins{0};  // the number of the thread whose end it waits for
    // The three that follow are the creator's until the thread begins, then its own, and those of
    // the thread that joins it after its end.
    std::uint32_t segment = 1;  // grows with each creation
    std::uint32_t children = 0;
    std::vector<ThreadPoint> before;  // what others did before anything that it does from here on

    // Returns true if it is in the library, or has not begun: it runs, though it may sleep there
    // for a lock that somebody holds who waits.
    [[nodiscard]] bool is_inside() const {
        return inside.load(std::memory_order_acquire) > 0 || begins.load(std::memory_order_acquire);
    }
    // "thread 0.2": the second thread that the main thread created.
    [[nodiscard]] std::string describe() const;
    // Returns true if what `point` names was over before the thread got here.
    [[nodiscard]] bool comes_after(const ThreadPoint& point) const;
};

// Marks the calling thread as being in the library, while it lives. Each poll does that, so it
// costs no more than a store: a signal handler in between leaves the number as it was.
class Inside {
  public:
    explicit Inside(ThreadEntry& entry) : entry_(entry) { add(1); }
    ~Inside() { add(-1); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

  private:
    void add(int more) {
        entry_.inside.store(entry_.inside.load(std::memory_order_relaxed) + more,
                            std::memory_order_release);
    }

    ThreadEntry& entry_;
};

class ThreadRoster {
  public:
    class Listener {
      public:
        // By its creator, before it begins.
        virtual void thread_announced(const std::shared_ptr<ThreadEntry>& entry) = 0;
        // By the thread itself or its creator: it has begun; it calls nothing more.
        virtual void thread_began(const ThreadEntry& entry) = 0;
        virtual void thread_left(const ThreadEntry& entry) = 0;

      protected:
        ~Listener() = default;
    };

    // Never destroyed: threads may end after everything else.
    static ThreadRoster& instance();

    // By the creator of a thread, before there is one.
    std::shared_ptr<ThreadEntry> announce();
    // By its creator: the thread has that handle.
    void created(const std::shared_ptr<ThreadEntry>& entry, pthread_t handle);
    // By the thread itself, first of all.
    void begin(const std::shared_ptr<ThreadEntry>& entry);
    // The same by its creator, for a thread that has set its id itself.
    void began(ThreadEntry& entry);
    // The last that the thread says; or, by its creator, that there is none after all.
    void leave(ThreadEntry& entry);
    // The thread of this handle; nullptr: none that was announced.
    std::shared_ptr<ThreadEntry> find(pthread_t handle);
    // The calling thread has joined that one.
    void joined(const std::shared_ptr<ThreadEntry>& entry);
    // Returns true if some thread was created with a handle, and not joined: it may have ended.
    [[nodiscard]] bool has_unjoined();
    // The calling thread's.
    std::shared_ptr<ThreadEntry> current();

    // The threads that live; from here on `listener` is told of each new one, until unsubscribe().
    std::vector<std::shared_ptr<ThreadEntry>> subscribe(Listener& listener);
    void unsubscribe(Listener& listener);

    // In a forked child, where the calling thread is the only one.
    static void forget_others();

    // While it lives, a child that the calling thread forks keeps the world of its parent: both are
    // whole copies, and go on separately.
    class WholeFork {
      public:
        WholeFork();
        ~WholeFork();
        WholeFork(const WholeFork&) = delete;
        WholeFork& operator=(const WholeFork&) = delete;
        [[nodiscard]] static bool is_under_way();
    };
    // In such a child: its only thread has another number there.
    void continue_in_child();

    // While it lives, threads that the calling one creates are the library's own: no actors.
    class OwnThreads {
      public:
        OwnThreads();
        ~OwnThreads();
        OwnThreads(const OwnThreads&) = delete;
        OwnThreads& operator=(const OwnThreads&) = delete;
        [[nodiscard]] static bool are_created();
    };

  private:
    ThreadRoster();
    void add_main_thread();

    std::mutex mutex_;
    std::uint64_t last_number_ = 0;
    std::vector<std::shared_ptr<ThreadEntry>> entries_;
    std::vector<Listener*> listeners_;
};

}  // namespace simverbs
