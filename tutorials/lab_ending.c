/* Notes where a program ended, for `simverbs lab check`, which compiles this with each answer in C:
 * the lines that were under way at a crash, at a call of exit(), or when the program is stopped
 * (SIGABRT). It writes their addresses to the file $LAB_ENDING; addr2line makes lines of them. Also
 * lets every byte of stdout leave at once, so that a crash loses none. Does not change how the
 * program ends. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr(3), the names of registers */
#endif
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    MOST_FRAMES = 64,
    MOST_WORDS = 1024,
    OF_EXIT = 2 /* frames of this file */,
    OF_SIGNAL = 3 /* and of the kernel */
};

extern const char __executable_start[];
extern const char etext[];

static int notes = -1;
static pid_t owner; /* a forked child notes nothing */

static void note(const char* word, uintptr_t number) {
    char line[64];
    size_t at = sizeof line;
    line[--at] = '\n';
    do {
        line[--at] = "0123456789abcdef"[number % 16];
        number /= 16;
    } while (number > 0);
    line[--at] = ' ';
    for (size_t left = strlen(word); left > 0; --left) {
        line[--at] = word[left - 1];
    }
    (void)!write(notes, line + at, sizeof line - at);
}

/* Notes an address of this program as the symbol table has it; returns 0 for one that is elsewhere.
 * `back` is 1 for return addresses, which lie behind the call. */
static int note_place(uintptr_t address, unsigned back) {
    const ElfW(Ehdr)* header = (const void*)__executable_start;
    const uintptr_t base = header->e_type == ET_DYN ? (uintptr_t)header : 0;
    if (address <= (uintptr_t)header || address >= (uintptr_t)etext) {
        return 0;
    }
    note("at", address - base - back);
    return 1;
}

/* All but the one at which a signal came are return addresses. */
__attribute__((noinline)) static void note_frames(int first, int exact) {
    void* frames[MOST_FRAMES];
    const int count = backtrace(frames, MOST_FRAMES);
    for (int i = first; i < count; ++i) {
        note_place((uintptr_t)frames[i], i == exact ? 0 : 1);
    }
}

/* Notes the first word on the stack that can be a return address to this program, and returns 1,
 * where the program has jumped to where no code is. backtrace() would crash there. */
static int search_stack(const ucontext_t* context) {
#if defined(__x86_64__)
    const uintptr_t counter = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    const uintptr_t* top = (const uintptr_t*)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    const uintptr_t counter = (uintptr_t)context->uc_mcontext.pc;
    const uintptr_t* top = (const uintptr_t*)context->uc_mcontext.sp;
#else
    const uintptr_t counter = (uintptr_t)&search_stack;
    const uintptr_t* top = NULL;
    (void)context;
#endif
    Dl_info about;
    if (dladdr((const void*)counter, &about) != 0) {
        return 0;
    }
    for (int i = 0; i < MOST_WORDS && !note_place(top[i], 1); ++i) {
    }
    return 1;
}

static void on_signal(int signal, siginfo_t* info, void* context) {
    if (getpid() == owner) {
        note("signal", (uintptr_t)signal);
        const int has_address = info->si_code != SI_KERNEL; /* not where it is no address at all */
        if ((signal == SIGSEGV || signal == SIGBUS) && has_address) {
            note("address", (uintptr_t)info->si_addr);
        }
        if (!search_stack(context)) {
            note_frames(OF_SIGNAL, OF_SIGNAL);
        }
    }
    raise(signal); /* comes when this returns, and finds the default */
}

static void on_exit_called(void) {
    if (getpid() == owner) {
        note("exit", 0);
        note_frames(OF_EXIT, -1);
    }
}

__attribute__((constructor)) static void watch_ending(void) {
    const char* file = getenv("LAB_ENDING");
    setvbuf(stdout, NULL, _IONBF, 0);
    if (file == NULL) {
        return;
    }
    notes = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    owner = getpid();
    void* frame[1];
    backtrace(frame, 1);              /* the first call loads what the later ones need */
    static char own_stack[64 * 1024]; /* an endless recursion leaves no other */
    const stack_t stack = {.ss_sp = own_stack, .ss_size = sizeof own_stack};
    sigaltstack(&stack, NULL);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND;
    const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; ++i) {
        sigaction(fatal[i], &action, NULL);
    }
    atexit(on_exit_called);
}
