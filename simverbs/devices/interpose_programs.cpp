// The functions of libc that start a program: see program_environment.hpp.
#include <cstdarg>
#include <cstddef>

#include <alloca.h>
#include <spawn.h>
#include <unistd.h>

#include "simverbs/devices/next_function.hpp"
#include "simverbs/devices/program_environment.hpp"

using simverbs::devices::next;
using simverbs::devices::ProgramEnvironment;

namespace {

using Execute = int(const char*, char* const*, char* const*);
using Spawn = int(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                  char* const*, char* const*);

// Looked up when the program begins: in a child of fork(2) another thread may have had the lock of
// dlsym(3).
struct Originals {
    Execute* execute = next<Execute>("execve");
    Execute* search = next<Execute>("execvpe");
    Spawn* spawn = next<Spawn>("posix_spawn");
    Spawn* search_and_spawn = next<Spawn>("posix_spawnp");
};

__attribute__((constructor)) const Originals& originals() {
    static const Originals kOriginals;
    return kOriginals;
}

int execute(Execute* original, const char* file, char* const* arguments, char* const* given) {
    const ProgramEnvironment environment(given);
    return original(file, arguments, environment.get());
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): `rest` and `arguments` are names
// The arguments that follow `first`, up to a null pointer, as an array on the caller's stack.
#define COLLECT(first, rest, arguments)                                                \
    std::size_t count = 1;                                                             \
    va_start(rest, first);                                                             \
    while (va_arg(rest, const char*) != nullptr) {                                     \
        ++count;                                                                       \
    }                                                                                  \
    va_end(rest);                                                                      \
    auto** const arguments = static_cast<char**>(alloca((count + 1) * sizeof(char*))); \
    arguments[0] = const_cast<char*>(first);                                           \
    va_start(rest, first);                                                             \
    for (std::size_t i = 1; i <= count; ++i) {                                         \
        arguments[i] = va_arg(rest, char*);                                            \
    }
// NOLINTEND(bugprone-macro-parentheses)

INTERPOSED int execve(const char* file, char* const* arguments, char* const* variables) {
    return execute(originals().execute, file, arguments, variables);
}
INTERPOSED int execvpe(const char* file, char* const* arguments, char* const* variables) {
    return execute(originals().search, file, arguments, variables);
}
INTERPOSED int execv(const char* file, char* const* arguments) {
    return execute(originals().execute, file, arguments, environ);
}
INTERPOSED int execvp(const char* file, char* const* arguments) {
    return execute(originals().search, file, arguments, environ);
}
INTERPOSED int execl(const char* file, const char* first, ...) {
    va_list rest;
    COLLECT(first, rest, arguments)
    va_end(rest);
    return execute(originals().execute, file, arguments, environ);
}
INTERPOSED int execlp(const char* file, const char* first, ...) {
    va_list rest;
    COLLECT(first, rest, arguments)
    va_end(rest);
    return execute(originals().search, file, arguments, environ);
}
INTERPOSED int execle(const char* file, const char* first, ...) {
    va_list rest;
    COLLECT(first, rest, arguments)
    char* const* const variables = va_arg(rest, char* const*);
    va_end(rest);
    return execute(originals().execute, file, arguments, variables);
}

#define SPAWN(function, original)                                                          \
    INTERPOSED int function(                                                               \
        pid_t* process, const char* file, const posix_spawn_file_actions_t* actions,       \
        const posix_spawnattr_t* attributes, char* const* arguments, char* const* given) { \
        const ProgramEnvironment environment(given);                                       \
        return originals().original(process, file, actions, attributes, arguments,         \
                                    environment.get());                                    \
    }
SPAWN(posix_spawn, spawn)
SPAWN(posix_spawnp, search_and_spawn)
