// Says what still uses an object that cannot be destroyed (EBUSY): how many objects, and the first
// few of them. It looks through what the context has made, so that objects keep no lists for it.
#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

#include "fabric/core/counted.hpp"

#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"

namespace simverbs {
namespace {

// "2 objects: MR 0x101, QP 0x10001".
class Users {
  public:
    void add(std::string_view kind, std::uint32_t number) {
        constexpr std::uint32_t kMostNamed = 3;
        if (count_ < kMostNamed) {
            named_ += fmt::format("{}{} {:#x}", count_ == 0 ? "" : ", ", kind, number);
        } else if (count_ == kMostNamed) {
            named_ += ", ...";
        }
        ++count_;
    }
    [[nodiscard]] std::string describe() const {
        return fmt::format("{}: {}", fabric::counted(count_, "object"), named_);
    }

  private:
    std::uint32_t count_ = 0;
    std::string named_;
};

// Adds those of a map of objects by their handles for which uses(object) is true.
template <class T, class F>
void add_where(Users& users, std::string_view kind, const T& objects, F&& uses) {
    for (const auto& [handle, object] : objects) {
        if (uses(*object)) {
            users.add(kind, handle);
        }
    }
}

}  // namespace

int DeviceContext::refuse_use(const ProtectionDomain& pd) const {
    const auto is_in = [&pd](const auto& object) { return object.pd == &pd; };
    const auto was_made_in = [&pd](const auto& object) { return &object.pd() == &pd; };
    Users users;
    for (const auto& [handle, region] : regions_) {
        if (is_in(*region)) {
            users.add("MR with lkey", region->lkey);
        }
    }
    add_where(users, "MW", windows_, is_in);
    for (const QueuePair& qp : qps_) {
        if (qp.pd() == &pd) {
            users.add("QP", qp.qpn());
        }
    }
    add_where(users, "SRQ", srqs_, was_made_in);
    add_where(users, "WQ", wqs_, was_made_in);
    for (const auto& [handle, address] : addresses_) {
        if (is_in(address)) {
            users.add("AH", handle);
        }
    }
    return refuse(EBUSY, "PD {:#x} is used by {}", pd.handle, users.describe());
}

int DeviceContext::refuse_use(const CompletionChannel& channel) const {
    Users users;
    add_where(users, "CQ", cqs_,
              [&channel](const CompletionQueue& cq) { return cq.channel() == &channel; });
    return refuse(EBUSY, "completion channel {:#x} is used by {}", channel.handle,
                  users.describe());
}

int DeviceContext::refuse_use(const CompletionQueue& cq) const {
    Users users;
    const QueuePair* last = nullptr;  // twice where both queues of it complete here
    for (const QueuePair* const qp : cq.users()) {
        if (qp != last) {
            users.add("QP", qp->qpn());
        }
        last = qp;
    }
    for (const ReceiveWorkQueue* const wq : cq.work_queues()) {
        users.add("WQ", wq->number());
    }
    add_where(users, "SRQ", srqs_,
              [&cq](const SharedReceiveQueue& srq) { return srq.cq() == &cq; });
    return refuse(EBUSY, "CQ {:#x} is used by {}", cq.handle(), users.describe());
}

int DeviceContext::refuse_use(const SharedReceiveQueue& srq) const {
    Users users;
    for (const QueuePair* const qp : srq.users()) {
        users.add("QP", qp->qpn());
    }
    return refuse(EBUSY, "SRQ {:#x} is used by {}", srq.number(), users.describe());
}

int DeviceContext::refuse_use(const QueuePair& qp) const {
    Users users;
    add_where(users, "flow rule", flows_, [&qp](const FlowRule& rule) { return rule.qp == &qp; });
    const std::size_t groups = hca_.multicast().groups_of(qp);
    if (groups > 0) {
        return refuse(EBUSY, "QP {:#x} is attached to {}: ibv_detach_mcast() it first", qp.qpn(),
                      fabric::counted(groups, "multicast group"));
    }
    return refuse(EBUSY, "QP {:#x} is used by {}", qp.qpn(), users.describe());
}

int DeviceContext::refuse_use(const ReceiveWorkQueue& wq) const {
    Users users;
    add_where(users, "indirection table", tables_, [&wq](const IndirectionTable& table) {
        return std::ranges::count(table.queues, &wq) > 0;
    });
    return refuse(EBUSY, "WQ {:#x} is used by {}", wq.number(), users.describe());
}

// Shared receive queues, queue pairs that this context made, and those that it opened.
int DeviceContext::refuse_use(std::uint32_t number, const OpenedXrcDomain& xrcd) const {
    Users users;
    add_where(users, "SRQ", srqs_,
              [&xrcd](const SharedReceiveQueue& srq) { return srq.opened_domain() == &xrcd; });
    for (const QueuePair& qp : qps_) {
        if (qp.opened_domain() == &xrcd) {
            users.add("QP", qp.qpn());
        }
    }
    for (const auto& [handle, qp] : opened_qps_) {
        const auto openings = qp->openings();
        const bool is_here =
            std::ranges::any_of(openings, [this, &xrcd, number = handle](const QpOpening& opening) {
                return opening.context == this && opening.handle == number && opening.xrcd == &xrcd;
            });
        if (is_here) {
            users.add("opened QP", qp->qpn());
        }
    }
    return refuse(EBUSY, "XRC domain {:#x} is used by {}", number, users.describe());
}

int DeviceContext::refuse_use(std::uint32_t number, const IndirectionTable& table) const {
    Users users;
    for (const QueuePair& qp : qps_) {
        if (qp.spreads_by(table)) {
            users.add("QP", qp.qpn());
        }
    }
    return refuse(EBUSY, "indirection table {:#x} is used by {}", number, users.describe());
}

int DeviceContext::refuse_use(std::uint32_t number, const DeviceMemory& memory) const {
    Users users;
    for (const auto& [handle, region] : regions_) {
        if (region->device_memory == &memory) {
            users.add("MR with lkey", region->lkey);
        }
    }
    return refuse(EBUSY, "device memory {:#x} is used by {}", number, users.describe());
}

int DeviceContext::refuse_use(std::uint32_t number, const CounterSet& counters) const {
    Users users;
    add_where(users, "flow rule", flows_,
              [&counters](const FlowRule& rule) { return rule.counters == &counters; });
    return refuse(EBUSY, "counters {:#x} are used by {}", number, users.describe());
}

int DeviceContext::refuse_use(std::uint32_t number, const CompletionCounter& counter) const {
    Users users;
    for (const QueuePair& qp : qps_) {
        if (qp.counts_on(counter)) {
            users.add("QP", qp.qpn());
        }
    }
    return refuse(EBUSY, "completion counter {:#x} is used by {}", number, users.describe());
}

int DeviceContext::refuse_use(const MemoryRegion& region) const {
    Users users;
    add_where(users, "bound MW", windows_,
              [&region](const MemoryWindow& window) { return window.region == &region; });
    return refuse(hca_.personality().dereg_of_bound_mr_errno, "MR with lkey {:#x} is used by {}",
                  region.lkey, users.describe());
}

}  // namespace simverbs
