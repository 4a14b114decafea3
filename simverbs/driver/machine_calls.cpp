#include "simverbs/driver/machine_calls.hpp"

#include <cerrno>

#include <linux/audit.h>
#include <ucontext.h>

#if defined(__x86_64__) || defined(__aarch64__)
extern "C" {
__attribute__((visibility("hidden"))) long simverbs_call_anyway(long number, std::uint64_t a,
                                                                std::uint64_t b, std::uint64_t c,
                                                                std::uint64_t d, std::uint64_t e,
                                                                std::uint64_t f);
__attribute__((visibility("hidden"))) void simverbs_behind_call_anyway();  // a place, not to call
}

asm(".text\n"
    ".globl simverbs_call_anyway\n"
    ".globl simverbs_behind_call_anyway\n"
    ".hidden simverbs_call_anyway\n"
    ".hidden simverbs_behind_call_anyway\n"
    "simverbs_call_anyway:\n"
    ".cfi_startproc\n"
#if defined(__x86_64__)
    "movq %rdi, %rax\n"
    "movq %rsi, %rdi\n"
    "movq %rdx, %rsi\n"
    "movq %rcx, %rdx\n"
    "movq %r8, %r10\n"
    "movq %r9, %r8\n"
    "movq 8(%rsp), %r9\n"
    "syscall\n"
#else
    "mov x8, x0\n"
    "mov x0, x1\n"
    "mov x1, x2\n"
    "mov x2, x3\n"
    "mov x3, x4\n"
    "mov x4, x5\n"
    "mov x5, x6\n"
    "svc #0\n"
#endif
    "simverbs_behind_call_anyway:\n"
    "ret\n"
    ".cfi_endproc\n");
#endif

namespace simverbs::driver {

#if defined(__x86_64__)
const std::uint32_t kCallArchitecture = AUDIT_ARCH_X86_64;

TrappedCall trapped_call(const siginfo_t& info, const void* context) {
    const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
    const auto argument = [&registers](int number) {
        return static_cast<std::uint64_t>(registers[number]);
    };
    return {info.si_syscall,
            {argument(REG_RDI), argument(REG_RSI), argument(REG_RDX), argument(REG_R10),
             argument(REG_R8), argument(REG_R9)}};
}

void return_from_call(void* context, long result) {
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RAX] = result;
}
#elif defined(__aarch64__)
const std::uint32_t kCallArchitecture = AUDIT_ARCH_AARCH64;

TrappedCall trapped_call(const siginfo_t& info, const void* context) {
    const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.regs;
    return {info.si_syscall,
            {registers[0], registers[1], registers[2], registers[3], registers[4], registers[5]}};
}

void return_from_call(void* context, long result) {
    static_cast<ucontext_t*>(context)->uc_mcontext.regs[0] = static_cast<std::uint64_t>(result);
}
#else
const std::uint32_t kCallArchitecture = 0;

TrappedCall trapped_call(const siginfo_t&, const void*) {
    return {};
}

void return_from_call(void*, long) {}
#endif

#if defined(__x86_64__) || defined(__aarch64__)
long call_anyway(const TrappedCall& call) {
    const auto& [a, b, c, d, e, f] = call.arguments;
    return simverbs_call_anyway(call.number, a, b, c, d, e, f);
}

std::uint64_t address_of_call_anyway() {
    return reinterpret_cast<std::uint64_t>(simverbs_behind_call_anyway);
}
#else
long call_anyway(const TrappedCall&) {
    return -ENOSYS;
}

std::uint64_t address_of_call_anyway() {
    return 0;
}
#endif

}  // namespace simverbs::driver
