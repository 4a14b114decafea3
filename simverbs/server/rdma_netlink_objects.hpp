// The attributes of devices, ports and objects in answers of NETLINK_RDMA.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "simverbs/hca/hca.hpp"
#include "simverbs/server/rdma_netlink.hpp"

namespace simverbs {

struct NetlinkDevice {
    std::uint32_t index = 0;  // among the devices of the host
    const Hca* hca = nullptr;
};

// Nothing: the host has fewer devices.
std::optional<NetlinkDevice> find_device(const NetlinkHost& host, std::uint32_t index);

void put_handle(NetlinkMessage& message, const NetlinkDevice& device);
void put_device(NetlinkMessage& message, const NetlinkDevice& device);
void put_port(NetlinkMessage& message, const NetlinkDevice& device, std::uint32_t port);
void put_counters(NetlinkMessage& message, const NetlinkDevice& device, std::uint32_t port);
// How many objects of each kind there are.
void put_summary(NetlinkMessage& message, const NetlinkHost& host, const NetlinkDevice& device);

struct NetlinkObject {
    std::uint32_t number = 0;
    std::uint32_t port = 0;  // 0: not bound to one
    std::function<void(NetlinkMessage&)> put;
};

// A kind of objects: the command that asks for them, and the attributes of their table.
struct ObjectKind {
    const char* name;
    std::uint32_t command;
    std::uint16_t table;
    std::uint16_t entry;
    std::uint16_t number;  // the attribute that names one of them
    void (*visit)(const NetlinkHost&, const NetlinkDevice&,
                  const std::function<void(const NetlinkObject&)>&);
};

// nullptr: the command asks for no objects.
const ObjectKind* find_kind(std::uint32_t command);

}  // namespace simverbs
