#include "simverbs/driver/confined_calls.hpp"

#include <csignal>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simverbs/driver/machine_calls.hpp"

namespace simverbs::driver {

namespace {

// Must hold of half of an argument: how its bits under `mask` compare with `value`.
struct Condition {
    std::uint32_t half;  // the lower one of each argument, then its upper one; little-endian
    std::uint16_t test;  // BPF_JEQ, BPF_JSET
    std::uint32_t value;
    bool holds = true;  // or must not hold
    std::uint32_t mask = std::numeric_limits<std::uint32_t>::max();
};

constexpr Condition is(std::uint32_t argument, std::uint64_t value) {
    return {2 * argument, BPF_JEQ, static_cast<std::uint32_t>(value)};
}

constexpr Condition has_no_upper_half(std::uint32_t argument) {
    return {2 * argument + 1, BPF_JEQ, 0};
}

constexpr Condition has(std::uint32_t argument, std::uint32_t bits) {
    return {2 * argument, BPF_JSET, bits};
}

constexpr Condition is_descriptor_of_program(std::uint32_t argument) {
    return {2 * argument, BPF_JGE, kFirstOwnDescriptor, false};
}

class Filter {
  public:
    Filter() {
        load(offsetof(seccomp_data, arch));
        add(BPF_JMP | BPF_JEQ | BPF_K, kCallArchitecture, 1, 0);
        trap();
        allow_calls_anyway();
        load(offsetof(seccomp_data, nr));
    }

    void allow(long call, std::initializer_list<Condition> conditions = {}) {
        // The number of instructions behind the jump that ask the conditions, and return.
        std::size_t rest = 1;
        for (const Condition& condition : conditions) {
            rest += size_of(condition);
        }
        const bool reloads = rest > 1;
        add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0,
            static_cast<std::uint8_t>(reloads ? rest + 1 : rest));
        for (const Condition& condition : conditions) {
            load(offsetof(seccomp_data, args) + condition.half * sizeof(std::uint32_t));
            if (is_masked(condition)) {
                add(BPF_ALU | BPF_AND | BPF_K, condition.mask, 0, 0);
            }
            rest -= size_of(condition);
            const auto fails = static_cast<std::uint8_t>(rest);
            add(static_cast<std::uint16_t>(BPF_JMP | condition.test | BPF_K), condition.value,
                condition.holds ? 0 : fails, condition.holds ? fails : 0);
        }
        add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
        if (reloads) {
            load(offsetof(seccomp_data, nr));
        }
    }

    [[nodiscard]] std::vector<sock_filter> finish() {
        trap();
        return std::move(instructions_);
    }

  private:
    static bool is_masked(const Condition& condition) {
        return condition.mask != std::numeric_limits<std::uint32_t>::max();
    }
    static std::size_t size_of(const Condition& condition) { return is_masked(condition) ? 3 : 2; }

    void add(std::uint16_t code, std::uint32_t value, std::uint8_t then, std::uint8_t otherwise) {
        instructions_.push_back({code, then, otherwise, value});
    }
    void load(std::size_t offset) {
        add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset), 0, 0);
    }
    void trap() { add(BPF_RET | BPF_K, SECCOMP_RET_TRAP, 0, 0); }

    // Allows what call_anyway() calls. Little-endian.
    void allow_calls_anyway() {
        const std::uint64_t address = address_of_call_anyway();
        load(offsetof(seccomp_data, instruction_pointer));
        add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(address), 0, 3);
        load(offsetof(seccomp_data, instruction_pointer) + sizeof(std::uint32_t));
        add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(address >> 32U), 0, 1);
        add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    }

    std::vector<sock_filter> instructions_;
};

void allow_questions(Filter& filter) {
    for (const long call : {SYS_clock_gettime, SYS_clock_getres,
                            SYS_gettimeofday,  SYS_getpid,
                            SYS_gettid,        SYS_getppid,
                            SYS_getuid,        SYS_geteuid,
                            SYS_getgid,        SYS_getegid,
                            SYS_getrandom,     SYS_getcpu,
                            SYS_sched_yield,   SYS_sched_getaffinity,
                            SYS_uname,         SYS_getrusage,
                            SYS_times,         SYS_fstat,
                            SYS_newfstatat,    SYS_statx,
                            SYS_readlinkat,    SYS_faccessat,
                            SYS_getcwd,        SYS_getitimer,
                            SYS_pread64}) {
        filter.allow(call);
    }
    // Without a new action, stack or limit: a null pointer.
    filter.allow(SYS_rt_sigaction, {is(1, 0), has_no_upper_half(1)});
    filter.allow(SYS_sigaltstack, {is(0, 0), has_no_upper_half(0)});
    filter.allow(SYS_prlimit64, {is(2, 0), has_no_upper_half(2)});
    filter.allow(SYS_ioctl, {is(1, TCGETS)});  // whether it is a terminal
    // It wakes others, and waits for nobody.
    Condition wakes = is(1, FUTEX_WAKE);
    wakes.mask = static_cast<std::uint32_t>(FUTEX_CMD_MASK);
    filter.allow(SYS_futex, {wakes});
}

void allow_descriptors(Filter& filter, const ConfinedDescriptors& descriptors) {
    for (const int written : {STDOUT_FILENO, STDERR_FILENO, descriptors.reports}) {
        filter.allow(SYS_write, {is(0, static_cast<std::uint64_t>(written))});
        filter.allow(SYS_writev, {is(0, static_cast<std::uint64_t>(written))});
    }
    filter.allow(SYS_ftruncate, {is(0, static_cast<std::uint64_t>(descriptors.output))});
    // The program's sockets are those of events, which are emptied after each branch.
    filter.allow(SYS_sendto, {has(3, MSG_DONTWAIT)});
    filter.allow(SYS_recvfrom, {has(3, MSG_DONTWAIT)});
    filter.allow(SYS_sendmsg, {has(2, MSG_DONTWAIT)});
    filter.allow(SYS_recvmsg, {has(2, MSG_DONTWAIT)});
    filter.allow(SYS_close, {is_descriptor_of_program(0)});
    filter.allow(SYS_close_range, {is_descriptor_of_program(1)});
    filter.allow(SYS_dup);
#ifdef SYS_dup2
    filter.allow(SYS_dup2, {is_descriptor_of_program(1)});
#endif
    filter.allow(SYS_dup3, {is_descriptor_of_program(1)});
    for (const int command : {F_GETFD, F_SETFD, F_GETFL}) {
        filter.allow(SYS_fcntl, {is(1, static_cast<std::uint64_t>(command))});
    }
}

}  // namespace

ConfinedCalls::ConfinedCalls(const ConfinedDescriptors& descriptors) {
    Filter filter;
    allow_questions(filter);
    allow_descriptors(filter, descriptors);
    filter.allow(SYS_rt_sigprocmask);
    filter.allow(SYS_rt_sigreturn);
    filter.allow(SYS_brk);
    filter.allow(SYS_kill, {is(0, static_cast<std::uint64_t>(getpid())), is(1, SIGKILL)});
    instructions_ = filter.finish();
}

bool ConfinedCalls::confine() {
    const sock_fprog program{static_cast<std::uint16_t>(instructions_.size()),
                             instructions_.data()};
    return kCallArchitecture != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                   &program) == 0;
}

}  // namespace simverbs::driver
