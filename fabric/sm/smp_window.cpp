#include "fabric/sm/smp_window.hpp"

#include <algorithm>
#include <utility>

#include "fabric/core/assert.hpp"

namespace fabric {

using mad::Datagram;

void SmpWindow::get(const Path& path, mad::Attribute attribute, std::uint32_t modifier,
                    Answer answer) {
    Datagram request;
    request.set(mad::header::kMethod, static_cast<std::uint64_t>(mad::Method::kGet));
    request.set(mad::header::kAttributeId, static_cast<std::uint64_t>(attribute));
    request.set(mad::header::kAttributeModifier, modifier);
    ask(path, request, std::move(answer));
}

void SmpWindow::set(const Path& path, mad::Attribute attribute, std::uint32_t modifier,
                    mad::ConstBytes data, Answer answer) {
    Datagram request;
    request.set(mad::header::kMethod, static_cast<std::uint64_t>(mad::Method::kSet));
    request.set(mad::header::kAttributeId, static_cast<std::uint64_t>(attribute));
    request.set(mad::header::kAttributeModifier, modifier);
    std::ranges::copy(data, request.smp_data().begin());
    ask(path, request, std::move(answer));
}

void SmpWindow::ask(const Path& path, Datagram& request, Answer answer) {
    request.set(mad::header::kBaseVersion, 1);
    request.set(mad::header::kClass, static_cast<std::uint64_t>(mad::Class::kSubnDirected));
    request.set(mad::header::kClassVersion, 1);
    request.set(mad::smp::kMkey, m_key_);
    request.set(mad::smp::kHopCount, path.size());
    request.set(mad::smp::kDrSlid, kPermissiveLid.value());
    request.set(mad::smp::kDrDlid, kPermissiveLid.value());
    std::ranges::copy(path, request.bytes.begin() + mad::smp::kInitialPath + 1);
    waiting_.push_back({request, std::move(answer)});
    fill();
}

void SmpWindow::fill() {
    while (!waiting_.empty() && outstanding_.size() < kOutstanding) {
        Request next = std::move(waiting_.front());
        waiting_.pop_front();
        const std::uint64_t token = ++last_token_;
        next.datagram.set(mad::header::kTransactionId, token & 0xFFFF'FFFF);
        outstanding_.emplace(token, std::move(next.answer));
        const int error = port_.send(agent_, {.bytes = next.datagram.bytes,
                                              .to = {.lid = kPermissiveLid},
                                              .timeout = kAnswerTime,
                                              .retries = kRetries,
                                              .token = token});
        SIMVERBS_ASSERT(error == 0, "a request of the subnet manager is refused: {}", error);
    }
}

void SmpWindow::then(std::function<void()> step) {
    if (outstanding_.empty() && waiting_.empty()) {
        step();
        return;
    }
    then_.push_back(std::move(step));
}

void SmpWindow::answered(const ReceivedDatagram& datagram) {
    Datagram answer;
    std::ranges::copy(datagram.bytes, answer.bytes.begin());
    settle(datagram.token, &answer);
}

void SmpWindow::finished(const FinishedSend& send) {
    settle(send.token, nullptr);
}

void SmpWindow::settle(std::uint64_t token, const Datagram* answer) {
    const auto found = outstanding_.find(token);
    if (found == outstanding_.end()) {
        return;  // answered, and now finished
    }
    const Answer told = std::move(found->second);
    outstanding_.erase(found);
    if (told) {
        told(answer);
    }
    fill();
    if (outstanding_.empty() && waiting_.empty()) {
        for (const auto& step : std::exchange(then_, {})) {
            step();
        }
    }
}

}  // namespace fabric
