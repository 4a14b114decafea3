#include "tests/walk/walk.hpp"

#include <cerrno>

#include <fcntl.h>

#include "simverbs/simverbs.h"

namespace walk {
namespace {

constexpr std::uint32_t kStepsBetweenChecks = 64;
constexpr std::int64_t kSecond = 1'000'000'000'000;

void set_nonblocking(int descriptor) {
    require(fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0, "O_NONBLOCK");
}

void open(Host& host, ibv_device* device) {
    host.context = ibv_open_device(device);
    require(host.context != nullptr, "ibv_open_device");
    set_nonblocking(host.context->async_fd);
    require(ibv_query_port(host.context, 1, &host.port) == 0, "ibv_query_port");
    const int index = host.port.link_layer == IBV_LINK_LAYER_ETHERNET ? 3 : 0;
    require(ibv_query_gid(host.context, 1, index, &host.gid) == 0, "ibv_query_gid");
}

}  // namespace

Walk::Walk(std::uint64_t seed) : random_(seed) {
    ibv_device** devices = ibv_get_device_list(nullptr);
    require(devices != nullptr && devices[0] != nullptr && devices[1] != nullptr, "two devices");
    open(hosts_[0], devices[0]);
    open(hosts_[1], devices[1]);
    ibv_free_device_list(devices);
}

Walk::~Walk() {
    require(ibv_close_device(hosts_[0].context) == 0, "ibv_close_device");
    require(ibv_close_device(hosts_[1].context) == 0, "ibv_close_device");
}

void Walk::step() {
    Host& host = some_host();
    switch (random_.below(32)) {
        case 0:
        case 1:
            make_something(host);
            break;
        case 2:
            destroy_something(host);
            break;
        case 3:
            modify_at_random(host);
            break;
        case 4:
        case 5:
        case 10:
            connect();
            break;
        case 6:
            random_.one_in(4) ? fail_or_reset(host) : modify_shared(host);
            break;
        case 7:
            random_.one_in(8) ? disturb() : resize_completions(host);
            break;
        case 8:
            take_events(host);
            break;
        case 9:
            bind(host);
            break;
        case 11:
            random_.one_in(2) ? change_membership(host) : reregister(host);
            break;
        case 12:
            copy_memory(host);
            break;
        default:
            if (random_.one_in(3)) {
                post_receives(host);
            } else if (random_.one_in(2)) {
                post_sends(host);
            } else if (Completions* completions = any(host.completions)) {
                poll(host, *completions, static_cast<int>(random_.below(9)));
            }
    }
    if (random_.one_in(kStepsBetweenChecks)) {
        arena_.check();
    }
}

// Every queue pair to ERR; then what was posted has completed, unless its queue was overrun.
void Walk::finish() {
    for (Host& host : hosts_) {
        for (const auto& pair : host.pairs) {
            ibv_qp_attr attr{};
            attr.qp_state = IBV_QPS_ERR;
            require(ibv_modify_qp(pair->qp, &attr, IBV_QP_STATE) == 0, "to ERR from any state");
        }
    }
    drain();
    require(simverbs_advance_ps(kSecond) == 0, "simverbs_advance_ps");
    drain();
    for (Host& host : hosts_) {
        take_events(host);
        for (const auto& pair : host.pairs) {
            if (pair->send_cq != nullptr && !pair->send_cq->dead && pair->sends->due() != 0) {
                fail("QP " + std::to_string(pair->qp->qp_num) + " in ERR keeps " +
                     std::to_string(pair->sends->due()) + " sends");
            }
            if (pair->receive_cq != nullptr && !pair->receive_cq->dead &&
                pair->receives->due() != 0) {
                fail("QP " + std::to_string(pair->qp->qp_num) + " in ERR keeps " +
                     std::to_string(pair->receives->due()) + " receives");
            }
        }
    }
    arena_.check();
    destroy_everything(hosts_[0]);
    destroy_everything(hosts_[1]);
}

void Walk::drain() {
    for (Host& host : hosts_) {
        for (const auto& completions : host.completions) {
            poll(host, *completions, completions->cq->cqe);
        }
    }
}

void Walk::destroy_everything(Host& host) {
    const auto all = [&](auto& list, auto destroy) {
        while (!list.empty()) {
            const std::size_t before = list.size();
            (this->*destroy)(host, before - 1);
            require(list.size() < before, "nothing uses it, and yet it cannot be destroyed");
        }
    };
    all(host.pairs, &Walk::destroy_pair);
    all(host.windows, &Walk::destroy_window);
    all(host.shared, &Walk::destroy_shared);
    all(host.addresses, &Walk::destroy_address);
    all(host.completions, &Walk::destroy_completions);
    all(host.channels, &Walk::destroy_channel);
    all(host.regions, &Walk::destroy_region);
    all(host.memories, &Walk::destroy_memory);
    all(host.xrc_domains, &Walk::destroy_xrc_domain);
    all(host.domains, &Walk::destroy_domain);
}

}  // namespace walk
