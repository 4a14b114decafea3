#include "simverbs/faults/host_programs.hpp"

#include <algorithm>

namespace simverbs {

std::string_view HostPrograms::stop(const std::string& host, fabric::SimDuration duration,
                                    fabric::FaultClock& later) {
    const fabric::SimTime until = later.now() + duration;
    if (const auto stopped = stopped_until_.find(host); stopped != stopped_until_.end()) {
        stopped->second = std::max(stopped->second, until);
    } else {
        if (const std::string_view reason = halt(host); !reason.empty()) {
            return reason;
        }
        stopped_until_.emplace(host, until);
        tell(host, ProgramsChange::kStopped);
    }
    later.after(duration, [this, &later, host] {
        const auto stopped = stopped_until_.find(host);
        if (stopped != stopped_until_.end() && stopped->second <= later.now()) {
            stopped_until_.erase(stopped);
            tell(host, ProgramsChange::kWentOn);
            resume(host);
        }
    });
    return {};
}

std::string_view HostPrograms::kill(const std::string& host, const std::string& why) {
    if (const std::string_view reason = end(host, why); !reason.empty()) {
        return reason;
    }
    tell(host, ProgramsChange::kEnded);
    if (stopped_until_.erase(host) != 0) {
        resume(host);
    }
    return {};
}

void HostPrograms::tell(const std::string& host, ProgramsChange change) {
    const Hca& first = environment_.hca(environment_.hcas_of(host).front());
    environment_.bus().emit(environment_.loop().now(),
                            ProgramsChanged{first.node(), first.host(), change});
}

}  // namespace simverbs
