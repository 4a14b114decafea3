// Runs the programs of several hosts as fibers of one thread. Programs make plain verbs calls, with
// polls and blocking verbs. They take turns in an order that does not depend on the machine.
//
//     simverbs::Lab lab({.topology = "star:2"});
//     boost::fibers::promise<Address> address;
//     lab.host("h0", [&](ibv_context* device) { ... ibv_get_cq_event(...) ... });
//     lab.host("h1", [&](ibv_context* device) { ... ibv_poll_cq(...) ... });
//     lab.run();
//
// Programs exchange data through the classes of Boost.Fiber: promise and future, barrier,
// buffered_channel, mutex. With simverbs::rdmacm linked, each connects by rdma_cm from its own
// host. Virtual time moves when all programs wait, one instant at a time. The class is header only
// and needs Boost::fiber. Use one Lab at a time, and no other thread of the process in the world.
#ifndef SIMVERBS_LAB_HPP
#define SIMVERBS_LAB_HPP

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <boost/fiber/all.hpp>

#include <infiniband/verbs.h>

#include <simverbs/simverbs.hpp>

#if defined(__SANITIZE_ADDRESS__)
#define SIMVERBS_LAB_UNDER_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMVERBS_LAB_UNDER_ASAN
#endif
#endif
#ifdef SIMVERBS_LAB_UNDER_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace simverbs {

namespace lab_detail {

// Thrown from the verb in which a program waits for something that cannot happen.
struct Abandoned {};

struct Waiter {
    boost::fibers::context* fiber;
    std::int64_t until_ps;  // of virtual time; the largest number: for anything
};

// Fibers run in the order in which they became ready; when none is, virtual time moves on.
class VirtualTime final : public boost::fibers::algo::algorithm {
  public:
    void awakened(boost::fibers::context* fiber) noexcept override { fiber->ready_link(ready_); }
    boost::fibers::context* pick_next() noexcept override {
        if (ready_.empty()) {
            return nullptr;
        }
        boost::fibers::context* const next = &ready_.front();
        ready_.pop_front();
        return next;
    }
    bool has_ready_fibers() const noexcept override { return !ready_.empty(); }
    void notify() noexcept override {}
    // Called when no fiber is ready.
    void suspend_until(const std::chrono::steady_clock::time_point&) noexcept override {
        std::int64_t now = 0;
        simverbs_now_ps(&now);
        std::int64_t next = kForAnything;
        for (const Waiter& waiter : waiting_) {
            next = std::min(next, waiter.until_ps);
        }
        int ran = 0;
        simverbs_step_ps(next == kForAnything ? next : std::max<std::int64_t>(next - now, 0), &ran);
        if (ran == 0 && next != kForAnything) {
            simverbs_advance_ps(std::max<std::int64_t>(next - now, 0));
        }
        // Polls return empty for a while, so that a program can give up by itself first.
        fruitless_ = ran == 0 && next == kForAnything ? fruitless_ + 1 : 0;
        simverbs_now_ps(&now);
        if (!abandoned_ && fruitless_ > kPatience) {
            abandon("nothing is left to happen");
        } else if (!abandoned_ && next == kForAnything && is_refused_for_ever(now)) {
            abandon("nothing happens but RNR retries, which have no limit");
        }
        std::vector<Waiter> released;
        std::swap(released, waiting_);
        if (abandoned_ && released.empty()) {
            std::fputs("simverbs::Lab: programs wait for each other, and none of them for verbs\n",
                       stderr);
            std::abort();
        }
        for (const Waiter& waiter : released) {
            if (waiter.until_ps == kForAnything || waiter.until_ps <= now || abandoned_) {
                waiter.fiber->ready_link(ready_);
            } else {
                waiting_.push_back(waiter);
            }
        }
    }

    // Makes the running fiber wait until the next instant has run, or until that time has come.
    // Returns false if nothing is left to happen.
    bool wait(std::int64_t until_ps) {
        if (!abandoned_) {
            boost::fibers::context* const self = boost::fibers::context::active();
            waiting_.push_back({self, until_ps});
            self->suspend();
        }
        return !abandoned_;
    }
    static constexpr std::int64_t kForAnything = std::numeric_limits<std::int64_t>::max();
    // Why programs were abandoned, and what each queue pair waited for then.
    [[nodiscard]] const std::string& why() const { return why_; }
    [[nodiscard]] const std::string& waits() const { return waits_; }

  private:
    static constexpr int kPatience = 10'000;
    static constexpr int kStepsBetweenLooks = 1'000;
    static constexpr std::int64_t kReceivePatience = 100'000'000'000;  // 100 ms

    // Requests are refused and repeated, and nothing else has happened for kReceivePatience. Looks
    // now and then.
    bool is_refused_for_ever(std::int64_t now) {
        if (++steps_ % kStepsBetweenLooks != 0) {
            return false;
        }
        const std::uint64_t digest = run_digest();
        if (digest != refused_digest_ || !detail::all_wait_for_receives()) {
            refused_digest_ = digest;
            refused_since_ = now;
        }
        return now - refused_since_ >= kReceivePatience;
    }
    void abandon(const char* why) {
        abandoned_ = true;
        why_ = why;
        const char* const text = simverbs_waits();
        waits_ = text == nullptr ? "" : text;
    }

    boost::fibers::scheduler::ready_queue_type ready_;
    std::vector<Waiter> waiting_;
    int fruitless_ = 0;
    std::uint64_t steps_ = 0;
    std::uint64_t refused_digest_ = 0;
    std::int64_t refused_since_ = 0;
    bool abandoned_ = false;
    std::string why_;
    std::string waits_;
};

}  // namespace lab_detail

class Lab {
  public:
    using Program = std::function<void(ibv_context*)>;

    explicit Lab(const WorldOptions& options = {}) : world_(options) {}

    // Adds a program that runs on host `name` and gets its first device, open. A host can have
    // several programs; messages then number them. Call it before run().
    void host(std::string name, Program program) {
        programs_.push_back(
            {std::move(name), std::move(program), nullptr, nullptr, false, nullptr});
    }

    // Runs all programs until each has returned. Throws the first exception that a program throws.
    // Throws std::runtime_error where a host or its device does not exist; where a program leaves
    // objects on its device; and, with who waits for what, where nothing is left to happen or only
    // RNR retries without limit go on.
    void run() {
        auto* const time = new lab_detail::VirtualTime;  // the scheduler of this thread owns it
        boost::fibers::context::active()->get_scheduler()->set_algo(time);
        time_ = time;
        simverbs_set_wait_hook(&Lab::wait_for_anything, this);
        simverbs_set_host_hook(&Lab::host_of_caller, this);
        std::vector<boost::fibers::fiber> fibers;
        for (Running& each : programs_) {
            fibers.emplace_back(boost::fibers::launch::post, std::allocator_arg,
                                boost::fibers::fixedsize_stack(kStackBytes),
                                [this, &each] { carry_out(each); });
        }
        for (boost::fibers::fiber& fiber : fibers) {
            fiber.join();
        }
        simverbs_set_wait_hook(nullptr, nullptr);
        simverbs_set_host_hook(nullptr, nullptr);
        report();
        time_ = nullptr;
    }

    // Lets `duration` of virtual time pass for the calling program. Throws Error outside of run().
    template <class Rep, class Period>
    void sleep_for(const std::chrono::duration<Rep, Period>& duration) {
        if (time_ == nullptr) {
            throw Error(EINVAL, "simverbs::Lab: sleep_for() is for programs, once run() runs them");
        }
        wait((now() + picoseconds(duration)).count());
    }

  private:
    // As much as a thread of a small program needs; pages are taken as they are used.
    static constexpr std::size_t kStackBytes = std::size_t{1} << 20U;

    struct Running {
        std::string host;
        Program program;
        boost::fibers::context* fiber;  // once it runs
        const char* stack_top;          // likewise
        bool abandoned;
        std::exception_ptr thrown;
    };

    static void wait_for_anything(void* self) {
        static_cast<Lab*>(self)->wait(lab_detail::VirtualTime::kForAnything);
    }

    void wait(std::int64_t until_ps) {
        if (!time_->wait(until_ps)) {
            forget_frames();
            throw lab_detail::Abandoned{};
        }
    }

    // The address sanitizer does not know a fiber's stack, and would take what it has marked in
    // frames that an exception leaves for marks of the frames that come after them.
    void forget_frames() const {
#ifdef SIMVERBS_LAB_UNDER_ASAN
        const auto* const here = static_cast<const char*>(__builtin_frame_address(0));
        if (const Running* const caller = running(); caller != nullptr) {
            __asan_unpoison_memory_region(here, static_cast<std::size_t>(caller->stack_top - here));
        }
#endif
    }

    // The program that calls. Fibers that programs make themselves are none.
    const Running* running() const {
        for (const Running& each : programs_) {
            if (each.fiber == boost::fibers::context::active()) {
                return &each;
            }
        }
        return nullptr;
    }

    // For rdma_cm.
    static const char* host_of_caller(void* self) {
        const Running* const caller = static_cast<Lab*>(self)->running();
        return caller == nullptr ? nullptr : caller->host.c_str();
    }

    static ibv_context* open(const std::string& host) {
        int count = 0;
        ibv_device** const devices = ibv_get_device_list(&count);
        ibv_context* opened = nullptr;
        for (int i = 0; i < count && opened == nullptr; ++i) {
            if (host == simverbs_device_host(devices[i])) {
                opened = ibv_open_device(devices[i]);
            }
        }
        ibv_free_device_list(devices);
        if (opened == nullptr) {
            throw std::runtime_error("simverbs::Lab: there is no host \"" + host +
                                     "\", or its device cannot be opened");
        }
        return opened;
    }

    void carry_out(Running& running) {
        ibv_context* device = nullptr;
        running.fiber = boost::fibers::context::active();
        running.stack_top = static_cast<const char*>(__builtin_frame_address(0));
        try {
            device = open(running.host);
            running.program(device);
            if (const std::string left = simverbs_objects_left(device); !left.empty()) {
                throw std::runtime_error("simverbs::Lab: the program of " + running.host +
                                         " has left " + left);
            }
        } catch (const lab_detail::Abandoned&) {
            running.abandoned = true;
        } catch (...) {
            running.thrown = std::current_exception();
        }
        if (device != nullptr) {
            ibv_close_device(device);
        }
    }

    void report() const {
        std::string waiting;
        for (const Running& each : programs_) {
            if (each.thrown != nullptr) {
                std::rethrow_exception(each.thrown);
            }
            if (each.abandoned) {
                waiting += (waiting.empty() ? "" : ", ") + each.host;
            }
        }
        if (!waiting.empty()) {
            throw std::runtime_error("simverbs::Lab: " + time_->why() + ", and " + waiting +
                                     " waited\n" + time_->waits());
        }
    }

    World world_;
    std::vector<Running> programs_;
    lab_detail::VirtualTime* time_ = nullptr;
};

}  // namespace simverbs

#endif
