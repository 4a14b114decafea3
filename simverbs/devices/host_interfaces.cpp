#include "simverbs/devices/host_interfaces.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <unistd.h>

#include "simverbs/devices/tree_path.hpp"
#include "simverbs/devices/world_connection.hpp"

namespace simverbs::devices {
namespace {

struct Interface {
    ifaddrs entry;
    sockaddr_in address;
    sockaddr_in netmask;
    sockaddr_in broadcast;
    char name[IFNAMSIZ];
};

// Marks the entries of ours as their data: addresses of IPv4 have none.
char g_mark;

bool is_ours(const ifaddrs* entry) {
    return entry->ifa_data == &g_mark;
}

sockaddr_in ipv4(in_addr_t address) {
    sockaddr_in made{};
    made.sin_family = AF_INET;
    made.sin_addr.s_addr = htonl(address);
    return made;
}

void fill(Interface& made, unsigned number, const HostAddressesReply::Address& own) {
    const in_addr_t hosts = own.prefix_bits >= 32 ? 0 : UINT32_MAX >> own.prefix_bits;
    made.address = ipv4(own.address);
    made.netmask = ipv4(~hosts);
    made.broadcast = ipv4(own.address | hosts);
    std::snprintf(made.name, sizeof made.name, "lo:%u", number);
    made.entry.ifa_name = made.name;
    made.entry.ifa_flags = IFF_UP | IFF_RUNNING | IFF_BROADCAST | IFF_MULTICAST;
    made.entry.ifa_addr = reinterpret_cast<sockaddr*>(&made.address);
    made.entry.ifa_netmask = reinterpret_cast<sockaddr*>(&made.netmask);
    made.entry.ifa_data = &g_mark;
    made.entry.ifa_broadaddr = reinterpret_cast<sockaddr*>(&made.broadcast);
}

bool ask_for_addresses(HostAddressesReply& reply) {
    if (placement().tree == nullptr) {
        return false;
    }
    int cancel_state = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    const int connection = connect_to_world();
    const bool known =
        connection >= 0 && ask(connection, {RequestKind::kHostAddresses, "", 0}, reply) == 0;
    if (connection >= 0) {
        close(connection);
    }
    pthread_setcancelstate(cancel_state, nullptr);
    return known && reply.count > 0 && reply.count <= HostAddressesReply::kMost;
}

}  // namespace

ifaddrs* make_interfaces() {
    const int error = errno;
    HostAddressesReply reply;
    Interface* made = nullptr;
    if (ask_for_addresses(reply)) {
        made = static_cast<Interface*>(calloc(reply.count, sizeof *made));
    }
    for (unsigned i = 0; made != nullptr && i < reply.count; ++i) {
        fill(made[i], i, reply.addresses[i]);
        made[i].entry.ifa_next = i + 1 < reply.count ? &made[i + 1].entry : nullptr;
    }
    errno = error;
    return made == nullptr ? nullptr : &made->entry;
}

ifaddrs* free_interfaces(ifaddrs* list) {
    ifaddrs** place = &list;
    while (*place != nullptr && !is_ours(*place)) {
        place = &(*place)->ifa_next;
    }
    free(*place);  // the others of ours are in one block with it
    *place = nullptr;
    return list;
}

}  // namespace simverbs::devices
