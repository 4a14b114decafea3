#include "simverbs/threads/thread_roster.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace simverbs {
namespace {

// The calling thread's entry; says at its end that the thread calls nothing more.
struct Own {
    std::shared_ptr<ThreadEntry> entry;

    ~Own() {
        if (entry != nullptr) {
            ThreadRoster::instance().leave(*entry);
        }
    }
};
thread_local Own t_own;

thread_local int t_creates_own = 0;
thread_local bool t_forks_whole = false;

// So many of the newest points that a thread knows to be over are kept. A forgotten one can mark a
// run in vain, never spare it a mark.
constexpr std::size_t kMaxPoints = 256;

void learn(ThreadEntry& entry, const std::vector<ThreadPoint>& points, const ThreadPoint& last) {
    entry.before.insert(entry.before.end(), points.begin(), points.end());
    entry.before.push_back(last);
    if (entry.before.size() > kMaxPoints) {
        entry.before.erase(entry.before.begin(), entry.before.end() - kMaxPoints);
    }
}

pid_t thread_id() {
    return static_cast<pid_t>(syscall(SYS_gettid));
}

}  // namespace

std::string ThreadEntry::describe() const {
    if (!is_announced) {
        return fmt::format("thread {}", id.load(std::memory_order_relaxed));
    }
    std::string text = "thread 0";
    for (const std::uint32_t child : path) {
        text += fmt::format(".{}", child);
    }
    return text;
}

bool ThreadEntry::comes_after(const ThreadPoint& point) const {
    return std::any_of(before.begin(), before.end(), [&point](const ThreadPoint& known) {
        return known.thread == point.thread && known.segment >= point.segment;
    });
}

ThreadRoster& ThreadRoster::instance() {
    static ThreadRoster& roster = []() -> ThreadRoster& {
        pthread_atfork(nullptr, nullptr, forget_others);
        return *new ThreadRoster;
    }();
    return roster;
}

ThreadRoster::ThreadRoster() {
    add_main_thread();
}

// The main thread has the number of the process; it need not be the one that is here first.
void ThreadRoster::add_main_thread() {
    auto main = std::make_shared<ThreadEntry>();
    main->number = ++last_number_;
    main->is_announced = true;
    main->id = getpid();
    entries_.push_back(std::move(main));
}

std::shared_ptr<ThreadEntry> ThreadRoster::announce() {
    const std::shared_ptr<ThreadEntry> creator = current();
    const Inside inside(*creator);
    auto entry = std::make_shared<ThreadEntry>();
    entry->begins = true;
    entry->creator = creator->number;
    entry->is_announced = creator->is_announced;
    entry->path = creator->path;
    entry->path.push_back(++creator->children);
    learn(*entry, creator->before, {creator->number, creator->segment++});
    const std::lock_guard lock(mutex_);
    entry->number = ++last_number_;
    entries_.push_back(entry);
    for (Listener* listener : listeners_) {
        listener->thread_announced(entry);
    }
    return entry;
}

// The system gives the handles of threads that have ended to others.
void ThreadRoster::created(const std::shared_ptr<ThreadEntry>& entry, pthread_t handle) {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const auto& other) {
        return other != entry && other->handle.load(std::memory_order_relaxed) == handle;
    });
    entry->handle.store(handle, std::memory_order_release);
}

void ThreadRoster::begin(const std::shared_ptr<ThreadEntry>& entry) {
    t_own.entry = entry;
    entry->id.store(thread_id(), std::memory_order_release);
    began(*entry);
}

void ThreadRoster::began(ThreadEntry& entry) {
    const std::lock_guard lock(mutex_);
    for (Listener* listener : listeners_) {
        listener->thread_began(entry);
    }
    entry.begins.store(false, std::memory_order_release);
}

void ThreadRoster::leave(ThreadEntry& entry) {
    const Inside inside(entry);
    entry.leaves.store(true, std::memory_order_release);
    const std::lock_guard lock(mutex_);
    for (Listener* listener : listeners_) {
        listener->thread_left(entry);
    }
}

std::shared_ptr<ThreadEntry> ThreadRoster::find(pthread_t handle) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
        return entry->handle.load(std::memory_order_relaxed) == handle;
    });
    return found == entries_.end() ? nullptr : *found;
}

void ThreadRoster::joined(const std::shared_ptr<ThreadEntry>& entry) {
    const std::shared_ptr<ThreadEntry> self = current();
    learn(*self, entry->before, {entry->number, std::numeric_limits<std::uint32_t>::max()});
    if (!entry->leaves) {
        leave(*entry);  // it called no verb, and its creator announced its beginning
    }
    const std::lock_guard lock(mutex_);
    std::erase(entries_, entry);
}

bool ThreadRoster::has_unjoined() {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(entries_, [](const auto& entry) {
        return entry->handle.load(std::memory_order_relaxed) != pthread_t{};
    });
}

std::shared_ptr<ThreadEntry> ThreadRoster::current() {
    if (t_own.entry != nullptr) {
        return t_own.entry;
    }
    const pid_t id = thread_id();
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(), [id](const auto& entry) {
        return entry->id.load(std::memory_order_relaxed) == id && !entry->leaves;
    });
    if (found != entries_.end()) {
        t_own.entry = *found;
    } else {
        std::erase_if(entries_,
                      [](const auto& entry) { return !entry->is_announced && entry->leaves; });
        t_own.entry = std::make_shared<ThreadEntry>();
        t_own.entry->number = ++last_number_;
        t_own.entry->id = id;
        entries_.push_back(t_own.entry);
    }
    return t_own.entry;
}

std::vector<std::shared_ptr<ThreadEntry>> ThreadRoster::subscribe(Listener& listener) {
    const std::lock_guard lock(mutex_);
    listeners_.push_back(&listener);
    std::vector<std::shared_ptr<ThreadEntry>> living;
    std::copy_if(entries_.begin(), entries_.end(), std::back_inserter(living),
                 [](const auto& entry) { return !entry->leaves; });
    return living;
}

void ThreadRoster::unsubscribe(Listener& listener) {
    const std::lock_guard lock(mutex_);
    std::erase(listeners_, &listener);
}

// Another thread may have held the lock as the process forked.
void ThreadRoster::forget_others() {
    if (WholeFork::is_under_way()) {
        return;
    }
    ThreadRoster& roster = instance();
    new (&roster) ThreadRoster;
    t_own.entry.reset();
}

ThreadRoster::WholeFork::WholeFork() {
    t_forks_whole = true;
}

ThreadRoster::WholeFork::~WholeFork() {
    t_forks_whole = false;
}

bool ThreadRoster::WholeFork::is_under_way() {
    return t_forks_whole;
}

void ThreadRoster::continue_in_child() {
    current()->id.store(thread_id(), std::memory_order_release);
}

ThreadRoster::OwnThreads::OwnThreads() {
    ++t_creates_own;
}

ThreadRoster::OwnThreads::~OwnThreads() {
    --t_creates_own;
}

bool ThreadRoster::OwnThreads::are_created() {
    return t_creates_own > 0;
}

}  // namespace simverbs
