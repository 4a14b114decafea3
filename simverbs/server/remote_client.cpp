#include "simverbs/server/remote_client.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace simverbs {
namespace {

// Between a client's attaching and its naming of threads lie microseconds.
constexpr std::int64_t kNameThreadsNs = 1'000'000'000;

std::vector<std::size_t> devices_of_host(const Simulation& simulation, std::size_t first) {
    std::vector<std::size_t> devices;
    for (std::size_t i = 0; i < simulation.hca_count(); ++i) {
        if (simulation.hca(i).host() == simulation.hca(first).host()) {
            devices.push_back(i);
        }
    }
    return devices;
}

template <class T>
T read_as(const std::array<std::byte, CommandRequest::kMaxBytes>& bytes) {
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

constexpr std::uint32_t kMostNonsense = 256;
constexpr std::string_view kFalseDoorbells = "rang doorbells that mean nothing";

}  // namespace

OwnDescriptor::OwnDescriptor(int descriptor, const char* what) : number_(descriptor) {
    if (number_ < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
        throw std::system_error(errno, std::generic_category(), what);
    }
}

OwnDescriptor::~OwnDescriptor() {
    if (number_ >= 0) {
        close(number_);
    }
}

RemoteClient::RemoteClient(Simulation& simulation, int socket, pid_t process, ClientPlace place,
                           std::uint64_t& acts)
    : socket_(socket),
      process_descriptor_(static_cast<int>(syscall(SYS_pidfd_open, process, 0)),
                          "process descriptor"),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"),
      process_(process),
      program_(ThreadWatch(process, process).program()),
      place_(std::move(place)),
      host_(simulation.hca(place_.first).host()),
      area_(sizeof(ClientArea)),
      acts_(acts),
      memory_(process, socket, area(), acts),
      attachment_(simulation, *this, devices_of_host(simulation, place_.first)) {}

// Memory of a process that is gone is not read any more, whatever still refers to it.
RemoteClient::~RemoteClient() {
    memory_.forget();
    close(socket_);
    for (const int descriptor : handed_over_) {
        close(descriptor);
    }
}

// The socket closes on exec, the process descriptor is readable at the end.
bool RemoteClient::has_gone() const {
    std::array<pollfd, 2> looks{
        {{socket_, POLLRDHUP, 0}, {process_descriptor_.number(), POLLIN, 0}}};
    if (poll(looks.data(), looks.size(), 0) <= 0) {
        return false;
    }
    return (looks[0].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0 || looks[1].revents != 0;
}

void RemoteClient::take_doorbells(std::vector<Doorbell>& doorbells, std::uint32_t most) {
    ClientArea& shared = area();
    const std::uint32_t producer = shared.doorbell_producer.value.load(std::memory_order_acquire);
    if (producer - doorbell_consumer_ > ClientArea::kDoorbells) {
        hang_up(kFalseDoorbells);  // more than there is room for
        return;
    }
    const std::uint32_t count = std::min(producer - doorbell_consumer_, most);
    for (std::uint32_t i = 0; i < count; ++i) {
        Doorbell copy;
        std::memcpy(&copy, &shared.doorbells[doorbell_consumer_++ % ClientArea::kDoorbells],
                    sizeof copy);
        doorbells.push_back(copy);
    }
    if (count > 0) {
        ++acts_;
        shared.doorbell_consumer.value.store(doorbell_consumer_, std::memory_order_release);
    }
}

bool RemoteClient::ring(const Doorbell& doorbell) {
    const bool means_something = attachment_.ring(doorbell);
    if (!means_something) {
        made_no_sense(kFalseDoorbells);
    }
    return means_something;
}

void RemoteClient::made_no_sense(std::string_view what) {
    if (++nonsense_ > kMostNonsense) {
        hang_up(what);
    }
}

void RemoteClient::hang_up(std::string_view why) {
    why_hung_up_ = why;
    shutdown(socket_, SHUT_RDWR);
}

std::string_view RemoteClient::why_hung_up() const {
    return memory_.was_too_slow() ? "copied its memory too slowly" : why_hung_up_;
}

CommandReply RemoteClient::execute(const CommandRequest& request, std::vector<int>& descriptors) {
    ++acts_;
    CommandReply reply;
    const std::size_t length = std::min<std::size_t>(request.length, request.bytes.size());
    const std::size_t reply_length =
        std::min<std::size_t>(request.reply_length, reply.bytes.size());
    handed_over_.clear();
    reply.error = static_cast<std::uint32_t>(
        attachment_.execute(request.code, std::span(request.bytes).first(length),
                            std::span(reply.bytes).first(reply_length)));
    reply.length = static_cast<std::uint32_t>(reply_length);
    if (reply.error == 0) {
        follow_regions(request, reply);
    }
    const std::string refusal = attachment_.take_refusal();
    refusal.copy(reply.refusal.data(), reply.refusal.size() - 1);
    descriptors.swap(handed_over_);
    handed_over_.clear();
    return reply;
}

// Shared memory must be what the program sees: where it has mapped something else since, and
// registers that, nothing of the former memory is used any more.
void RemoteClient::follow_regions(const CommandRequest& request, CommandReply& reply) {
    SharedRegions& shared = memory_.shared();
    switch (request.code) {
        case CommandCode::kRegisterMr: {
            const auto asked = read_as<RegisterMr>(request.bytes);
            const RegionName name{asked.context, read_as<RegisterMrReply>(reply.bytes).handle};
            shared.drop(asked.address, asked.length);
            const int descriptor = lies_in(request.share, asked.address, asked.length)
                                       ? shared.share(name, request.share, memory_)
                                       : -1;
            if (descriptor >= 0) {
                handed_over_.push_back(descriptor);
                reply.is_shared = 1;
            }
            break;
        }
        case CommandCode::kReregisterMr: {
            const auto asked = read_as<ReregisterMr>(request.bytes);
            shared.drop({asked.context, asked.handle});
            if ((asked.flags & kReregisterTranslation) != 0) {
                shared.drop(asked.address, asked.length);
            }
            break;
        }
        case CommandCode::kDeregisterMr: {
            const auto asked = read_as<DeregisterMr>(request.bytes);
            shared.drop({asked.context, asked.handle});
            break;
        }
        case CommandCode::kCloseContext:
            shared.drop_all_of(read_as<CloseContext>(request.bytes).context);
            break;
        default:
            break;
    }
}

RingMemory RemoteClient::make_ring(std::size_t bytes, std::size_t zeroed) {
    try {
        const RingPool::Ring ring = rings_.make(bytes, zeroed);
        handed_over_.push_back(ring.descriptor);
        return {ring.base, bytes};
    } catch (const std::system_error&) {
        return {};
    } catch (const std::bad_alloc&) {
        return {};
    }
}

RingReply RemoteClient::ring_reply(const RingMemory& ring) const {
    return {rings_.offset_of(ring.base), ring.bytes};
}

void RemoteClient::release_ring(const RingMemory& ring) {
    rings_.release(ring.base);
}

void RemoteClient::completion_delivered(const CompletionRing* queue) {
    area().deliveries.value.store(++deliveries_, std::memory_order_release);
    const std::uint32_t poller =
        queue == nullptr ? 0 : queue->poller.value.load(std::memory_order_relaxed);
    if (poller == 0 || poller > actors_seen_ || !is_in_poll(poller - 1)) {
        news_for_all_ = true;  // who looks there next is not known
    } else {
        news_.push_back(poller - 1);
    }
}

bool RemoteClient::is_in_poll(std::uint32_t actor) const {
    const ActorSlot& slot = area().actors[actor];
    return slot.ticket.load(std::memory_order_relaxed) !=
           slot.released.load(std::memory_order_relaxed);
}

void RemoteClient::event_delivered() {
    area().events.value.store(++events_sent_, std::memory_order_release);
    completion_delivered(nullptr);
    for (const auto& watch : watches_) {
        watch->expect_wake();
    }
}

std::uint32_t RemoteClient::actor_count() {
    const std::uint32_t claimed = area().actors_made.value.load(std::memory_order_acquire);
    actors_seen_ = std::max(actors_seen_, std::min(claimed, ClientArea::kActors));
    return actors_seen_;
}

bool RemoteClient::is_about_to_name_threads() {
    if (actors_seen_ > 0 || was_given_up_) {
        return false;
    }
    was_given_up_ = pending.has_value() || wall_ns() - attached_ns_ > kNameThreadsNs;
    return !was_given_up_;
}

// The text is the client's: only what can be printed is taken.
std::string RemoteClient::shared_object() const {
    const ClientMark& mark = area().shared_object;
    if (mark.is_set.load(std::memory_order_acquire) == 0) {
        return {};
    }
    std::string text(mark.text.data(), strnlen(mark.text.data(), mark.text.size()));
    std::replace_if(
        text.begin(), text.end(), [](char letter) { return letter < ' ' || letter > '~'; }, '?');
    return text;
}

std::string RemoteClient::describe(std::uint32_t actor) const {
    return fmt::format("thread {} ({}) of {}", actor, program_, host_);
}

void RemoteClient::note_waiting_polls(std::uint64_t step) {
    waiting_polls_.resize(actor_count());
    for (std::size_t actor = 0; actor < waiting_polls_.size(); ++actor) {
        const std::uint32_t ticket = area().actors[actor].ticket.load(std::memory_order_acquire);
        if (waiting_polls_[actor].ticket != ticket) {
            waiting_polls_[actor] = {ticket, step};
        }
    }
}

void RemoteClient::call_noted_polls_early() {
    for (std::size_t actor = 0; actor < waiting_polls_.size(); ++actor) {
        ActorSlot& slot = area().actors[actor];
        auto expected = static_cast<std::uint32_t>(EarlyWord::kNo);
        if (slot.released.load(std::memory_order_relaxed) != waiting_polls_[actor].ticket) {
            slot.early.compare_exchange_strong(
                expected, static_cast<std::uint32_t>(EarlyWord::kEnded), std::memory_order_relaxed);
        }
    }
}

std::string RemoteClient::find_actor(bool (*is_wanted)(const ActorSlot&)) {
    for (std::uint32_t actor = 0; actor < actors_seen_; ++actor) {
        if (is_wanted(area().actors[actor])) {
            return describe(actor);
        }
    }
    return {};
}

std::string RemoteClient::acted_early() {
    return find_actor([](const ActorSlot& slot) {
        return slot.early.load(std::memory_order_relaxed) ==
               static_cast<std::uint32_t>(EarlyWord::kActed);
    });
}

std::string RemoteClient::acted_by_clock() {
    return find_actor(
        [](const ActorSlot& slot) { return slot.by_clock.load(std::memory_order_relaxed) != 0; });
}

void RemoteClient::end_noted_polls(bool all) {
    if (all || news_for_all_) {
        for (std::uint32_t actor = 0; actor < waiting_polls_.size(); ++actor) {
            end_noted_poll(actor);
        }
    } else {
        for (const std::uint32_t actor : news_) {
            end_noted_poll(actor);
        }
        for (std::uint32_t actor = 0; actor < waiting_polls_.size(); ++actor) {
            if (area().actors[actor].any_news.load(std::memory_order_relaxed) != 0) {
                end_noted_poll(actor);
            }
        }
    }
    news_for_all_ = false;
    news_.clear();
}

bool RemoteClient::end_polls_before(std::uint64_t step) {
    bool any = false;
    for (std::uint32_t actor = 0; actor < waiting_polls_.size(); ++actor) {
        if (waiting_polls_[actor].since != step && is_in_poll(actor)) {
            end_noted_poll(actor);
            any = true;
        }
    }
    return any;
}

// Clients look whether they are let go on after they have said that they sleep, the server looks
// whether they sleep after it has let them go on: one of the two sees the other.
void RemoteClient::end_noted_poll(std::uint32_t actor) {
    if (actor >= waiting_polls_.size()) {
        return;
    }
    ActorSlot& slot = area().actors[actor];
    slot.released.store(waiting_polls_[actor].ticket, std::memory_order_seq_cst);
    if (slot.sleeps.load(std::memory_order_seq_cst) != 0) {
        syscall(SYS_futex, &slot.released, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    }
}

void RemoteClient::threads_may_have_acted() {
    for (const auto& watch : watches_) {
        watch->may_have_acted();
    }
}

void RemoteClient::time_passed() {
    for (const auto& watch : watches_) {
        watch->time_passed();
    }
}

// A slot that another thread has taken is watched afresh.
ThreadWatch& RemoteClient::watch(std::uint32_t actor) {
    const std::uint32_t thread = area().actors[actor].thread.load(std::memory_order_relaxed);
    while (watches_.size() <= actor) {
        watches_.push_back(std::make_unique<ThreadWatch>());
        watched_threads_.push_back(0);
    }
    if (watched_threads_[actor] != thread) {
        watched_threads_[actor] = thread;
        *watches_[actor] = ThreadWatch(process_, static_cast<pid_t>(thread));
    }
    return *watches_[actor];
}

bool RemoteClient::has_polled(std::uint32_t actor) {
    polled_.resize(watches_.size());
    const std::uint64_t seen = area().actors[actor].seen.load(std::memory_order_relaxed);
    return std::exchange(polled_[actor], seen) != seen;
}

void RemoteClient::watch_anew(std::uint32_t actor) {
    if (actor < watches_.size()) {
        watches_[actor]->was_in_library();
    }
}

}  // namespace simverbs
