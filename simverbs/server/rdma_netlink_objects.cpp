#include "simverbs/server/rdma_netlink_objects.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <rdma/rdma_netlink.h>

#include "fabric/net/port.hpp"

#include "simverbs/hca/completion_queue.hpp"
#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/memory_region.hpp"
#include "simverbs/hca/queue_pair.hpp"
#include "simverbs/hca/shared_receive_queue.hpp"
#include "simverbs/model/hw_counters.hpp"
#include "simverbs/server/remote_client.hpp"
#include "simverbs/world/counter_files.hpp"

namespace simverbs {
namespace {

using Visitor = std::function<void(const NetlinkObject&)>;

constexpr std::uint8_t kNodeTypeCa = 1;  // RDMA_NODE_IB_CA
constexpr std::uint32_t kLoopback = 1;   // the interface that carries addresses of hosts

bool is_infiniband(const fabric::Port& port) {
    return port.attributes().link_layer == fabric::LinkLayer::kInfiniband;
}

// The values of enum ib_qp_type.
std::uint8_t type_of(Service service) {
    switch (service) {
        case Service::kRc:
            return 2;
        case Service::kUc:
            return 3;
        case Service::kUd:
            return 4;
        case Service::kRawPacket:
            return 8;
        case Service::kXrcIni:
            return 9;
        case Service::kXrcTgt:
            return 10;
    }
    return 0;
}

void put_process(NetlinkMessage& message, const DeviceContext& context) {
    const auto* const client = dynamic_cast<const RemoteClient*>(&context.client());
    if (client != nullptr) {
        message.put32(RDMA_NLDEV_ATTR_RES_PID, static_cast<std::uint32_t>(client->process()));
    }
}

// Numbers of objects of contexts count from 1 in each; these tell them apart on a device.
std::uint32_t number_on_device(const DeviceContext& context, std::uint32_t handle) {
    constexpr int kContextShift = 16;
    return context.handle() << kContextShift | (handle & 0xFFFF);
}

void put_queue_pair(NetlinkMessage& message, const QueuePair& qp) {
    const QpAttributes& attributes = qp.attributes();
    const QpValues values = qp.query().values;
    const bool has_peer = attributes.service == Service::kRc || attributes.service == Service::kUc;
    if (values.port != 0) {
        message.put32(RDMA_NLDEV_ATTR_PORT_INDEX, values.port);
    }
    message.put32(RDMA_NLDEV_ATTR_RES_LQPN, qp.qpn());
    if (qp.pd() != nullptr) {
        message.put32(RDMA_NLDEV_ATTR_RES_PDN, number_on_device(qp.context(), qp.pd()->handle));
    }
    if (has_peer) {
        message.put32(RDMA_NLDEV_ATTR_RES_RQPN, values.dest_qpn);
        message.put32(RDMA_NLDEV_ATTR_RES_RQ_PSN, values.rq_psn);
    }
    message.put32(RDMA_NLDEV_ATTR_RES_SQ_PSN, values.sq_psn);
    if (kConnectedServices.contains(attributes.service)) {
        message.put8(RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE,
                     static_cast<std::uint8_t>(values.path_mig_state));
    }
    message.put8(RDMA_NLDEV_ATTR_RES_TYPE, type_of(attributes.service));
    message.put8(RDMA_NLDEV_ATTR_RES_STATE, static_cast<std::uint8_t>(values.state));
    put_process(message, qp.context());
}

void visit_queue_pairs(const NetlinkHost& /*host*/, const NetlinkDevice& device,
                       const Visitor& visit) {
    device.hca->for_each_qp([&visit](const QueuePair& qp) {
        if (!qp.spreads_frames()) {
            visit({qp.qpn(), qp.query().values.port,
                   [&qp](NetlinkMessage& message) { put_queue_pair(message, qp); }});
        }
    });
}

void visit_contexts(const NetlinkHost& /*host*/, const NetlinkDevice& device,
                    const Visitor& visit) {
    device.hca->for_each_context([&visit](const DeviceContext& context) {
        visit({context.handle(), 0, [&context](NetlinkMessage& message) {
                   message.put32(RDMA_NLDEV_ATTR_RES_CTXN, context.handle());
                   put_process(message, context);
               }});
    });
}

void visit_completion_queues(const NetlinkHost& /*host*/, const NetlinkDevice& device,
                             const Visitor& visit) {
    device.hca->for_each_context([&visit](const DeviceContext& context) {
        context.for_each_cq([&](const CompletionQueue& cq) {
            const std::uint32_t number = number_on_device(context, cq.handle());
            visit({number, 0, [&context, &cq, number](NetlinkMessage& message) {
                       message.put32(RDMA_NLDEV_ATTR_RES_CQE, cq.entries());
                       message.put64(RDMA_NLDEV_ATTR_RES_USECNT,
                                     cq.users().size() + cq.work_queues().size());
                       message.put32(RDMA_NLDEV_ATTR_RES_CQN, number);
                       message.put32(RDMA_NLDEV_ATTR_RES_CTXN, context.handle());
                       put_process(message, context);
                   }});
        });
    });
}

void visit_regions(const NetlinkHost& /*host*/, const NetlinkDevice& device, const Visitor& visit) {
    device.hca->for_each_context([&visit](const DeviceContext& context) {
        context.for_each_region([&](const MemoryRegion& region) {
            visit({region.handle, 0, [&context, &region](NetlinkMessage& message) {
                       message.put32(RDMA_NLDEV_ATTR_RES_RKEY, region.rkey);
                       message.put32(RDMA_NLDEV_ATTR_RES_LKEY, region.lkey);
                       message.put64(RDMA_NLDEV_ATTR_RES_IOVA, region.iova);
                       message.put64(RDMA_NLDEV_ATTR_RES_MRLEN, region.length);
                       message.put32(RDMA_NLDEV_ATTR_RES_MRN, region.handle);
                       message.put32(RDMA_NLDEV_ATTR_RES_PDN,
                                     number_on_device(context, region.pd->handle));
                       put_process(message, context);
                   }});
        });
    });
}

void visit_protection_domains(const NetlinkHost& /*host*/, const NetlinkDevice& device,
                              const Visitor& visit) {
    device.hca->for_each_context([&visit](const DeviceContext& context) {
        context.for_each_pd([&](const ProtectionDomain& pd) {
            const std::uint32_t number = number_on_device(context, pd.handle);
            visit({number, 0, [&context, &pd, number](NetlinkMessage& message) {
                       message.put64(RDMA_NLDEV_ATTR_RES_USECNT, pd.uses);
                       message.put32(RDMA_NLDEV_ATTR_RES_PDN, number);
                       message.put32(RDMA_NLDEV_ATTR_RES_CTXN, context.handle());
                       put_process(message, context);
                   }});
        });
    });
}

// The queue pairs that receive from it: numbers that follow each other are one range.
void put_users(NetlinkMessage& message, const SharedReceiveQueue& srq) {
    constexpr std::size_t kMostRanges = 16;  // more have no room in a message
    std::vector<std::uint32_t> numbers;
    for (const QueuePair* const qp : srq.users()) {
        numbers.push_back(qp->qpn());
    }
    std::sort(numbers.begin(), numbers.end());
    nlattr* const table = message.open(RDMA_NLDEV_ATTR_RES_QP);
    std::size_t ranges = 0;
    for (auto first = numbers.begin(); first != numbers.end() && ranges < kMostRanges; ++ranges) {
        auto last = first;
        while (last + 1 != numbers.end() && *(last + 1) == *last + 1) {
            ++last;
        }
        nlattr* const entry = message.open(RDMA_NLDEV_ATTR_RES_QP_ENTRY);
        if (first == last) {
            message.put32(RDMA_NLDEV_ATTR_RES_LQPN, *first);
        } else {
            message.put32(RDMA_NLDEV_ATTR_MIN_RANGE, *first);
            message.put32(RDMA_NLDEV_ATTR_MAX_RANGE, *last);
        }
        message.close(entry);
        first = last + 1;
    }
    message.close(table);
}

void visit_shared_queues(const NetlinkHost& /*host*/, const NetlinkDevice& device,
                         const Visitor& visit) {
    device.hca->for_each_context([&visit](const DeviceContext& context) {
        context.for_each_srq([&](const SharedReceiveQueue& srq) {
            visit({srq.number(), 0, [&context, &srq](NetlinkMessage& message) {
                       constexpr std::uint8_t kBasic = 0;
                       constexpr std::uint8_t kXrc = 1;
                       constexpr std::uint8_t kTagMatching = 2;
                       const bool is_xrc = srq.domain() != nullptr;
                       message.put32(RDMA_NLDEV_ATTR_RES_SRQN, srq.number());
                       message.put8(RDMA_NLDEV_ATTR_RES_TYPE, is_xrc                  ? kXrc
                                                              : srq.tags() != nullptr ? kTagMatching
                                                                                      : kBasic);
                       message.put32(RDMA_NLDEV_ATTR_RES_PDN,
                                     number_on_device(context, srq.pd().handle));
                       if (srq.cq() != nullptr) {
                           message.put32(RDMA_NLDEV_ATTR_RES_CQN,
                                         number_on_device(context, srq.cq()->handle()));
                       }
                       put_users(message, srq);
                       put_process(message, context);
                   }});
        });
    });
}

void put_address(NetlinkMessage& message, std::uint16_t attribute,
                 const rdma_cm::SocketAddress& address) {
    if (address.family() != rdma_cm::AddressFamily::kNone) {
        message.put_bytes(attribute, address.bytes());
    }
}

// An id belongs to the device that it is bound to; a listener for all devices is with the first.
void visit_ids(const NetlinkHost& host, const NetlinkDevice& device, const Visitor& visit) {
    for (const IdOfProcess& one : host.ids) {
        const rdma_cm::RdmaId& id = *one.id;
        const auto& local = id.local();
        if (local ? local->device.value() != device.index : device.index != 0) {
            continue;
        }
        const std::uint32_t port = local ? local->port.value() : 0;
        visit({one.number, port, [&id, &one, port](NetlinkMessage& message) {
                   if (port != 0) {
                       message.put32(RDMA_NLDEV_ATTR_PORT_INDEX, port);
                   }
                   message.put32(RDMA_NLDEV_ATTR_RES_PS, static_cast<std::uint32_t>(id.space()));
                   message.put8(RDMA_NLDEV_ATTR_RES_STATE, static_cast<std::uint8_t>(id.state()));
                   put_address(message, RDMA_NLDEV_ATTR_RES_SRC_ADDR, id.source());
                   put_address(message, RDMA_NLDEV_ATTR_RES_DST_ADDR, id.destination());
                   message.put32(RDMA_NLDEV_ATTR_RES_CM_IDN, one.number);
                   message.put32(RDMA_NLDEV_ATTR_RES_PID, static_cast<std::uint32_t>(one.process));
               }});
    }
}

constexpr auto kKinds = std::to_array<ObjectKind>({
    {"pd", RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PD_ENTRY,
     RDMA_NLDEV_ATTR_RES_PDN, visit_protection_domains},
    {"cq", RDMA_NLDEV_CMD_RES_CQ_GET, RDMA_NLDEV_ATTR_RES_CQ, RDMA_NLDEV_ATTR_RES_CQ_ENTRY,
     RDMA_NLDEV_ATTR_RES_CQN, visit_completion_queues},
    {"qp", RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY,
     RDMA_NLDEV_ATTR_RES_LQPN, visit_queue_pairs},
    {"cm_id", RDMA_NLDEV_CMD_RES_CM_ID_GET, RDMA_NLDEV_ATTR_RES_CM_ID,
     RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY, RDMA_NLDEV_ATTR_RES_CM_IDN, visit_ids},
    {"mr", RDMA_NLDEV_CMD_RES_MR_GET, RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY,
     RDMA_NLDEV_ATTR_RES_MRN, visit_regions},
    {"ctx", RDMA_NLDEV_CMD_RES_CTX_GET, RDMA_NLDEV_ATTR_RES_CTX, RDMA_NLDEV_ATTR_RES_CTX_ENTRY,
     RDMA_NLDEV_ATTR_RES_CTXN, visit_contexts},
    {"srq", RDMA_NLDEV_CMD_RES_SRQ_GET, RDMA_NLDEV_ATTR_RES_SRQ, RDMA_NLDEV_ATTR_RES_SRQ_ENTRY,
     RDMA_NLDEV_ATTR_RES_SRQN, visit_shared_queues},
});

}  // namespace

std::optional<NetlinkDevice> find_device(const NetlinkHost& host, std::uint32_t index) {
    return index < host.hcas.size()
               ? std::optional(NetlinkDevice{index, &host.simulation.hca(host.hcas[index])})
               : std::nullopt;
}

const ObjectKind* find_kind(std::uint32_t command) {
    const auto* const found =
        std::find_if(kKinds.begin(), kKinds.end(),
                     [command](const ObjectKind& kind) { return kind.command == command; });
    return found == kKinds.end() ? nullptr : found;
}

void put_handle(NetlinkMessage& message, const NetlinkDevice& device) {
    message.put32(RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
    message.put_text(RDMA_NLDEV_ATTR_DEV_NAME, fmt::format("simverbs{}", device.index));
}

void put_device(NetlinkMessage& message, const NetlinkDevice& device) {
    const Hca& hca = *device.hca;
    put_handle(message, device);
    message.put32(RDMA_NLDEV_ATTR_PORT_INDEX, hca.port_count());
    message.put64(RDMA_NLDEV_ATTR_CAP_FLAGS, (hca.personality().limits.caps & kModelledCaps).bits);
    const std::string firmware(hca.personality().identity.firmware);
    if (!firmware.empty()) {
        message.put_text(RDMA_NLDEV_ATTR_FW_VERSION, firmware);
    }
    message.put64(RDMA_NLDEV_ATTR_NODE_GUID, hca.guid().value());
    message.put64(RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, hca.guid().value());
    message.put8(RDMA_NLDEV_ATTR_DEV_NODE_TYPE, kNodeTypeCa);
    message.put_text(RDMA_NLDEV_ATTR_DEV_PROTOCOL, is_infiniband(hca.port(1)) ? "ib" : "roce");
}

void put_port(NetlinkMessage& message, const NetlinkDevice& device, std::uint32_t number) {
    const Hca& hca = *device.hca;
    const fabric::Port& port = hca.port(number);
    const fabric::PortAttributes& attributes = port.attributes();
    put_handle(message, device);
    message.put32(RDMA_NLDEV_ATTR_PORT_INDEX, number);
    if (is_infiniband(port)) {
        const PortCaps caps = hca.personality().limits.port.infiniband_caps;
        const PortCaps of_manager = hca.carries_sm(number) ? PortCaps(PortCap::kSm) : PortCaps();
        message.put64(RDMA_NLDEV_ATTR_CAP_FLAGS, (caps | of_manager).bits);
        message.put64(RDMA_NLDEV_ATTR_SUBNET_PREFIX,
                      attributes.gids.empty() ? 0 : attributes.gids.front().gid.subnet_prefix());
        message.put32(RDMA_NLDEV_ATTR_LID, attributes.lid.value());
        message.put32(RDMA_NLDEV_ATTR_SM_LID, attributes.sm_lid.value());
        message.put8(RDMA_NLDEV_ATTR_LMC, attributes.lmc);
    }
    message.put8(RDMA_NLDEV_ATTR_PORT_STATE, static_cast<std::uint8_t>(port.state()));
    message.put8(RDMA_NLDEV_ATTR_PORT_PHYS_STATE, static_cast<std::uint8_t>(port.physical_state()));
    if (!is_infiniband(port)) {
        message.put32(RDMA_NLDEV_ATTR_NDEV_INDEX, kLoopback);
        message.put_text(RDMA_NLDEV_ATTR_NDEV_NAME, "lo");
    }
}

void put_counters(NetlinkMessage& message, const NetlinkDevice& device, std::uint32_t port) {
    const HwCounters& counters = device.hca->hw_counters(port);
    const auto put = [&message](std::string_view name, std::uint64_t value) {
        nlattr* const entry = message.open(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
        message.put_text(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, std::string(name));
        message.put64(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, value);
        message.close(entry);
    };
    nlattr* const table = message.open(RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
    if (device.hca->personality().identity.hca_type.empty()) {  // Soft-RoCE
        for (const SoftRoceCounterFile& row : kSoftRoceCounterFiles) {
            put(row.name, row.value(device.hca->port(port).counters(), counters));
        }
    } else {
        for (const HwCounterRow& row : kHwCounters) {
            put(row.name, counters.value(row.counter));
        }
    }
    message.close(table);
}

void put_summary(NetlinkMessage& message, const NetlinkHost& host, const NetlinkDevice& device) {
    put_handle(message, device);
    nlattr* const table = message.open(RDMA_NLDEV_ATTR_RES_SUMMARY);
    for (const ObjectKind& kind : kKinds) {
        std::uint64_t count = 0;
        kind.visit(host, device, [&count](const NetlinkObject& /*object*/) { ++count; });
        nlattr* const entry = message.open(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
        message.put_text(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, kind.name);
        message.put64(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, count);
        message.close(entry);
    }
    message.close(table);
}

}  // namespace simverbs
