// System calls as the processor makes them: what a trapped one asks for, and how to make one in
// spite of a filter. x86-64 and AArch64.
#pragma once

#include <array>
#include <csignal>
#include <cstdint>

namespace simverbs::driver {

// As AUDIT_ARCH_* (linux/audit.h); 0: another processor, and nothing here can be used.
extern const std::uint32_t kCallArchitecture;

// A call that has raised SIGSYS, as the arguments of the signal handler have it.
struct TrappedCall {
    long number = -1;
    std::array<std::uint64_t, 6> arguments{};
};

// Async-signal-safe, as the two that follow.
[[nodiscard]] TrappedCall trapped_call(const siginfo_t& info, const void* context);
// Makes a call from an address that a filter lets through. Returns its result, or -errno.
long call_anyway(const TrappedCall& call);
// The trapped call returns `result` when the handler does.
void return_from_call(void* context, long result);

// Returns what seccomp(2) has as the instruction pointer of calls by call_anyway().
[[nodiscard]] std::uint64_t address_of_call_anyway();

}  // namespace simverbs::driver
