// Which call makes an object and which one ends it.
#pragma once

#include <array>
#include <string_view>

namespace simverbs::lab {

struct ObjectKind {
    std::string_view name;
    std::string_view made_by;
    std::string_view ended_by;
};

// In the order in which they are to be made; they end the other way round.
inline constexpr auto kObjectKinds = std::to_array<ObjectKind>({
    {"device", "open_device", "close_device"},
    {"pd", "alloc_pd", "dealloc_pd"},
    {"mr", "reg_mr", "dereg_mr"},
    {"channel", "create_comp_channel", "destroy_comp_channel"},
    {"cq", "create_cq", "destroy_cq"},
    {"srq", "create_srq", "destroy_srq"},
    {"qp", "create_qp", "destroy_qp"},
    {"ah", "create_ah", "destroy_ah"},
});

}  // namespace simverbs::lab
