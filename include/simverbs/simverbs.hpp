// The control API for C++: a world, faults and a trace that last as long as their objects, and
// faults spelled as they are meant:
//
//     simverbs::World world({.topology = "star:2", .seed = 7});
//     simverbs::Fault lost = simverbs::drop().from("h0").qp(1).psn(3).attempt(1).inject();
//     ... plain verbs ...
//     EXPECT_EQ(lost.fired(), 1);
//
// Header only, over <simverbs/simverbs.h>. What that refuses is thrown as simverbs::Error, with the
// errno and the sentence of simverbs_last_error().
#ifndef SIMVERBS_SIMVERBS_HPP
#define SIMVERBS_SIMVERBS_HPP

#if __cplusplus < 201703L
#error "<simverbs/simverbs.hpp> needs C++17, and {.name = value} in its options C++20: -std=c++20"
#endif

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <simverbs/simverbs.h>

namespace simverbs {

// Durations of virtual time.
using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;

class Error : public std::system_error {
  public:
    explicit Error(int error, const std::string& what = simverbs_last_error())
        : std::system_error(error, std::generic_category(), what) {}
};

inline void check(int error) {
    if (error != 0) {
        throw Error(error);
    }
}

inline Picoseconds now() {
    std::int64_t picoseconds = 0;
    check(simverbs_now_ps(&picoseconds));
    return Picoseconds(picoseconds);
}
// The same duration in the unit of virtual time, which has room for 106 days; throws Error.
template <class Rep, class Period>
Picoseconds picoseconds(const std::chrono::duration<Rep, Period>& duration) {
    constexpr auto kMost = std::chrono::duration_cast<std::chrono::hours>(Picoseconds::max());
    if (duration > kMost || duration < -kMost) {
        throw Error(EOVERFLOW, "virtual time has no room for more than 2562 hours");
    }
    return std::chrono::duration_cast<Picoseconds>(duration);
}
template <class Rep, class Period>
void advance(const std::chrono::duration<Rep, Period>& duration) {
    check(simverbs_advance_ps(picoseconds(duration).count()));
}
// "67.1 ms", "1 s": in the largest unit of which there is one, without rounding.
inline std::string to_string(Picoseconds duration) {
    struct Unit {
        std::int64_t picoseconds;
        const char* name;
    };
    constexpr Unit kUnits[] = {
        {1'000'000'000'000, " s"}, {1'000'000'000, " ms"}, {1'000'000, " us"}, {1'000, " ns"}};
    const std::int64_t count = duration.count();
    for (const Unit& unit : kUnits) {
        if (count / unit.picoseconds == 0) {
            continue;
        }
        std::string text = std::to_string(count / unit.picoseconds);
        if (std::int64_t rest = std::abs(count % unit.picoseconds); rest != 0) {
            std::string digits = std::to_string(unit.picoseconds + rest).substr(1);
            digits.erase(digits.find_last_not_of('0') + 1);
            text += "." + digits;
        }
        return text + unit.name;
    }
    return std::to_string(count) + " ps";
}

// Why a work request failed, in sentences of a line each; "" when none has. See simverbs_explain().
inline std::string explain(const std::string& host = "", std::uint32_t qp_num = 0) {
    const char* const text = simverbs_explain(host.c_str(), qp_num);
    if (text == nullptr) {
        throw Error(ENOENT);
    }
    return text;
}

// Describes every queue pair and what it waits for. See simverbs_waits().
inline std::string waits() {
    const char* const text = simverbs_waits();
    if (text == nullptr) {
        throw Error(ENODEV);
    }
    return text;
}

namespace detail {

// True where sends are outstanding in the world, and each of them waits for a receive of its peer
// with RNR retries that have no limit: nothing but a receive, or a fault to come, ends that.
inline bool all_wait_for_receives() {
    struct Sends {
        bool any = false;
        bool others = false;
    } sends;
    const auto see = [](const simverbs_queue_pair_report* report, void* argument) {
        auto& seen = *static_cast<Sends*>(argument);
        const bool is_refused = report->rnr_naks > 0 && report->rnr_retries_left < 0;
        seen.any = seen.any || report->sends_outstanding > 0;
        seen.others = seen.others || (report->sends_outstanding > 0 && !is_refused);
    };
    return simverbs_report_queue_pairs(see, &sends) == 0 && sends.any && !sends.others;
}

}  // namespace detail

inline std::uint64_t run_digest() {
    std::uint64_t digest = 0;
    check(simverbs_run_digest(&digest));
    return digest;
}

// Options that are not given are as the environment says (SIMVERBS_TOPOLOGY, _PERSONALITY, _SEED),
// else "star:2", "spec" and 1.
struct WorldOptions {
    std::optional<std::string> topology{};
    std::optional<std::string> personality{};
    std::optional<std::uint64_t> seed{};
    // The last so many are kept, so that explain() and the matchers of <simverbs/gtest.hpp> can say
    // why something failed. It costs microseconds a message: 0, none, for long runs.
    std::size_t kept_records = 16'384;
};

// The world of this process, from its beginning; the next one begins afresh. Devices are closed
// before it ends: one that is still open keeps the world.
class World {
  public:
    explicit World(const WorldOptions& options = {}) {
        check(simverbs_restart());
        if (options.topology) {
            check(simverbs_set_topology(options.topology->c_str()));
        }
        if (options.personality) {
            check(simverbs_set_personality(options.personality->c_str()));
        }
        if (options.seed) {
            check(simverbs_set_seed(*options.seed));
        }
        check(simverbs_set_kept_records(options.kept_records));
    }
    // Names on stderr what is open still, and closes it, so that the next world begins anew.
    ~World() {
        if (simverbs_restart() != 0) {
            std::fprintf(stderr, "simverbs::World: %s: closed\n", simverbs_last_error());
            simverbs_close_devices();
            simverbs_restart();
        }
        simverbs_set_kept_records(0);
    }
    World(const World&) = delete;
    World& operator=(const World&) = delete;
};

// A fault in place, until its end or take_back(). Moved from, it is none.
class Fault {
  public:
    explicit Fault(const simverbs_fault& fault) : nth_(fault.nth), is_drawn_(fault.chance_of != 0) {
        check(simverbs_inject(&fault, &id_));
    }
    Fault(Fault&& other) noexcept
        : id_(std::exchange(other.id_, 0)), nth_(other.nth_), is_drawn_(other.is_drawn_) {}
    Fault& operator=(Fault&& other) noexcept {
        take_back();
        id_ = std::exchange(other.id_, 0);
        nth_ = other.nth_;
        is_drawn_ = other.is_drawn_;
        return *this;
    }
    ~Fault() { take_back(); }

    [[nodiscard]] std::uint32_t id() const { return id_; }
    [[nodiscard]] std::uint64_t fired() const {
        std::uint64_t count = 0;
        check(simverbs_fault_fired(id_, &count));
        return count;
    }
    // How often what it waits for has come, whether it fired then or not.
    [[nodiscard]] std::uint64_t matched() const {
        std::uint64_t count = 0;
        check(simverbs_fault_matched(id_, &count));
        return count;
    }
    // How many of its firings there was nothing to be done to.
    [[nodiscard]] std::uint64_t missed() const {
        std::uint64_t count = 0;
        check(simverbs_fault_missed(id_, &count, nullptr));
        return count;
    }
    // "2 of what it waits for came, and it fires on number 3".
    [[nodiscard]] std::string describe() const {
        const std::uint64_t came = matched();
        std::uint64_t in_vain = 0;
        const char* reason = "";
        check(simverbs_fault_missed(id_, &in_vain, &reason));
        if (in_vain > 0) {
            return std::to_string(in_vain) + " of them did nothing, since " + reason;
        }
        const std::string text = came == 0 ? "nothing that it waits for came"
                                           : std::to_string(came) + " of what it waits for came";
        if (came > 0 && came < nth_) {
            return text + ", and it fires on number " + std::to_string(nth_);
        }
        return came > 0 && is_drawn_ && fired() == 0 ? text + ", and its chance hit none" : text;
    }
    void take_back() {
        if (id_ != 0) {
            simverbs_clear_fault(std::exchange(id_, 0));
        }
    }
    // It stays for as long as the world; its id.
    std::uint32_t leave() { return std::exchange(id_, 0); }

  private:
    std::uint32_t id_ = 0;
    std::uint64_t nth_ = 0;
    bool is_drawn_ = false;
};

// A fault in words. Names are copied when it is injected: they are to last until then.
class FaultWords {
  public:
    explicit FaultWords(simverbs_fault_action action) {
        simverbs_fault_init(&fault_);
        fault_.action = action;
    }

    // Which packets.
    FaultWords& link(const char* name) { return set(fault_.match.link, name); }
    FaultWords& transmitter(const char* node) { return set(fault_.match.transmitter, node); }
    FaultWords& from(const char* host) { return set(fault_.match.from, host); }
    FaultWords& to(const char* host) { return set(fault_.match.to, host); }
    FaultWords& opcode(const char* name) { return set(fault_.match.opcode, name); }
    FaultWords& requests() { return set(fault_.match.direction, SIMVERBS_REQUESTS); }
    FaultWords& responses() { return set(fault_.match.direction, SIMVERBS_RESPONSES); }
    FaultWords& qp(std::uint32_t ordinal) { return set(fault_.match.qp, ordinal); }
    FaultWords& qp_num(std::uint32_t number) { return set(fault_.match.qp_num, number); }
    FaultWords& psn(std::uint32_t relative) { return set(fault_.match.psn, relative); }
    FaultWords& attempt(std::uint32_t nth) { return set(fault_.match.attempt, nth); }

    // The trigger, where that is not what the fault is done to.
    FaultWords& on_packet() { return set(fault_.on, SIMVERBS_ON_PACKET); }
    FaultWords& on_work_request(const char* host, simverbs_queue queue = SIMVERBS_SEND_QUEUE) {
        set(fault_.match.queue, queue);
        return set(fault_.on, SIMVERBS_ON_WORK_REQUEST).set(fault_.match.node, host);
    }
    FaultWords& on_call(const char* host, const char* verb) {
        set(fault_.match.call, verb);
        return set(fault_.on, SIMVERBS_ON_CALL).set(fault_.match.node, host);
    }
    FaultWords& at(Picoseconds time) { return set(fault_.from_ps, time.count()); }
    FaultWords& until(Picoseconds time) { return set(fault_.until_ps, time.count()); }
    FaultWords& after(const Fault& other, Picoseconds delay = Picoseconds::zero()) {
        return set(fault_.after, other.id()).set(fault_.after_delay_ps, delay.count());
    }
    FaultWords& delayed(Picoseconds delay) { return set(fault_.delay_ps, delay.count()); }
    FaultWords& nth(std::uint64_t first) { return set(fault_.nth, first); }
    FaultWords& times(std::uint64_t count) { return set(fault_.count, count); }
    FaultWords& every_time() { return times(SIMVERBS_EVERY); }
    FaultWords& with_chance(std::uint32_t of, std::uint32_t in) {
        return set(fault_.chance, of).set(fault_.chance_of, in);
    }

    // The target of the fault, and its arguments.
    FaultWords& target_link(const char* name) { return set(fault_.target.link, name); }
    FaultWords& target(const char* node) { return set(fault_.target.node, node); }
    FaultWords& target_qp_num(std::uint32_t number) { return set(fault_.target.qp_num, number); }
    FaultWords& target_object(std::uint32_t handle) { return set(fault_.target.object, handle); }
    FaultWords& target_fault(const Fault& other) { return set(fault_.target.fault, other.id()); }
    FaultWords& lasting(Picoseconds duration) {
        return set(fault_.with.duration_ps, duration.count());
    }
    FaultWords& fewer(std::uint64_t count) { return set(fault_.with.times, count); }
    FaultWords& value(std::uint64_t value) { return set(fault_.with.value, value); }
    FaultWords& field(simverbs_header_field field) { return set(fault_.with.field, field); }

    // The name in the trace and in explanations.
    FaultWords& named(const char* name) { return set(fault_.name, name); }

    // For members without a word.
    simverbs_fault& members() { return fault_; }

    [[nodiscard]] Fault inject() const { return Fault(fault_); }

  private:
    template <class T>
    FaultWords& set(T& member, T value) {
        member = value;
        return *this;
    }

    simverbs_fault fault_;
};

// The frequent ones.
inline FaultWords drop() {
    return FaultWords(SIMVERBS_FAULT_DROP);
}
inline FaultWords symbol_error() {
    return FaultWords(SIMVERBS_FAULT_SYMBOL_ERROR);
}
inline FaultWords corrupt() {
    return FaultWords(SIMVERBS_FAULT_CORRUPT);
}
inline FaultWords duplicate() {
    return FaultWords(SIMVERBS_FAULT_DUPLICATE);
}
inline FaultWords delay(Picoseconds duration) {
    return FaultWords(SIMVERBS_FAULT_DELAY).lasting(duration);
}
inline FaultWords reorder() {
    return FaultWords(SIMVERBS_FAULT_REORDER);
}
inline FaultWords nak(simverbs_nak code) {
    return FaultWords(SIMVERBS_FAULT_NAK).value(code);
}
inline FaultWords no_receive() {
    return FaultWords(SIMVERBS_FAULT_NO_RECEIVE);
}
// `reason` is that of the REJ, 1 to 65535.
inline FaultWords cm_reject(std::uint16_t reason) {
    return FaultWords(SIMVERBS_FAULT_CM_REJECT).value(reason);
}
inline FaultWords link_down(const char* link, Picoseconds duration = Picoseconds::zero()) {
    return FaultWords(SIMVERBS_FAULT_LINK_DOWN).target_link(link).lasting(duration);
}
inline FaultWords host_kill(const char* host) {
    return FaultWords(SIMVERBS_FAULT_HOST_KILL).target(host);
}
inline FaultWords process_stop(const char* host, Picoseconds duration) {
    return FaultWords(SIMVERBS_FAULT_PROCESS_STOP).target(host).lasting(duration);
}
inline FaultWords process_kill(const char* host) {
    return FaultWords(SIMVERBS_FAULT_PROCESS_KILL).target(host);
}
inline FaultWords call_fails(const char* host, const char* verb, int error) {
    return FaultWords(SIMVERBS_FAULT_CALL)
        .on_call(host, verb)
        .value(static_cast<std::uint64_t>(error));
}
// `fewer` completions than there are.
inline FaultWords short_poll(const char* host, std::uint64_t fewer = 1) {
    return FaultWords(SIMVERBS_FAULT_SHORT_POLL).on_call(host, "ibv_poll_cq").fewer(fewer);
}
inline FaultWords complete_late(const char* host, Picoseconds duration,
                                simverbs_queue queue = SIMVERBS_SEND_QUEUE) {
    return FaultWords(SIMVERBS_FAULT_COMPLETE_LATE).on_work_request(host, queue).lasting(duration);
}
inline FaultWords event_late(const char* host, Picoseconds duration) {
    return FaultWords(SIMVERBS_FAULT_EVENT_LATE)
        .on_call(host, "ibv_get_cq_event")
        .lasting(duration);
}

// Everything that happens in the world while it lives, as text.
class Trace {
  public:
    struct Field {
        std::string name;
        std::uint64_t number;
        std::string text;
    };
    struct Record {
        Picoseconds time;
        std::string node;
        std::string category;
        std::string name;
        std::vector<Field> fields;

        // Its text, or its number in words; nothing: it has no such field.
        [[nodiscard]] std::optional<std::string> field(const std::string& wanted) const {
            for (const Field& field : fields) {
                if (field.name == wanted) {
                    return field.text.empty() ? std::to_string(field.number) : field.text;
                }
            }
            return std::nullopt;
        }
    };

    Trace() {
        check(simverbs_trace_callback(&Trace::take, nullptr));
        const std::lock_guard lock(all().mutex);
        all().traces.push_back(this);
    }
    ~Trace() {
        bool is_last = false;
        {
            const std::lock_guard lock(all().mutex);
            auto& traces = all().traces;
            traces.erase(std::remove(traces.begin(), traces.end(), this), traces.end());
            is_last = traces.empty();
        }
        if (is_last) {
            simverbs_trace_callback(nullptr, nullptr);
        }
    }
    Trace(const Trace&) = delete;
    Trace& operator=(const Trace&) = delete;

    [[nodiscard]] const std::vector<Record>& records() const { return records_; }
    [[nodiscard]] std::size_t count(const std::string& name) const {
        std::size_t count = 0;
        for (const Record& record : records_) {
            count += record.name == name ? 1U : 0U;
        }
        return count;
    }

  private:
    // The library calls one function for all of them.
    struct All {
        std::mutex mutex;
        std::vector<Trace*> traces;
    };
    static All& all() {
        static All all;
        return all;
    }

    static void take(const simverbs_record* record, void* /*argument*/) noexcept {
        Record taken{
            Picoseconds(record->time_ps), record->node, record->category, record->name, {}};
        for (std::size_t i = 0; i < record->field_count; ++i) {
            const simverbs_field& field = record->fields[i];
            taken.fields.push_back({field.name, field.number, field.text});
        }
        const std::lock_guard lock(all().mutex);
        for (Trace* const trace : all().traces) {
            trace->records_.push_back(taken);
        }
    }

    std::vector<Record> records_;
};

}  // namespace simverbs

#endif
