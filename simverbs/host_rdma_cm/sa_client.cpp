#include "simverbs/host_rdma_cm/sa_client.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/mad/datagram_address.hpp"
#include "fabric/net/node.hpp"

namespace simverbs::rdma_cm {

namespace mad = fabric::mad;

namespace {

constexpr std::uint16_t kDefaultPkey = 0xFFFF;
// As ib_sa divides the time that a query is given (nmbr_sa_query_retries).
constexpr std::uint32_t kRetries = 10;

}  // namespace

SaClient::SaClient(fabric::ManagementPort& port, fabric::EventLoop& loop, SaUser& user)
    : port_(port),
      user_(user),
      agent_(port.register_agent({.makes_transaction_ids = true}, *this)),
      not_sent_timer_(
          loop,
          fabric::EventKey(fabric::EventClass::kTimer, port.port().node().id(),
                           fabric::PortNumber(kSaClientKey), port.port().number().value()),
          *this) {
    SIMVERBS_ASSERT(agent_, "port {} of {} has no room for an agent", port.port().number().value(),
                    port.port().node().name());
}

SaClient::~SaClient() {
    port_.unregister_agent(*agent_);
}

void SaClient::ask(std::uint64_t token, const SaQuery& query) {
    SIMVERBS_ASSERT(query.record.size() <= mad::sa::kDataBytes, "a record of {} bytes",
                    query.record.size());
    const fabric::PortAttributes& own = port_.port().attributes();
    mad::Datagram datagram;
    datagram.set(mad::header::kBaseVersion, 1);
    datagram.set(mad::header::kClass, static_cast<std::uint64_t>(mad::Class::kSubnAdm));
    datagram.set(mad::header::kClassVersion, 2);
    datagram.set(mad::header::kMethod, static_cast<std::uint64_t>(query.method));
    datagram.set(mad::header::kTransactionId,
                 std::uint64_t{agent_->value()} << 32 | ++last_transaction_);
    datagram.set(mad::header::kAttributeId, static_cast<std::uint64_t>(query.attribute));
    datagram.set(mad::sa::kComponentMask, query.mask);
    std::ranges::copy(query.record, datagram.from(mad::sa::kDataOffset).begin());
    const fabric::DatagramAddress to{
        .lid = own.sm_lid,
        .qp = fabric::kGeneralServicesQp,
        .qkey = fabric::kWellKnownQkey,
        .sl = own.sm_sl,
        .pkey_index = fabric::index_of_pkey(own, kDefaultPkey).value_or(std::uint16_t{0})};
    constexpr fabric::SimDuration kLeast = std::chrono::milliseconds(1);
    const int error = port_.send(*agent_, {.bytes = datagram.bytes,
                                           .to = to,
                                           .timeout = std::max(query.timeout / kRetries, kLeast),
                                           .retries = kRetries,
                                           .token = token});
    asked_.insert(token);
    if (error != 0) {
        not_sent_.push_back(token);
        not_sent_timer_.arm_in(query.timeout);
    }
}

void SaClient::datagram_received(const fabric::ReceivedDatagram& received) {
    if (!received.answers) {
        return;
    }
    const bool is_good = mad::get(received.bytes, mad::header::kStatus) == 0;
    report(received.token, is_good ? 0 : EINVAL, received.bytes.subspan(mad::sa::kDataOffset));
}

void SaClient::send_finished(const fabric::FinishedSend& send) {
    if (send.outcome == fabric::SendOutcome::kTimedOut) {
        report(send.token, ETIMEDOUT, {});
    }
}

// A datagram that the port could not send is lost as on the wire.
void SaClient::handle(const fabric::Event& /*event*/) {
    for (const std::uint64_t token : std::exchange(not_sent_, {})) {
        report(token, ETIMEDOUT, {});
    }
}

void SaClient::report(std::uint64_t token, int error, std::span<const std::uint8_t> record) {
    if (asked_.erase(token) != 0) {
        user_.answered(token, error, record);
    }
}

}  // namespace simverbs::rdma_cm
