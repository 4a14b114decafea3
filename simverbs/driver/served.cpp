#include "simverbs/driver/served.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simverbs/driver/own_slot.hpp"
#include "simverbs/hca/guarded_copy.hpp"
#include "simverbs/model/access.hpp"
#include "simverbs/model/personalities.hpp"
#include "simverbs/threads/thread_roster.hpp"
#include "simverbs/threads/uncancelled.hpp"

namespace simverbs::driver {
namespace {

// Yields after a doorbell until the server has taken it: on few processors it runs the sooner, and
// a program that then watches memory does not keep it from running.
constexpr int kYieldsAfterRing = 64;
// A program that posts many requests before it looks for a completion would pay for each of them,
// on a busy machine a time slice; it is after the last that it waits.
constexpr int kPostsThatYield = 4;
constexpr std::uint64_t kProbeValue = 0x5349'4D56'4552'4253;

template <std::size_t N>
std::string to_text(const std::array<char, N>& text) {
    return {text.data(), strnlen(text.data(), N)};
}

template <class T>
T request_as(std::span<const std::byte> bytes) {
    T value{};
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
    return value;
}

// Which process may reach this one's memory where Yama asks; 0: none.
void set_ptracer(unsigned long process) {
    const int error = errno;
    prctl(PR_SET_PTRACER, process, 0, 0, 0);  // EINVAL without Yama
    errno = error;
}

}  // namespace

tl::expected<std::unique_ptr<ServedChannel>, AttachFailure> ServedChannel::make(
    const std::string& path, const std::string& host) {
    const auto connection = connect_to_world(path);
    if (!connection) {
        return tl::unexpected(AttachFailure{errno, connection.error()});
    }
    const int socket = *connection;
    ucred server{};
    if (is_trusted_peer(socket, server)) {
        set_ptracer(static_cast<unsigned long>(server.pid));
    }
    static const std::uint64_t kProbe = kProbeValue;
    AttachRequest request;
    std::memcpy(request.host.data(), host.data(), std::min(host.size(), request.host.size() - 1));
    request.probe_address = reinterpret_cast<std::uint64_t>(&kProbe);
    request.probe_value = kProbe;
    AttachReply reply;
    std::array<int, 2> descriptors{-1, -1};
    // A server that hangs up leaves its reason, if it has one, to be read.
    static_cast<void>(send_message(socket, std::as_bytes(std::span(&request, 1)), {}));
    AttachFailure failure{
        EIO, receive_first_reply(socket, std::as_writable_bytes(std::span(&reply, 1)), descriptors,
                                 path, Patience::kProgram)};
    if (failure.reason.empty()) {
        failure = {static_cast<int>(reply.error), to_text(reply.reason)};
        if (failure.code == 0 && (descriptors[0] < 0 || descriptors[1] < 0)) {
            // The kernel passes on what there is room for.
            failure = {EMFILE, fmt::format("no descriptor is left for the world at '{}'", path)};
        }
    }
    void* const area = failure.code == 0 ? mmap(nullptr, sizeof(ClientArea), PROT_READ | PROT_WRITE,
                                                MAP_SHARED, descriptors[0], 0)
                                         : MAP_FAILED;
    if (failure.code == 0 && area == MAP_FAILED) {
        failure = {errno, fmt::format("memory of the world at '{}' cannot be mapped", path)};
    }
    if (descriptors[0] >= 0) {
        close(descriptors[0]);
    }
    if (failure.code != 0) {
        set_ptracer(0);
        if (descriptors[1] >= 0) {
            close(descriptors[1]);
        }
        close(socket);
        return tl::unexpected(std::move(failure));
    }
    return std::unique_ptr<ServedChannel>(
        new ServedChannel(path, socket, descriptors[1], *static_cast<ClientArea*>(area), reply));
}

ServedChannel::ServedChannel(std::string path, int socket, int wake, ClientArea& area,
                             const AttachReply& reply)
    : Channel(area.deliveries.value),
      path_(std::move(path)),
      socket_(socket),
      wake_(wake),
      area_(area),
      canonical_(reply.canonical != 0),
      copies_for_server_(reply.copies_by_client != 0) {
    const std::uint32_t count = std::min(reply.device_count, AttachReply::kMaxDevices);
    for (std::uint32_t i = 0; i < count; ++i) {
        const ServedDevice& device = reply.devices[i];
        const Personality* personality = find_variant(to_text(device.personality));
        devices_.push_back({to_text(device.name), to_text(device.host), device.guid,
                            static_cast<std::uint16_t>(device.ports),
                            personality == nullptr ? &kSpec : personality});
    }
    for (const auto& entry : ThreadRoster::instance().subscribe(*this)) {
        thread_announced(entry);
    }
    look_for_several_actors_in(has_several_threads_);
    if (copies_for_server_) {
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        for (const int fault : {SIGSEGV, SIGBUS}) {
            sigdelset(&all, fault);  // guarded copies need them: a blocked one ends the process
        }
        pthread_sigmask(SIG_BLOCK, &all, &before);
        const ThreadRoster::OwnThreads own;
        copier_ = std::thread([this] { copy_on_request(); });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
}

ServedChannel::~ServedChannel() {
    ThreadRoster::instance().unsubscribe(*this);
    stop_ = true;
    if (copier_.joinable()) {
        copier_.join();
    }
    if (t_slot.channel == this) {
        t_slot = {};
    }
    close(socket_);
    close(wake_);
    munmap(&area_, sizeof(ClientArea));
    set_ptracer(0);
}

void ServedChannel::wake_server() {
    if (area_.server_sleeps.value.load(std::memory_order_seq_cst) != 0) {
        const Uncancelled uncancelled;
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
    }
}

int ServedChannel::execute(CommandCode code, std::span<const std::byte> command,
                           std::span<std::byte> reply, int& descriptor, std::string& refusal) {
    descriptor = -1;
    CommandRequest request;
    if (command.size() > request.bytes.size() || reply.size() > request.bytes.size()) {
        return EPROTO;
    }
    if (code == CommandCode::kOpenContext) {
        std::call_once(report_started_, [this] { report_.emplace(path_); });
    }
    request.actor = actor();
    t_slot.posts_in_a_row = 0;
    set_state(area_.actors[request.actor], ActorWord::kRunning);
    note_act(area_.actors[request.actor]);
    request.code = code;
    request.length = static_cast<std::uint32_t>(command.size());
    request.reply_length = static_cast<std::uint32_t>(reply.size());
    std::memcpy(request.bytes.data(), command.data(), command.size());
    const Uncancelled uncancelled;
    const std::lock_guard lock(command_mutex_);
    if (server_gone_) {
        refusal = kWorldHasGone;
        return EIO;
    }
    if (copies_for_server_) {
        lent_.before(code, command);
    }
    request.share = pages_to_share(code, command);
    CommandReply answer;
    bool lost_descriptor = false;
    if (!exchange(request, answer, descriptor, lost_descriptor)) {
        refusal = kWorldHasGone;
        return EIO;
    }
    if (answer.is_shared != 0 && !regions_.map(request_as<RegisterMr>(command).context,
                                               request_as<RegisterMrReply>(answer.bytes).handle,
                                               request.share, std::exchange(descriptor, -1))) {
        refusal = "pages of the region cannot be mapped (sysctl vm.max_map_count)";
        answer.error = give_back(request, answer);
    }
    std::memcpy(reply.data(), answer.bytes.data(), reply.size());
    if (answer.error == 0) {
        take_back_pages(code, command);
    }
    if (refusal.empty()) {
        refusal = to_text(answer.refusal);
    }
    if (copies_for_server_) {
        lent_.after(code, command, static_cast<int>(answer.error), reply);
    }
    if (answer.error == 0 && lost_descriptor) {
        refusal = "this process has no free file descriptor (ulimit -n)";
        return EMFILE;  // what was made goes with its context
    }
    return static_cast<int>(answer.error);
}

// From the server's answer to the mapping of what it shares nothing but the stack is written to:
// what the pages held when it answered is what they hold.
bool ServedChannel::exchange(const CommandRequest& request, CommandReply& answer, int& descriptor,
                             bool& lost_descriptor) {
    const bool shares = request.share.begin < request.share.end;
    const int watch = shares ? regions_.take_unmap_watch() : -1;
    const bool sent = send_message(socket_, std::as_bytes(std::span(&request, 1)),
                                   std::span(&watch, watch >= 0 ? 1 : 0));
    if (watch >= 0) {
        close(watch);
    }
    const bool answered =
        sent && receive_message(socket_, std::as_writable_bytes(std::span(&answer, 1)),
                                std::span(&descriptor, 1), true, &lost_descriptor) == sizeof answer;
    if (!answered) {
        note_gone();
    }
    return answered;
}

// The library's own threads sleep, or copy for the server what the program has lent.
unsigned ServedChannel::own_threads() const {
    return (report_ ? 1 : 0) + (copier_.joinable() ? 1 : 0);
}

PageRange ServedChannel::pages_to_share(CommandCode code, std::span<const std::byte> command) {
    if (code != CommandCode::kRegisterMr) {
        return {};
    }
    const auto asked = request_as<RegisterMr>(command);
    if ((asked.access & static_cast<std::uint32_t>(Access::kOnDemand)) != 0) {
        return {};  // what is mapped there may change
    }
    const PageRange pages = regions_.shareable(asked.address, asked.length, own_threads());
    const int free = pages.begin < pages.end ? fcntl(socket_, F_DUPFD_CLOEXEC, 0) : -1;
    if (free < 0) {
        return {};  // no room for a descriptor, perhaps
    }
    close(free);
    return pages;
}

// The region cannot be had after all: the server would go on with memory of its own. An errno.
std::uint32_t ServedChannel::give_back(const CommandRequest& request, const CommandReply& answer) {
    DeregisterMr command;
    command.context = request_as<RegisterMr>(request.bytes).context;
    command.handle = request_as<RegisterMrReply>(answer.bytes).handle;
    CommandRequest end;
    end.actor = request.actor;
    end.code = CommandCode::kDeregisterMr;
    end.length = sizeof command;
    std::memcpy(end.bytes.data(), &command, sizeof command);
    CommandReply ended;
    int descriptor = -1;
    bool lost_descriptor = false;
    return exchange(end, ended, descriptor, lost_descriptor) ? ENOMEM : EIO;
}

void ServedChannel::take_back_pages(CommandCode code, std::span<const std::byte> command) {
    if (code == CommandCode::kDeregisterMr) {
        const auto asked = request_as<DeregisterMr>(command);
        regions_.take_back(asked.context, asked.handle, own_threads());
    } else if (code == CommandCode::kReregisterMr) {
        const auto asked = request_as<ReregisterMr>(command);
        regions_.take_back(asked.context, asked.handle, own_threads());
    } else if (code == CommandCode::kCloseContext) {
        regions_.take_back_all_of(request_as<CloseContext>(command).context, own_threads());
    }
}

void ServedChannel::ring(const Doorbell& doorbell) {
    if (server_gone_) {
        return;
    }
    const std::uint32_t self = actor();
    set_state(area_.actors[self], ActorWord::kRunning);
    note_act(area_.actors[self]);
    note_processor(area_.actors[self]);
    std::uint32_t producer = 0;
    {
        const std::lock_guard lock(doorbell_lock_);
        int yields = 0;
        while (doorbell_producer_ - area_.doorbell_consumer.value.load(std::memory_order_acquire) >=
               ClientArea::kDoorbells) {
            wake_server();
            sched_yield();
            if (++yields % kYieldsPerCheck == 0 && has_gone(kAtOnce)) {
                return;
            }
        }
        Doorbell& place = area_.doorbells[doorbell_producer_ % ClientArea::kDoorbells];
        place = doorbell;
        place.actor = static_cast<std::uint16_t>(self);
        producer = ++doorbell_producer_;
        area_.doorbell_producer.value.store(producer, std::memory_order_seq_cst);
    }
    wake_server();
    if (doorbell.queue != DoorbellQueue::kSend || canonical_) {
        return;
    }
    t_slot.has_answered = true;
    if (++t_slot.posts_in_a_row > kPostsThatYield) {
        return;
    }
    const auto taken = [this, producer] {
        return static_cast<std::int32_t>(
                   area_.doorbell_consumer.value.load(std::memory_order_acquire) - producer) >= 0;
    };
    for (int i = 0; i < kYieldsAfterRing && !taken(); ++i) {
        sched_yield();
    }
}

bool ServedChannel::has_gone(std::chrono::milliseconds wait) {
    const Uncancelled uncancelled;
    pollfd server{socket_, POLLRDHUP, 0};
    if (poll(&server, 1, static_cast<int>(wait.count())) > 0 &&
        (server.revents & (POLLRDHUP | POLLHUP)) != 0) {
        note_gone();
    }
    return server_gone_;
}

// Whoever polls is told by await_running() from now on.
void ServedChannel::note_gone() {
    if (!server_gone_.exchange(true)) {
        count_stopped_hosts(1);
        fmt::print(stderr,
                   "simverbs: the server of this world has gone: its devices report DEVICE_FATAL, "
                   "verbs answer EIO, polls -1\n");
    }
}

std::byte* ServedChannel::map_ring(const RingReply& ring, int descriptor) {
    const Uncancelled uncancelled;
    return rings_.map(descriptor, ring.place);
}

void ServedChannel::unmap_ring(std::byte* memory, std::uint64_t /*bytes*/) {
    rings_.unmap(memory);
}

// Where the server may not reach this process's memory, it asks this thread.
void ServedChannel::copy_on_request() {
    GuardedCopy::install();
    CopyRequest& request = area_.copy;
    int idle = 0;
    while (!stop_) {
        const std::uint32_t word = request.state.load(std::memory_order_acquire);
        const auto what = static_cast<CopyWord>(word);
        if (what != CopyWord::kRead && what != CopyWord::kWrite) {
            if (++idle < kSpinsBeforeYield) {
                sched_yield();
                continue;
            }
            const timespec limit{.tv_sec = 0, .tv_nsec = 100'000'000};
            syscall(SYS_futex, &request.state, FUTEX_WAIT, word, &limit, nullptr, 0);
            has_gone(kAtOnce);
            continue;
        }
        idle = 0;
        request.state.store(static_cast<std::uint32_t>(copy_for_server(what)),
                            std::memory_order_release);
    }
}

// The request is read once: the server may change it at any time.
CopyWord ServedChannel::copy_for_server(CopyWord what) {
    const std::uint64_t address = std::atomic_ref(area_.copy.address).load();
    const std::uint32_t asked = std::atomic_ref(area_.copy.length).load();
    const std::size_t length = std::min<std::size_t>(asked, area_.copied.size());
    const bool writes = what == CopyWord::kWrite;
    if (!lent_.may_copy(address, length, writes)) {
        return CopyWord::kFault;
    }
    auto* memory = reinterpret_cast<std::byte*>(address);
    const CopyOutcome outcome = writes ? GuardedCopy::copy(memory, area_.copied.data(), length)
                                       : GuardedCopy::copy(area_.copied.data(), memory, length);
    return outcome == CopyOutcome::kCopied ? CopyWord::kDone : CopyWord::kFault;
}

}  // namespace simverbs::driver
