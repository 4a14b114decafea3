// All commands, in the order of their codes.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "simverbs/hca/command.hpp"

namespace simverbs {

template <Command... C>
struct CommandList {
    static constexpr std::size_t kCount = sizeof...(C);

    // Returns the results of `f`, called with std::type_identity of each command, in this order.
    template <class F>
    static constexpr auto map(F&& f) {
        return std::to_array({f(std::type_identity<C>{})...});
    }
};

using Commands =
    CommandList<OpenContext, CloseContext, AllocatePd, DeallocatePd, RegisterMr, DeregisterMr,
                ReregisterMr, AllocateNullMr, AdviseMr, AllocateDm, FreeDm, RegisterDmMr,
                AllocateMw, DeallocateMw, CreateChannel, DestroyChannel, CreateCq, DestroyCq,
                ResizeCq, CreateQp, ModifyQp, QueryQp, DestroyQp, QueryPort, QueryGid, QueryPkey,
                CreateAh, DestroyAh, AttachMulticast, DetachMulticast, CreateSrq, ModifySrq,
                QuerySrq, DestroySrq, OpenXrcd, CloseXrcd, OpenQp, ModifyCq, QueryClock, QueryPd,
                QueryMr, ReportMisuse, ResolveEthernet, CreateFlow, DestroyFlow, CreateWq, ModifyWq,
                DestroyWq, CreateIndirectionTable, DestroyIndirectionTable, CreateCounters,
                DestroyCounters, AttachCounters, ReadCounters, CreateCompletionCounter,
                DestroyCompletionCounter, SetCompletionCounter, IncrementCompletionCounter,
                AttachCompletionCounter, AskToPostSend, AskToPostReceive, AskToPostSrqReceive,
                AskToPostWqReceive, AskForPoll>;

static_assert(Commands::kCount == kCommandNames.size());
static_assert([] {
    const auto codes = Commands::map([](auto type) { return decltype(type)::type::kCode; });
    return std::equal(codes.begin(), codes.end(), kCommandNames.begin(),
                      [](CommandCode code, const CommandName& row) { return code == row.code; });
}());

}  // namespace simverbs
