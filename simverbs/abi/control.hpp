// The common part of the functions of simverbs.h: the world in the caller's turn, and the text for
// simverbs_last_error.
#pragma once

#include <cerrno>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "simverbs/abi/process.hpp"

namespace simverbs::abi {

// The last error of the calling thread.
std::string& last_error();

// Keeps the text for simverbs_last_error; returns `error`.
template <class... Args>
int fail(int error, fmt::format_string<Args...> format, Args&&... args) {
    last_error() = fmt::format(format, std::forward<Args>(args)...);
    return error;
}

inline int fail_without_world() {
    return fail(ENODEV,
                "no world in this process: it could not be made (the reason went to stderr), or "
                "the process is attached to a server's");
}

// The answer to a call that was given no place for its result.
inline int fail_without_place(const char* function) {
    return fail(EINVAL, "{}: there is no place for the result: NULL", function);
}

// Runs act(world) with the world held, in the caller's turn; what it returns is the answer.
template <class F>
int in_turn(F&& act) {
    driver::EmbeddedWorld* world = Process::current().embedded();
    if (world == nullptr) {
        return fail_without_world();
    }
    class Call final : public PendingCommand {
      public:
        Call(driver::EmbeddedWorld& world, F& act) : world_(world), act_(act) {}
        void run() override { error = act_(world_); }
        int error = 0;

      private:
        driver::EmbeddedWorld& world_;
        F& act_;
    };
    Call call(*world, act);
    world->conductor().execute(call);
    return call.error;
}

}  // namespace simverbs::abi
