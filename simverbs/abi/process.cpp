#include "simverbs/abi/process.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/misuse.hpp"
#include "simverbs/abi/open_contexts.hpp"
#include "simverbs/abi/rdma_cm_descriptors.hpp"
#include "simverbs/abi/warnings.hpp"
#include "simverbs/model/settings.hpp"
#include "simverbs/threads/uncancelled.hpp"
#include "simverbs/world/environment.hpp"

namespace simverbs::abi {
namespace {

std::atomic<std::uint64_t> g_generation{1};
std::atomic<Process*> g_current{nullptr};

void after_fork_in_child() {
    if (ThreadRoster::WholeFork::is_under_way()) {
        return;
    }
    g_generation.fetch_add(1, std::memory_order_relaxed);
    RdmaCmCalls::forget();
    g_current.store(nullptr, std::memory_order_relaxed);
}

void finish_at_exit() {
    if (Process* process = g_current.load(std::memory_order_acquire)) {
        process->finish();
        if (process->scenario_failed()) {
            constexpr int kFailed = 1;
            std::fflush(nullptr);
            _exit(kFailed);
        }
    }
}

// Once a process: a setting that is misspelled has no effect otherwise.
void name_unknown_variables() {
    static std::atomic_flag s_said;  // a forked child does not repeat it
    if (s_said.test_and_set()) {
        return;
    }
    for (const std::string& unknown : describe_unknown_variables()) {
        fmt::print(stderr, "simverbs: {}\n", unknown);
    }
}

}  // namespace

std::uint64_t Process::generation() {
    return g_generation.load(std::memory_order_relaxed);
}

// Never destroyed: threads may use verbs until the process is gone.
Process& Process::current() {
    Process* process = g_current.load(std::memory_order_acquire);
    if (process != nullptr) [[likely]] {
        return *process;
    }
    static std::mutex mutex;
    static const bool kHooked = [] {
        pthread_atfork(nullptr, nullptr, after_fork_in_child);
        std::atexit(finish_at_exit);
        return true;
    }();
    (void)kHooked;
    const std::lock_guard lock(mutex);
    process = g_current.load(std::memory_order_acquire);
    if (process == nullptr) {
        process = new Process;
        g_current.store(process, std::memory_order_release);
    }
    return *process;
}

driver::EmbeddedOptions& Process::options() {
    if (options_ == nullptr) {
        options_ = std::make_unique<driver::EmbeddedOptions>();
        options_error_ = driver::read_environment(*options_);
    }
    return *options_;
}

// SIMVERBS_SERVER names a world that a server owns; without it the world is made here.
void Process::find_world() {
    const Uncancelled uncancelled;
    tried_ = true;
    name_unknown_variables();
    std::string error;
    if (const std::string server(environment_value(Setting::kServer)); !server.empty()) {
        const std::string host(environment_value(Setting::kHost));
        auto made = driver::ServedChannel::make(server, host);
        const int code = made ? 0 : made.error().code;
        if (made) {
            served_ = std::move(*made);
        } else {
            error = made.error().reason;
        }
        shortage_ = code == EMFILE || code == ENFILE || code == ENOMEM ? code : 0;
        if (shortage_ != 0) {
            tried_ = false;
            static std::atomic_flag s_said;
            if (warnings_wanted() && !s_said.test_and_set()) {
                fmt::print(stderr, "simverbs: devices cannot be listed: {}\n", error);
            }
            return;
        }
    } else {
        error = make_embedded();
    }
    if (!error.empty()) {
        fmt::print(stderr, "simverbs: {}\n", error);
        return;
    }
    std::uint32_t index = 0;
    for (const DeviceInfo& info : channel()->devices()) {
        devices_.push_back(device(index++, info));
    }
    if (served_ != nullptr && !environment_value(Setting::kDevices).empty() &&
        dlsym(RTLD_DEFAULT, "simverbs_devices_preloaded") == nullptr) {
        fmt::print(stderr,
                   "simverbs: this program was started without libsimverbs-devices.so, by an "
                   "LD_PRELOAD of its own perhaps: it finds its devices by verbs, and not in "
                   "/sys/class/infiniband and /dev/infiniband\n");
    }
}

std::unique_ptr<Device> Process::device(std::uint32_t index, const DeviceInfo& info) {
    const std::uint32_t number = first_device_number_ + index;
    const auto [first, last] = former_devices_.equal_range(index);
    const auto known = std::find_if(first, last, [&](const auto& former) {
        return former.second->number() == number && former.second->info() == info;
    });
    if (known == last) {
        return std::make_unique<Device>(index, number, info);
    }
    std::unique_ptr<Device> device = std::move(known->second);
    former_devices_.erase(known);
    return device;
}

// It makes the world itself, through the functions of simverbs.h.
void Process::begin_scenario_of_environment() {
    const std::string file(environment_value(Setting::kScenario));
    if (file.empty() || scenario_asked_for_ || !environment_value(Setting::kServer).empty()) {
        return;
    }
    scenario_asked_for_ = true;
    if (const std::string wrong = scenario_.begin(file.c_str(), options().simulation.topology);
        !wrong.empty()) {
        fmt::print(stderr, "simverbs: SIMVERBS_SCENARIO: {}\n", wrong);
        scenario_failed_ = true;
        embedded_.reset();
        devices_.clear();
        tried_ = true;
    }
}

std::pair<int, std::string> Process::begin_scenario(const char* path) {
    const std::lock_guard lock(mutex_);
    if (tried_) {
        return {EBUSY, "the world exists already; simverbs_restart() first"};
    }
    scenario_asked_for_ = true;
    std::string wrong = scenario_.begin(path, options().simulation.topology);
    if (!wrong.empty()) {
        embedded_.reset();
        devices_.clear();
        options_.reset();
        tried_ = false;
        scenario_asked_for_ = false;
    }
    return {wrong.empty() ? 0 : EINVAL, std::move(wrong)};
}

std::optional<std::string> Process::end_scenario() {
    const std::lock_guard lock(mutex_);
    if (embedded_ == nullptr || !scenario_.has_begun()) {
        return std::nullopt;
    }
    embedded_->traces().listen({});
    const RunMarks& marks = embedded_->conductor().marks();
    const std::string mark = marks.deterministic() ? "" : marks.describe();
    const fabric::EventLoop& loop = embedded_->simulation().loop();
    return scenario_.end({fabric::to_picoseconds(loop.now()),
                          embedded_->simulation().bus().run_digest(), mark.c_str()});
}

std::string Process::make_embedded() {
    const driver::EmbeddedOptions& wanted = options();
    if (!options_error_.empty()) {
        return options_error_;
    }
    driver::EmbeddedOptions numbered = wanted;
    numbered.first_device_number = first_device_number_;
    auto made = driver::EmbeddedWorld::make(numbered);
    if (!made) {
        return made.error();
    }
    embedded_ = std::move(*made);
    return "";
}

driver::EmbeddedWorld* Process::embedded() {
    const std::lock_guard lock(mutex_);
    if (!tried_) {
        begin_scenario_of_environment();
    }
    if (!tried_) {
        find_world();
    }
    return embedded_.get();
}

Channel* Process::channel() {
    driver::EmbeddedWorld* own = embedded();
    return own != nullptr ? static_cast<Channel*>(own) : served_.get();
}

std::vector<Device*> Process::devices() {
    const std::lock_guard lock(mutex_);
    channel();
    std::vector<Device*> all;
    for (const auto& device : devices_) {
        if (embedded_ == nullptr || embedded_->is_present(device->index())) {
            all.push_back(device.get());
        }
    }
    return all;
}

void Process::context_opened(Context& context) {
    const std::lock_guard lock(mutex_);
    has_opened_any_ = true;
    contexts_.push_back(&context);
    add_open_context(context.c_handle());
}

void Process::context_closed(Context& context) {
    const std::lock_guard lock(mutex_);
    contexts_.erase(std::find(contexts_.begin(), contexts_.end(), &context));
}

Context* Process::find_open(const ibv_context* handle) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(contexts_.begin(), contexts_.end(),
                                    [handle](Context* each) { return each->c_handle() == handle; });
    return found == contexts_.end() ? nullptr : *found;
}

Context* Process::find_context(int command_descriptor) {
    struct stat wanted {};
    if (fstat(command_descriptor, &wanted) != 0) {
        return nullptr;
    }
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(contexts_.begin(), contexts_.end(), [&](Context* context) {
        struct stat own {};
        return fstat(context->c_handle()->cmd_fd, &own) == 0 && own.st_dev == wanted.st_dev &&
               own.st_ino == wanted.st_ino;
    });
    return found == contexts_.end() ? nullptr : *found;
}

// Queues that were polled once, in vain, while requests were under way, and devices that are open
// as the program ends; what is made on them goes with them.
void Process::name_what_is_left() {
    const bool sends = std::any_of(contexts_.begin(), contexts_.end(), [](const Context* context) {
        return std::any_of(context->qps.begin(), context->qps.end(),
                           [context](const QueuePair& qp) { return awaits_send(*context, qp); });
    });
    for (Context* context : contexts_) {
        for (const auto& [handle, cq] : context->cqs) {
            if (sends && was_polled_once_in_vain(*cq)) {
                say_misuse(Misuse::kPolledOnce, handle, {});
            }
        }
    }
    for (Context* context : contexts_) {
        if (!context->is_foreign() && !context->is_kept_open()) {
            say_misuse(Misuse::kNotDestroyed, 0, context->describe_objects());
        }
    }
}

void Process::finish() {
    const std::lock_guard lock(mutex_);
    name_what_is_left();
    if (const auto report = end_scenario(); report && !report->empty()) {
        fmt::print(stderr, "{}", *report);
        scenario_failed_ = true;
    }
    if (embedded_ != nullptr) {
        embedded_->finish();
    }
}

std::string Process::describe_open() {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const Context* context : contexts_) {
        if (!context->is_kept_open()) {
            text += (text.empty() ? "" : "; ") + context->describe_objects();
        }
    }
    return text;
}

unsigned Process::close_devices() {
    std::vector<Context*> open;
    {
        const std::lock_guard lock(mutex_);
        std::ranges::copy_if(contexts_, std::back_inserter(open),
                             [](const Context* each) { return !each->is_librdmacms(); });
    }
    for (auto each = open.rbegin(); each != open.rend(); ++each) {
        simverbs_abi_ibv_close_device((*each)->c_handle());
    }
    return static_cast<unsigned>(open.size()) + abandon_devices();
}

unsigned Process::abandon_devices() {
    const std::lock_guard lock(mutex_);
    const auto kept =
        std::stable_partition(contexts_.begin(), contexts_.end(),
                              [](const Context* each) { return !each->is_librdmacms(); });
    for (auto each = kept; each != contexts_.end(); ++each) {
        (*each)->execute(CloseContext{});
        (*each)->abandon();
    }
    const auto count = static_cast<unsigned>(contexts_.end() - kept);
    contexts_.erase(kept, contexts_.end());
    has_abandoned_ = has_abandoned_ || count > 0;
    return count;
}

std::string Process::restart() {
    const std::lock_guard lock(mutex_);
    if (!std::ranges::all_of(contexts_, &Context::is_kept_open)) {
        return fmt::format("a device is open ({}); ibv_close_device() it first", describe_open());
    }
    if (RdmaCmCalls::count() > 0) {
        return "a thread waits for an event of rdma_cm, or is in another call of it";
    }
    abandon_devices();
    finish();
    forget_named_misuse();
    embedded_.reset();
    served_.reset();
    if (std::exchange(has_abandoned_, false)) {
        first_device_number_ += static_cast<std::uint32_t>(devices_.size());
        std::ranges::move(devices_, std::back_inserter(abandoned_devices_));
        devices_.clear();
    }
    for (auto& device : devices_) {
        const std::uint32_t index = device->index();
        former_devices_.emplace(index, std::move(device));
    }
    devices_.clear();
    options_.reset();
    options_error_.clear();
    tried_ = false;
    scenario_asked_for_ = false;
    return "";
}

}  // namespace simverbs::abi
