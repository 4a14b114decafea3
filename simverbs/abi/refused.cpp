// Every function of the ABI that is not modelled yet, or never will be: it answers as a device
// without the feature does, and with SIMVERBS_WARN=1 each is named once on stderr. The rows come
// from symbols.list: to model one, change its row there to `own` and write it.
#include <atomic>
#include <cerrno>

#include "simverbs/abi/export.hpp"
#include "simverbs/abi/warnings.hpp"

namespace {

void refuse(std::atomic_flag& named, const char* symbol) {
    simverbs::abi::name_refusal(named, symbol);
}

}  // namespace

// A caller passes arguments that these do not read; both calling conventions that have a trampoline
// leave them to the caller to clean up.
// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are names
#define SIMVERBS_REFUSE_ERRNO(function, symbol) \
    SIMVERBS_ABI int function() {               \
        static std::atomic_flag named;          \
        refuse(named, symbol);                  \
        return EOPNOTSUPP;                      \
    }
#define SIMVERBS_REFUSE_NULL(function, symbol) \
    SIMVERBS_ABI void* function() {            \
        static std::atomic_flag named;         \
        refuse(named, symbol);                 \
        return nullptr;                        \
    }
#define SIMVERBS_REFUSE_MINUS(function, symbol) \
    SIMVERBS_ABI int function() {               \
        static std::atomic_flag named;          \
        refuse(named, symbol);                  \
        return -1;                              \
    }
#define SIMVERBS_IGNORE(function, symbol) \
    SIMVERBS_ABI void function() {}
// NOLINTEND(bugprone-macro-parentheses)

#include "simverbs/abi/refusals.inc"
