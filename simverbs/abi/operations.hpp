// The functions behind the pointers that a context carries for the inline functions of verbs.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include <infiniband/verbs.h>

#include "simverbs/abi/objects.hpp"
#include "simverbs/model/limits.hpp"

namespace simverbs::abi {

// What a device may say of itself: the features that exist behind these functions.
inline constexpr DeviceCaps kModelledCaps =
    DeviceCaps(DeviceCap::kBadPkeyCntr) | DeviceCap::kCurrQpStateMod | DeviceCap::kPortActiveEvent |
    DeviceCap::kSysImageGuid | DeviceCap::kRcRnrNakGen;

void set_operations(Context& context);

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr, std::size_t size);
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t size);
int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr);
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);
int poll_cq(ibv_cq* cq, int num_entries, ibv_wc* wc);
int req_notify_cq(ibv_cq* cq, int solicited_only);

}  // namespace simverbs::abi
