#include "simverbs/hca/guarded_copy.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>

#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

namespace simverbs {
namespace {

struct sigaction g_previous_segv;
struct sigaction g_previous_bus;
std::atomic<bool> g_installed{false};

CopyOutcome copy_by_kernel(std::byte* to, const std::byte* from, std::size_t length) {
    // The kernel stops at the first page it cannot use; one byte tells which side that was.
    const iovec local{to, length};
    const iovec remote{const_cast<std::byte*>(from), length};
    const ssize_t done = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (done == static_cast<ssize_t>(length)) {
        return CopyOutcome::kCopied;
    }
    if (done < 0 && errno != EFAULT) {  // the call is not to be had, as in some containers
        std::memcpy(to, from, length);
        return CopyOutcome::kCopied;
    }
    const std::size_t reached = done > 0 ? static_cast<std::size_t>(done) : 0;
    std::byte probe{};
    const iovec one{&probe, 1};
    const iovec next{const_cast<std::byte*>(from) + reached, 1};
    return process_vm_readv(getpid(), &one, 1, &next, 1, 0) == 1 ? CopyOutcome::kDestinationFault
                                                                 : CopyOutcome::kSourceFault;
}

}  // namespace

#if defined(__x86_64__)

// rdi = to, rsi = from, rdx = length; returns the bytes left, 0 when all were copied. Every memory
// access lies between the labels `words` and `end`; the handler sends a fault there to `fault`.
asm(R"(
    .text
    .globl simverbs_guarded_copy
    .hidden simverbs_guarded_copy
    .type simverbs_guarded_copy, @function
simverbs_guarded_copy:
    movq %rdx, %rcx
    cmpq $256, %rcx
    jae simverbs_guarded_copy_begin
    cmpq $8, %rcx
    jb 2f
    .globl simverbs_guarded_copy_words
    .hidden simverbs_guarded_copy_words
simverbs_guarded_copy_words:
1:  movq (%rsi), %rax
    movq %rax, (%rdi)
    addq $8, %rsi
    addq $8, %rdi
    subq $8, %rcx
    cmpq $8, %rcx
    jae 1b
2:  testq %rcx, %rcx
    jz 4f
3:  movb (%rsi), %al
    movb %al, (%rdi)
    incq %rsi
    incq %rdi
    decq %rcx
    jnz 3b
4:  xorl %eax, %eax
    ret
    .globl simverbs_guarded_copy_begin
    .hidden simverbs_guarded_copy_begin
simverbs_guarded_copy_begin:
    rep movsb
    .globl simverbs_guarded_copy_end
    .hidden simverbs_guarded_copy_end
simverbs_guarded_copy_end:
    xorl %eax, %eax
    ret
    .globl simverbs_guarded_copy_fault
    .hidden simverbs_guarded_copy_fault
simverbs_guarded_copy_fault:
    movq %rcx, %rax
    ret
    .size simverbs_guarded_copy, . - simverbs_guarded_copy
)");

namespace {

std::uintptr_t instruction_of(const ucontext_t& machine) {
    return static_cast<std::uintptr_t>(machine.uc_mcontext.gregs[REG_RIP]);
}
void go_on_at(ucontext_t& machine, const char* instruction) {
    machine.uc_mcontext.gregs[REG_RIP] =
        static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(instruction));
}

}  // namespace

#elif defined(__aarch64__)

// x0 = to, x1 = from, x2 = length and then what is left of it; otherwise as above. After a fault
// the rest is copied byte by byte (x7 = 1), up to the first byte that cannot be.
asm(R"(
    .text
    .globl simverbs_guarded_copy
    .hidden simverbs_guarded_copy
    .type simverbs_guarded_copy, %function
simverbs_guarded_copy:
    mov x7, #0
    .globl simverbs_guarded_copy_words
    .hidden simverbs_guarded_copy_words
simverbs_guarded_copy_words:
1:  cmp x2, #32
    b.lo 2f
    ldp x3, x4, [x1]
    ldp x5, x6, [x1, #16]
    stp x3, x4, [x0]
    stp x5, x6, [x0, #16]
    add x1, x1, #32
    add x0, x0, #32
    sub x2, x2, #32
    b 1b
2:  cmp x2, #8
    b.lo 3f
    ldr x3, [x1]
    str x3, [x0]
    add x1, x1, #8
    add x0, x0, #8
    sub x2, x2, #8
    b 2b
3:  cbz x2, simverbs_guarded_copy_end
    ldrb w3, [x1]
    strb w3, [x0]
    add x1, x1, #1
    add x0, x0, #1
    sub x2, x2, #1
    b 3b
    .globl simverbs_guarded_copy_end
    .hidden simverbs_guarded_copy_end
simverbs_guarded_copy_end:
    mov x0, #0
    ret
    .globl simverbs_guarded_copy_fault
    .hidden simverbs_guarded_copy_fault
simverbs_guarded_copy_fault:
    cbnz x7, 4f
    mov x7, #1
    b 3b
4:  mov x0, x2
    ret
    .size simverbs_guarded_copy, . - simverbs_guarded_copy
)");

namespace {

std::uintptr_t instruction_of(const ucontext_t& machine) {
    return machine.uc_mcontext.pc;
}
void go_on_at(ucontext_t& machine, const char* instruction) {
    machine.uc_mcontext.pc = reinterpret_cast<std::uintptr_t>(instruction);
}

}  // namespace

#endif

#if defined(__x86_64__) || defined(__aarch64__)

extern "C" {
// The copy above and its labels.
// NOLINTBEGIN(readability-identifier-naming)
__attribute__((visibility("hidden"))) std::size_t simverbs_guarded_copy(std::byte* to,
                                                                        const std::byte* from,
                                                                        std::size_t length);
__attribute__((visibility("hidden"))) extern const char simverbs_guarded_copy_words[];
__attribute__((visibility("hidden"))) extern const char simverbs_guarded_copy_end[];
__attribute__((visibility("hidden"))) extern const char simverbs_guarded_copy_fault[];
// NOLINTEND(readability-identifier-naming)
}

namespace {

thread_local std::uintptr_t t_fault_address = 0;

bool is_handler(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 ||
           (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

// sigaction(2): the handler runs with its signals blocked, and once where SA_RESETHAND says so. A
// handler of crashes notes what it has to and raises the signal anew: that must end the program.
void run_as_the_kernel_does(struct sigaction& action, int signal, siginfo_t* info, void* context) {
    const struct sigaction taken = action;
    if ((static_cast<unsigned>(taken.sa_flags) & SA_RESETHAND) != 0) {
        action = {};
        action.sa_handler = SIG_DFL;
    }
    sigset_t blocked = taken.sa_mask;
    if ((taken.sa_flags & SA_NODEFER) == 0) {
        sigaddset(&blocked, signal);
    }
    sigset_t before;
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    if ((taken.sa_flags & SA_SIGINFO) != 0) {
        taken.sa_sigaction(signal, info, context);
    } else {
        taken.sa_handler(signal);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void on_fault(int signal, siginfo_t* info, void* context) {
    auto& machine = *static_cast<ucontext_t*>(context);
    const std::uintptr_t at = instruction_of(machine);
    const bool was_sent = info->si_code <= 0;  // by raise(3) or kill(2): no instruction is at fault
    if (!was_sent && at >= reinterpret_cast<std::uintptr_t>(simverbs_guarded_copy_words) &&
        at < reinterpret_cast<std::uintptr_t>(simverbs_guarded_copy_end)) {
        t_fault_address = reinterpret_cast<std::uintptr_t>(info->si_addr);
        go_on_at(machine, simverbs_guarded_copy_fault);
        return;
    }
    struct sigaction& previous = signal == SIGSEGV ? g_previous_segv : g_previous_bus;
    if (is_handler(previous)) {
        run_as_the_kernel_does(previous, signal, info, context);
    } else if (!was_sent || previous.sa_handler == SIG_DFL) {
        // Nobody was there: the faulting instruction runs again and the default action takes it.
        sigaction(signal, &previous, nullptr);
        if (was_sent) {
            raise(signal);
        }
    }
}

bool handler_is_ours() {
    struct sigaction current {};
    return sigaction(SIGSEGV, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) != 0 &&
           current.sa_sigaction == on_fault;
}

}  // namespace

CopyOutcome GuardedCopy::copy(std::byte* to, const std::byte* from, std::size_t length) {
    if (!g_installed.load(std::memory_order_relaxed)) {
        return copy_by_kernel(to, from, length);
    }
    if (simverbs_guarded_copy(to, from, length) == 0) {
        return CopyOutcome::kCopied;
    }
    const auto begin = reinterpret_cast<std::uintptr_t>(from);
    return t_fault_address >= begin && t_fault_address < begin + length
               ? CopyOutcome::kSourceFault
               : CopyOutcome::kDestinationFault;
}

void GuardedCopy::install() {
    static std::mutex mutex;
    static bool was_installed = false;
    const std::lock_guard lock(mutex);
    if (was_installed) {
        // A handler that the program has put over ours stays, and may call ours in turn: the kernel
        // copies while it is there.
        g_installed.store(handler_is_ours(), std::memory_order_release);
        return;
    }
    was_installed = true;
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &g_previous_segv);
    sigaction(SIGBUS, &action, &g_previous_bus);
    g_installed.store(true, std::memory_order_release);
}

#else

CopyOutcome GuardedCopy::copy(std::byte* to, const std::byte* from, std::size_t length) {
    return copy_by_kernel(to, from, length);
}

void GuardedCopy::install() {}

#endif

bool OwnMemory::read(std::uint64_t address, std::byte* bytes, std::size_t length) {
    return GuardedCopy::copy(bytes, reinterpret_cast<const std::byte*>(address), length) ==
           CopyOutcome::kCopied;
}

bool OwnMemory::write(std::uint64_t address, const std::byte* bytes, std::size_t length) {
    return GuardedCopy::copy(reinterpret_cast<std::byte*>(address), bytes, length) ==
           CopyOutcome::kCopied;
}

}  // namespace simverbs
