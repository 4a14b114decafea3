// The operations of programs that connect by rdma_cm.
#include <algorithm>
#include <cerrno>

#include <fmt/core.h>

#include "fabric/core/counted.hpp"

#include "simverbs/model/cm_codes.hpp"

#include "scenarios/engine/cm_words.hpp"
#include "scenarios/engine/errno_names.hpp"
#include "scenarios/engine/program.hpp"

namespace scenarios {

namespace {

constexpr std::int64_t kPicosecondsOfMillisecond = 1'000'000'000;
constexpr std::int64_t kDefaultResolution = 2000 * kPicosecondsOfMillisecond;
constexpr std::uint64_t kDefaultBacklog = 128;

std::uint16_t port_of(Checked body) {
    return static_cast<std::uint16_t>(body.number("port", kDefaultCmPort));
}

CmDestination destination_of(Checked body, const std::string& address) {
    const std::int64_t resolution = body.duration("resolve_within", kDefaultResolution);
    return {.address = address,
            .port = port_of(body),
            .timeout_ms = static_cast<std::uint32_t>(resolution / kPicosecondsOfMillisecond),
            .private_data = body.text("private_data")};
}

}  // namespace

// Programs of operations wait for what rdma_cm answers, unless they say `wait: false`.
Programs::Outcome Programs::by_cm(Task& task, const std::string& name, Checked body) {
    if (name == "await_cm") {
        return await_cm(task, body);
    }
    if (name == "listen") {
        const std::string type = body.text("type");
        const CmAnswer answer = world_.cm().listen(
            *task.host,
            type == "UD"   ? IBV_QPT_UD
            : type == "UC" ? IBV_QPT_UC
                           : IBV_QPT_RC,
            port_of(body), static_cast<std::uint32_t>(body.number("backlog", kDefaultBacklog)));
        expect_errno(body, answer.call, answer.error);
        return Outcome::kDone;
    }
    End& end = end_of(task, body);
    if (name == "connect" || name == "join") {
        return begin_by_cm(task, body, end, name == "join");
    }
    if (name == "accept" || name == "reject") {
        return answer_by_cm(task, body, end, name == "accept");
    }
    const CmAnswer answer =
        name == "disconnect" ? world_.cm().disconnect(end) : world_.cm().leave(end);
    expect_errno(body, answer.call, answer.error);
    return Outcome::kDone;
}

Programs::Outcome Programs::begin_by_cm(Task& task, Checked body, End& end, bool joins) {
    if (!task.begun) {
        begin_wait(task, body.duration("within", -1));
        const CmAnswer answer =
            joins ? world_.cm().join(end, destination_of(body, body.text("group")))
                  : world_.cm().connect(
                        end, destination_of(body, body.text("to", end.peer->host->address)));
        if (answer.error != 0) {
            expect_errno(body, answer.call, answer.error);
            return Outcome::kDone;
        }
        if (!body.flag("wait", true)) {
            return Outcome::kDone;
        }
        world_.read_events();
    }
    return await_outcome(task, body, end, joins ? "MULTICAST_JOIN" : "ESTABLISHED");
}

// Waits for the request first.
Programs::Outcome Programs::answer_by_cm(Task& task, Checked body, End& end, bool accepts) {
    begin_wait(task, body.duration("within", -1));
    if (task.got == 0) {
        if (!world_.cm().has_request(end)) {
            if (!is_over(task)) {
                return Outcome::kWaits;
            }
            fail(body,
                 fmt::format("CONNECT_REQUEST of {} within {}", end.name, body.text("within")),
                 "it did not come", "operation", end.name);
            return Outcome::kDone;
        }
        constexpr auto kConsumer =
            static_cast<std::uint64_t>(simverbs::RejectReason::kConsumerDefined);
        const CmAnswer answer =
            accepts ? world_.cm().accept(end, body.text("private_data"))
                    : world_.cm().reject(
                          end, static_cast<std::uint8_t>(body.number("reason", kConsumer)),
                          body.text("private_data"));
        task.got = 1;
        if (!accepts || answer.error != 0 || body.has("errno")) {
            expect_errno(body, answer.call, answer.error);
            return Outcome::kDone;
        }
        // The answer to a datagram's request is all there is.
        if (end.is_datagram() || !body.flag("wait", true)) {
            return Outcome::kDone;
        }
    }
    return await_outcome(task, body, end, "ESTABLISHED");
}

Programs::Outcome Programs::await_outcome(Task& task, Checked body, const End& end,
                                          std::string_view otherwise) {
    const CmOutcome* const outcome = world_.cm().outcome(end);
    const std::string wanted = body.text("event", otherwise);
    if (outcome == nullptr) {
        if (!is_over(task)) {
            return Outcome::kWaits;
        }
        fail(body, fmt::format("{} at {} within {}", wanted, end.name, body.text("within")),
             "no answer came", "operation", end.name);
        return Outcome::kDone;
    }
    if (!outcome->event) {
        expect_errno(body, outcome->refused.call, outcome->refused.error);
        return Outcome::kDone;
    }
    const CmEventSeen& seen = *outcome->event;
    // `private_data` of the operation is what it sends.
    constexpr CmEventKeys kKeys{.private_data = "answer"};
    if (wanted != cm_event_name(seen) || !fits_cm_event(body, seen, kKeys)) {
        fail(body, describe_cm_event(wanted, body, kKeys), describe(seen),
             fmt::format("operation {}", cm_event_name(seen)), end.name);
    }
    return Outcome::kDone;
}

// Events of before the operation count, as for await.
Programs::Outcome Programs::await_cm(Task& task, Checked body) {
    begin_wait(task, body.duration("within", -1));
    const std::string wanted = body.text("event");
    const auto is_wanted = [&](const CmEventSeen& seen) {
        return seen.host == task.host->name && cm_event_name(seen) == wanted &&
               (!body.has("qp") || seen.of == body.text("qp")) && fits_cm_event(body, seen);
    };
    const std::vector<CmEventSeen>& seen = world_.cm_events();
    const auto found = static_cast<std::uint64_t>(std::ranges::count_if(seen, is_wanted));
    if (found >= body.number("count", 1)) {
        return Outcome::kDone;
    }
    // A connect or join with `wait: false` may have ended without an event.
    const CmOutcome* const outcome =
        body.has("qp") ? world_.cm().outcome(end_of(task, body)) : nullptr;
    if (outcome != nullptr && !outcome->event) {
        fail(body, fmt::format("{} at {}", describe_cm_event(wanted, body), task.host->name),
             fmt::format("{} answered {}", outcome->refused.call,
                         errno_name(outcome->refused.error)));
        return Outcome::kDone;
    }
    if (!is_over(task)) {
        return Outcome::kWaits;
    }
    fail(
        body,
        fmt::format("{} at {} within {}", describe_cm_event(wanted, body), task.host->name,
                    body.text("within")),
        found == 0 ? "it did not come" : fmt::format("it came {}", fabric::counted(found, "time")));
    return Outcome::kDone;
}

}  // namespace scenarios
