#include "fabric/core/assert.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace fabric {

namespace {
thread_local const ReplayContext* current_context = nullptr;
}

ReplayScope::ReplayScope(const ReplayContext& context) : previous_(current_context) {
    current_context = &context;
}

ReplayScope::~ReplayScope() {
    current_context = previous_;
}

namespace detail {

void assertion_failed(const AssertionSite& site, std::string_view explanation) {
    fmt::print(stderr, "simverbs: broken invariant: {}\n  {}\n  at {}:{}\n", site.condition,
               explanation, site.file, site.line);
    if (const ReplayContext* const context = std::exchange(current_context, nullptr)) {
        fmt::print(stderr, "  virtual time {} ps ({})", to_picoseconds(context->now()),
                   to_string(context->now()));
        if (context->node() != kNoNode) {
            fmt::print(stderr, ", node {}", context->node().value());
        }
        const std::string replay = context->replay_line();
        fmt::print(stderr, "\n{}{}{}", replay.empty() ? "" : "  replay: ", replay,
                   replay.empty() ? "" : "\n");
    }
    std::fflush(stderr);
    std::abort();
}

}  // namespace detail

}  // namespace fabric
