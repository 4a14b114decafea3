#include "simverbs/driver/embedded.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric/core/one_file.hpp"

#include "simverbs/driver/awaited_event.hpp"
#include "simverbs/threads/held_signals.hpp"
#include "simverbs/threads/uncancelled.hpp"

namespace simverbs::driver {
namespace {

// Until the conductor exists, which counts.
const std::atomic<std::uint64_t> kNotCounted{0};

// Worlds that this process has made, one after another.
std::atomic<unsigned> g_worlds{0};

// The name of a file of this world: in place of each %n its number, of each %p the process's.
std::string file_of_world(std::string path, unsigned number) {
    for (std::size_t at = path.find('%'); at != std::string::npos; at = path.find('%', at)) {
        const char letter = at + 1 < path.size() ? path[at + 1] : '\0';
        if (letter != 'n' && letter != 'p') {
            ++at;
            continue;
        }
        const std::string value = letter == 'n' ? std::to_string(number) : std::to_string(getpid());
        path.replace(at, 2, value);
        at += value.size();
    }
    return path;
}

// As the second world of the process opens a file that the first one has written.
void warn_of_overwriting(std::string_view variable, const std::string& path) {
    if (!path.empty() && path.find("%n") == std::string::npos) {
        fmt::print(stderr,
                   "simverbs: {}={} is written anew by each world of this process, and keeps the "
                   "last one: %n in the name is the number of the world\n",
                   variable, path);
    }
}

}  // namespace

thread_local WaitHook t_wait_hook;
thread_local HostHook t_host_hook;

fabric::Outcome<std::unique_ptr<EmbeddedWorld>> EmbeddedWorld::make(
    const EmbeddedOptions& options) {
    auto simulation = Simulation::make(options.simulation);
    if (!simulation) {
        return fabric::Failure(std::move(simulation.error()));
    }
    if (options.time.order && options.time.schedule == Schedule::kFree) {
        return fabric::Failure(
            "SIMVERBS_ORDER lets threads run one at a time, SIMVERBS_SCHEDULE=free as they like: "
            "not both");
    }
    if (!options.host.empty() && (*simulation)->network().find_host(options.host) == nullptr) {
        return fabric::Failure(fmt::format("topology '{}' has no host '{}'",
                                           options.simulation.topology, options.host));
    }
    std::unique_ptr<EmbeddedWorld> world(new EmbeddedWorld(options, std::move(*simulation)));
    if (std::string wrong = world->open_outlets(); !wrong.empty()) {
        return fabric::Failure(std::move(wrong));
    }
    return world;
}

std::string EmbeddedWorld::open_outlets() {
    number_ = ++g_worlds;
    if (number_ == 2) {
        warn_of_overwriting("SIMVERBS_TRACE", options_.trace_file);
        warn_of_overwriting("SIMVERBS_PCAP", options_.capture_file);
    }
    if (fabric::is_one_file(file_of_world(options_.trace_file, number_),
                            file_of_world(options_.capture_file, number_))) {
        return fmt::format("SIMVERBS_TRACE and SIMVERBS_PCAP name one file, '{}'",
                           options_.trace_file);
    }
    if (!options_.capture_file.empty()) {
        const std::string file = file_of_world(options_.capture_file, number_);
        if (const int error = traces_.open_capture(file); error != 0) {
            return fmt::format("SIMVERBS_PCAP='{}' cannot be written: {}", options_.capture_file,
                               std::strerror(error));
        }
    }
    if (!options_.trace_file.empty()) {
        const std::string file = file_of_world(options_.trace_file, number_);
        if (const int error = traces_.open_file(file, options_.flush_trace); error != 0) {
            return fmt::format("SIMVERBS_TRACE='{}' cannot be written: {}", options_.trace_file,
                               std::strerror(error));
        }
    }
    if (options_.kept_records > 0) {
        traces_.keep(options_.kept_records);
    }
    if (!options_.coverage_folder.empty()) {
        if (const int error = traces_.open_coverage(options_.coverage_folder); error != 0) {
            return fmt::format("SIMVERBS_COVERAGE='{}': no file can be written in that folder: {}",
                               options_.coverage_folder, std::strerror(error));
        }
    }
    return "";
}

EmbeddedWorld::EmbeddedWorld(const EmbeddedOptions& options, std::unique_ptr<Simulation> simulation)
    : Channel(kNotCounted),
      HostPrograms(*simulation),
      options_(options),
      simulation_(std::move(simulation)),
      traces_(*simulation_),
      faults_(*simulation_) {
    conductor_ = std::make_unique<Conductor>(*simulation_, options_.time);
    conductor_->before_report([this] { traces_.flush(); });
    count_deliveries_in(conductor_->deliveries());
    look_for_several_actors_in(conductor_->has_several_actors());
    if (conductor_->has_turns()) {
        watch_work();
    }
    std::vector<std::size_t> hcas;
    std::vector<rdma_cm::NumberedHca> numbered;
    for (std::size_t i = 0; i < simulation_->hca_count(); ++i) {
        const Hca& hca = simulation_->hca(i);
        if (options_.host.empty() || hca.host() == options_.host) {
            devices_.push_back({fmt::format("simverbs{}", hcas.size()), hca.host(),
                                hca.guid().value(), hca.port_count(), &hca.personality()});
            numbered.push_back(
                {i, options_.first_device_number + static_cast<std::uint32_t>(hcas.size())});
            hcas.push_back(i);
        }
    }
    rdma_cm_ = std::make_unique<EmbeddedRdmaCm>(*simulation_, std::move(numbered),
                                                [this] { conductor_->event_delivered(); });
    stopped_ = std::make_unique<std::atomic<bool>[]>(devices_.size());
    last_killed_ = std::make_unique<std::atomic<std::uint32_t>[]>(devices_.size());
    HostPrograms& programs = *this;
    simulation_->set_programs(&programs);
    branches_ = ProcessBranches::make(simulation_->hca(0).event_backlog(), *conductor_);
    simulation_->set_branch_points(branches_.get());
    Client& client = *this;
    attachment_ = std::make_unique<Attachment>(*simulation_, client, std::move(hcas));
}

EmbeddedWorld::~EmbeddedWorld() {
    stop_reporting(*this);
    conductor_->stop_helper();  // the others change what it looks at
    rdma_cm_.reset();
    conductor_.reset();
    attachment_.reset();
}

void EmbeddedWorld::finish() {
    traces_.flush();
    for (const std::string& file : traces_.incomplete()) {
        fmt::print(stderr, "simverbs: {}\n", file);
    }
    if (branches_ != nullptr) {
        branches_->report_end(*simulation_);
    }
    if (!options_.digest_file.empty()) {
        leave_digest();
    }
    if (options_.summary) {
        print_summary();
    }
}

// Behind those of earlier worlds; several processes may write to one file.
void EmbeddedWorld::leave_digest() const {
    std::FILE* const file = std::fopen(options_.digest_file.c_str(), "ae");
    if (file != nullptr) {
        const RunMarks& marks = conductor_->marks();
        fmt::print(file, "world {}: run digest {:016x}, {}\n", number_,
                   simulation_->bus().run_digest(),
                   marks.deterministic() ? "deterministic" : marks.describe());
    }
    if (file == nullptr || std::fclose(file) != 0) {
        fmt::print(stderr, "simverbs: SIMVERBS_DIGEST='{}' cannot be written: {}\n",
                   options_.digest_file, std::strerror(errno));
    }
}

void EmbeddedWorld::print_summary() const {
    fmt::print(stderr, "simverbs: {}, {}\n", simulation_->summary(),
               conductor_->marks().describe());
}

int EmbeddedWorld::execute(CommandCode code, std::span<const std::byte> command,
                           std::span<std::byte> reply, int& descriptor, std::string& refusal) {
    class Call final : public PendingCommand {
      public:
        Call(EmbeddedWorld& world, CommandCode code, std::span<const std::byte> in,
             std::span<std::byte> out)
            : world_(world), code_(code), in_(in), out_(out) {}
        void run() override {
            world_.handed_over_ = -1;
            error = world_.attachment_->execute(code_, in_, out_);
            refusal = world_.attachment_->take_refusal();
            descriptor = std::exchange(world_.handed_over_, -1);
        }
        [[nodiscard]] bool is_question() const override {
            return is_post(code_) || code_ == CommandCode::kPollCq;
        }
        int error = 0;
        int descriptor = -1;
        std::string refusal;

      private:
        EmbeddedWorld& world_;
        CommandCode code_;
        std::span<const std::byte> in_;
        std::span<std::byte> out_;
    };
    if (code == CommandCode::kOpenContext) {
        conductor_->start_helper();
        report_on_signal(*this);
    }
    if (code == CommandCode::kRegisterMr) {
        GuardedCopy::install();
    }
    Call call(*this, code, command, reply);
    conductor_->execute(call);
    descriptor = call.descriptor;
    refusal = std::move(call.refusal);
    return call.error;
}

void EmbeddedWorld::ring(const Doorbell& doorbell) {
    conductor_->ring(*attachment_, doorbell);
}

void EmbeddedWorld::empty_poll(std::uint64_t seen, CompletionRing* queue) {
    if (t_wait_hook.wait != nullptr) {
        t_wait_hook.wait(t_wait_hook.argument);
    } else {
        conductor_->empty_poll(seen, queue == nullptr ? nullptr : &queue->poller.value);
    }
}

int EmbeddedWorld::wait_readable(int descriptor) {
    class Readable final : public Awaited {
      public:
        using Awaited::Awaited;
    };
    if (t_wait_hook.wait == nullptr) {
        Readable readable(descriptor);
        return conductor_->wait_for(readable);
    }
    while (!has_message(descriptor)) {
        t_wait_hook.wait(t_wait_hook.argument);
    }
    return 0;
}

int EmbeddedWorld::take_event(const EventSource& source, int descriptor, EventMessage& message) {
    const bool is_there = conductor_->look([&] {
        EventPipe* const pipe = attachment_->events_of(source);
        return pipe == nullptr || pipe->claim();
    });
    if (!is_there) {
        return EAGAIN;
    }
    const Uncancelled uncancelled;  // nobody would look for the message that it leaves
    return receive_event(descriptor, message);
}

int EmbeddedWorld::await_event(const EventSource& source, int descriptor, EventMessage& message) {
    if (t_wait_hook.wait != nullptr) {
        static_cast<void>(wait_readable(descriptor));
        return take_event(source, descriptor, message);
    }
    AwaitedEvent event(*attachment_, source, descriptor);
    if (const int error = conductor_->wait_for(event); error != 0) {
        return error;
    }
    if (const EventMessage* const given = event.given()) {
        message = *given;
        return 0;
    }
    return event.is_readable() ? receive_event(descriptor, message)
                               : take_event(source, descriptor, message);
}

std::string_view EmbeddedWorld::halt(const std::string& host) {
    const std::vector<std::size_t> hcas = simulation_->hcas_of(host);
    const bool any = std::any_of(hcas.begin(), hcas.end(), [this](std::size_t index) {
        return simulation_->hca(index).is_in_use();
    });
    if (!any) {
        return "no program uses a device of it";
    }
    set_stopped(host, true);
    return {};
}

// The threads of its programs run on: their posts and polls fail from now on.
std::string_view EmbeddedWorld::end(const std::string& host, const std::string& why) {
    bool any = false;
    for (const std::size_t index : simulation_->hcas_of(host)) {
        Hca& hca = simulation_->hca(index);
        any = any || hca.is_in_use();
        hca.abandon_all(why);
    }
    {
        const std::lock_guard guard(reasons_lock_);
        reasons_of_kills_[host] = why;
    }
    for (std::size_t i = 0; i < devices_.size(); ++i) {
        if (devices_[i].host == host) {
            last_killed_[i].store(attachment_->last_context(), std::memory_order_release);
        }
    }
    watch_work();
    return any ? std::string_view() : "no program uses a device of it";
}

void EmbeddedWorld::set_stopped(const std::string& host, bool stopped) {
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
        if (devices_[i].host == host) {
            stopped_[i].store(stopped, std::memory_order_release);
        }
        count += stopped_[i].load(std::memory_order_relaxed) ? 1 : 0;
    }
    count_stopped_hosts(count);
}

// The end of it is an event that is pending, so time moves as for any other poll.
bool EmbeddedWorld::wait_while_stopped(std::size_t device) {
    while (stopped_[device].load(std::memory_order_acquire)) {
        empty_poll(deliveries(), nullptr);
    }
    return true;
}

std::string EmbeddedWorld::why_killed(std::size_t device) const {
    const std::lock_guard guard(reasons_lock_);
    const auto found = reasons_of_kills_.find(devices_[device].host);
    return found == reasons_of_kills_.end() ? std::string() : found->second;
}

bool EmbeddedWorld::admit_work(std::size_t device, std::uint32_t context) {
    if (conductor_->has_turns() && t_wait_hook.wait == nullptr) {
        conductor_->take_turn();
    }
    return !was_killed(device, context);
}

bool EmbeddedWorld::was_killed(std::size_t device, std::uint32_t context) const {
    return context <= last_killed_[device].load(std::memory_order_acquire);
}

// The one thing said unasked: without it, two programs that were started by themselves look broken.
void EmbeddedWorld::peer_never_was(std::uint32_t qpn) {
    if (!hinted_at_other_process_) {
        hinted_at_other_process_ = true;
        fmt::print(
            stderr,
            "simverbs: retries exceeded towards QPN {:#x}, which is no peer in this process's "
            "world; is it another process's? Each has a world of its own unless started "
            "with `simverbs run`\n",
            qpn);
    }
}

std::byte* EmbeddedWorld::map_ring(const RingReply& ring, int /*descriptor*/) {
    return reinterpret_cast<std::byte*>(ring.place);
}

void EmbeddedWorld::unmap_ring(std::byte* /*memory*/, std::uint64_t /*bytes*/) {}

namespace {

// A ring of that size or more has pages of its own: those that nobody touches cost neither memory
// nor the time to clear them.
constexpr std::size_t kMappedRing = std::size_t{256} << 10;

}  // namespace

RingMemory EmbeddedWorld::make_ring(std::size_t bytes, std::size_t zeroed) {
    if (bytes >= kMappedRing) {
        void* const pages =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return pages == MAP_FAILED ? RingMemory{}
                                   : RingMemory{static_cast<std::byte*>(pages), bytes};
    }
    void* memory = ::operator new(bytes, std::align_val_t(kCacheLine), std::nothrow);
    if (memory == nullptr) {
        return {};
    }
    std::memset(memory, 0, zeroed);
    return {static_cast<std::byte*>(memory), bytes};
}

void EmbeddedWorld::release_ring(const RingMemory& ring) {
    if (ring.bytes >= kMappedRing) {
        munmap(ring.base, ring.bytes);
    } else {
        ::operator delete(ring.base, std::align_val_t(kCacheLine));
    }
}

}  // namespace simverbs::driver
