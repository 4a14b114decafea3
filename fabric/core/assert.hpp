// The assertion of the project: always on, for what must hold whatever a program or a packet does.
// It names what broke, the virtual time, the node and the line that replays the run, then aborts.
// Misuse by an application is an errno and a protocol fault is a table row: neither asserts.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "fabric/core/sim_time.hpp"
#include "fabric/core/strong_id.hpp"

namespace fabric {

// Facts about a run that an assertion tells when it breaks it. A world installs its own while it
// acts.
class ReplayContext {
  public:
    [[nodiscard]] virtual SimTime now() const = 0;
    [[nodiscard]] virtual NodeId node() const { return kNoNode; }
    [[nodiscard]] virtual std::string replay_line() const { return {}; }

  protected:
    ~ReplayContext() = default;
};

// Makes `context` the calling thread's for a scope; scopes nest.
class ReplayScope {
  public:
    explicit ReplayScope(const ReplayContext& context);
    ~ReplayScope();
    ReplayScope(const ReplayScope&) = delete;
    ReplayScope& operator=(const ReplayScope&) = delete;

  private:
    const ReplayContext* previous_;
};

namespace detail {
struct AssertionSite {
    std::string_view condition;
    std::string_view file;
    int line;
};
[[noreturn]] void assertion_failed(const AssertionSite& site, std::string_view explanation);

template <class... Args>
[[noreturn, gnu::cold, gnu::noinline]] void assertion_failed(const AssertionSite& site,
                                                             fmt::format_string<Args...> format,
                                                             Args&&... args) {
    assertion_failed(site, std::string_view(fmt::format(format, std::forward<Args>(args)...)));
}
}  // namespace detail

}  // namespace fabric

// SIMVERBS_ASSERT(condition, "explanation with {}", argument): the explanation is required, since
// the condition alone rarely says which promise was broken.
#define SIMVERBS_ASSERT(condition, ...)                                                        \
    do {                                                                                       \
        if (!(condition)) [[unlikely]] {                                                       \
            ::fabric::detail::assertion_failed(                                                \
                ::fabric::detail::AssertionSite{#condition, __FILE__, __LINE__}, __VA_ARGS__); \
        }                                                                                      \
    } while (false)
