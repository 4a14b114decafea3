#include "scenarios/engine/judge.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include "fabric/core/counted.hpp"

#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/statuses.hpp"

#include "scenarios/engine/cm_words.hpp"
#include "scenarios/engine/counters.hpp"
#include "scenarios/engine/world.hpp"

namespace scenarios {

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::string_view status_name(int status) {
    return simverbs::kWcStatusNames[static_cast<std::size_t>(status)];
}
std::string_view opcode_name(int opcode) {
    return simverbs::to_string(static_cast<simverbs::WcOpcode>(opcode));
}
std::string_view event_name(int event) {
    return simverbs::kAsyncEvents[static_cast<std::size_t>(event)].name;
}

// As a shell gives it, and the signal that it stands for.
std::string exit_text(std::uint64_t status) {
    constexpr std::uint64_t kSignalBase = 128;
    const char* const signal =
        status > kSignalBase ? sigabbrev_np(static_cast<int>(status - kSignalBase)) : nullptr;
    return signal == nullptr ? std::to_string(status) : fmt::format("{} (SIG{})", status, signal);
}

bool in_time(Checked item, std::int64_t time) {
    return time >= item.duration("at_least") && time <= item.duration("at_most", kNever);
}

std::string describe_times(Checked item) {
    std::string text;
    if (item.has("at_least")) {
        text += fmt::format(", at {} or later", item.text("at_least"));
    }
    if (item.has("at_most")) {
        text += fmt::format(", at {} or earlier", item.text("at_most"));
    }
    return text;
}

std::string describe(const Completed& completed) {
    std::string text = fmt::format("id {} {}", completed.id, status_name(completed.status));
    if (completed.status == IBV_WC_SUCCESS) {
        text += fmt::format(" {}", opcode_name(completed.opcode));
    }
    return text + fmt::format(" at {}", time_text(completed.time_ps));
}

std::string describe(Checked item, std::uint64_t nth) {
    std::string text = item.has("id") ? fmt::format("id {} ", item.number("id") + nth) : "";
    text += item.text("status", "SUCCESS");
    for (const char* const key : {"opcode", "bytes", "imm"}) {
        text += item.has(key) ? fmt::format(", {} {}", key, item.text(key)) : "";
    }
    return text + describe_times(item);
}

bool fits(Checked item, std::uint64_t nth, const Completed& completed) {
    return (!item.has("id") || item.number("id") + nth == completed.id) &&
           item.text("status", "SUCCESS") == status_name(completed.status) &&
           (!item.has("opcode") || item.text("opcode") == opcode_name(completed.opcode)) &&
           (!item.has("bytes") || item.size("bytes") == completed.bytes) &&
           (!item.has("imm") || item.number("imm") == completed.imm) &&
           in_time(item, completed.time_ps);
}

}  // namespace

void Judge::miss(Checked where, std::string expected, std::string happened) {
    miss(where, run_.now(), std::move(expected), std::move(happened));
}

void Judge::miss(Checked where, std::int64_t time, std::string expected, std::string happened) {
    failures_.push_back({where.position(), time, std::move(expected), std::move(happened),
                         std::string(kind_), end_});
}

void Judge::judge_end(Checked expect, const std::vector<std::string>& waiting) {
    const bool may_wait = expect.flag("stopped");
    kind_ = "ends";
    if (!waiting.empty() && !may_wait) {
        miss(expect, "every program ends", fmt::format("{}", fmt::join(waiting, "; ")));
    } else if (waiting.empty() && may_wait) {
        miss(expect.at("stopped"), "programs that still wait at the end", "every program ended");
    }
    judge(expect);
    for (const Failure& broken : run_.broken_invariants()) {
        failures_.push_back(broken);
    }
}

void Judge::judge(Checked expect) {
    const auto part = [this, expect](std::string_view key) {
        kind_ = key;
        return expect.at(key);
    };
    judge_completions(part("completions"));
    judge_states(part("qp_states"));
    judge_events(part("events"));
    judge_cm_events(part("cm_events"));
    judge_counters(part("counters"));
    judge_fired(part("fired"));
    for (const fabric::yaml::Value& item : part("memory").items()) {
        judge_memory(Checked(item));
    }
    judge_time(part("time"));
    for (const fabric::yaml::Value& clause : part("never").items()) {
        judge_never(Checked(clause));
    }
    judge_digest(part("digest"));
}

void Judge::judge_completions(Checked ends) {
    for (const auto& [end, list] : ends.entries()) {
        end_ = end.text;
        judge_completions_of(end.text, Checked(list));
    }
    end_.clear();
}

// Each item takes the next completion of the end; none may be left.
void Judge::judge_completions_of(const std::string& end, Checked list) {
    std::vector<Completed> found;
    std::ranges::copy_if(run_.completed(), std::back_inserter(found),
                         [&end](const Completed& each) { return each.end == end; });
    std::size_t next = 0;
    for (const fabric::yaml::Value& value : list.items()) {
        const Checked item(value);
        const bool rest = item.flag("rest");
        const std::uint64_t count = rest ? found.size() - next : item.number("count", 1);
        for (std::uint64_t nth = 0; nth < count; ++nth, ++next) {
            if (next >= found.size()) {
                miss(item, fmt::format("{}: completion {}: {}", end, next + 1, describe(item, nth)),
                     fmt::format("no further completion ({} in all)", found.size()));
                return;
            }
            if (!fits(item, nth, found[next])) {
                miss(item, found[next].time_ps,
                     fmt::format("{}: completion {}: {}", end, next + 1, describe(item, nth)),
                     describe(found[next]));
                return;
            }
        }
    }
    if (next < found.size()) {
        miss(list, found[next].time_ps,
             fmt::format("{}: {}, and no further one", end, fabric::counted(next, "completion")),
             fmt::format("completion {}: {}", next + 1, describe(found[next])));
    }
}

void Judge::judge_states(Checked ends) {
    for (const auto& [name, wanted] : ends.entries()) {
        const std::string found = run_.state_of(name.text);
        end_ = name.text;
        if (found != wanted.text) {
            miss(Checked(wanted), fmt::format("{} in {}", name.text, wanted.text), found);
        }
    }
    end_.clear();
}

void Judge::judge_events(Checked hosts) {
    for (const auto& [host, list] : hosts.entries()) {
        std::vector<Seen> found;
        for (const AsyncEventSeen& seen : run_.events()) {
            if (seen.host == host.text) {
                const std::string_view name = event_name(seen.event);
                found.push_back(
                    {seen.time_ps, name, seen.of,
                     fmt::format("{} of {} at {}", name, seen.of, time_text(seen.time_ps))});
            }
        }
        judge_events_of(host.text, list, found);
    }
}

void Judge::judge_cm_events(Checked hosts) {
    for (const auto& [host, list] : hosts.entries()) {
        std::vector<Seen> found;
        for (const CmEventSeen& seen : run_.cm_events()) {
            if (seen.host == host.text) {
                found.push_back(
                    {seen.time_ps, cm_event_name(seen), seen.of, describe(seen), &seen});
            }
        }
        judge_events_of(host.text, list, found);
    }
}

void Judge::judge_events_of(const std::string& host, const fabric::yaml::Value& list,
                            const std::vector<Seen>& found) {
    std::size_t next = 0;
    for (const fabric::yaml::Value& value : list.items) {
        const Checked item(value);
        const bool is_word = value.kind == fabric::yaml::Kind::kScalar;
        const std::string name = is_word ? value.text : item.text("event");
        for (std::uint64_t left = item.number("count", 1); left > 0; --left, ++next) {
            const Seen* const seen = next < found.size() ? &found[next] : nullptr;
            if (seen != nullptr && name == seen->event &&
                (!item.has("of") || item.text("of") == seen->of) && in_time(item, seen->time_ps) &&
                (seen->by_cm == nullptr || fits_cm_event(item, *seen->by_cm))) {
                continue;
            }
            miss(item,
                 fmt::format("{}: event {}: {}{}{}", host, next + 1, describe_cm_event(name, item),
                             item.has("of") ? " of " + item.text("of") : "", describe_times(item)),
                 seen != nullptr ? seen->text : "no further event");
            return;
        }
    }
    if (next < found.size()) {
        miss(Checked(list), found[next].time_ps,
             fmt::format("{}: {}, and no further one", host, fabric::counted(next, "event")),
             found[next].text);
    }
}

void Judge::expect_range(Checked range, std::string_view what, std::uint64_t found) {
    const bool exact = range.value()->kind == fabric::yaml::Kind::kScalar;
    const std::uint64_t least = exact ? range.own_number() : range.number("at_least");
    const std::uint64_t most =
        exact ? least : range.number("at_most", std::numeric_limits<std::uint64_t>::max());
    if (found < least || found > most) {
        std::string wanted = std::to_string(least);
        if (!exact) {
            wanted = range.has("at_most") ? fmt::format("from {} to {}", least, most)
                                          : fmt::format("{} or more", least);
        }
        miss(range, fmt::format("{}: {}", what, wanted), std::to_string(found));
    }
}

void Judge::judge_counters(Checked nodes) {
    for (const auto& [node, counters] : nodes.entries()) {
        for (const auto& [name, range] : counters.entries) {
            const CounterRow& row =
                *std::ranges::find(kCounters, std::string_view(name.text), &CounterRow::name);
            expect_range(Checked(range), fmt::format("{} of {}", name.text, node.text),
                         run_.counted(row, node.text));
        }
    }
}

void Judge::judge_fired(Checked faults) {
    for (const auto& [name, range] : faults.entries()) {
        expect_range(Checked(range), fmt::format("firings of {}", name.text),
                     faults_.fired(name.text));
    }
}

void Judge::judge_memory(Checked item) {
    const Memory* const owner = run_.memory_of(item.text("host"), item.text("memory", "mem"));
    if (owner == nullptr) {
        miss(item, "memory " + item.text("memory"), item.text("host") + " has none of that name");
        return;
    }
    const Memory& memory = *owner;
    const std::uint64_t at = std::min<std::uint64_t>(item.size("at"), memory.size);
    const std::uint64_t length =
        std::min<std::uint64_t>(item.size("length", memory.size), memory.size - at);
    const std::uint8_t* const bytes = memory.bytes + at;
    const std::string where =
        fmt::format("{} of {}, {} bytes from {}", memory.name, item.text("host"), length, at);
    const auto compare = [&](std::string_view what, auto&& byte_at) {
        for (std::uint64_t i = 0; i < length; ++i) {
            if (bytes[i] != byte_at(i)) {
                miss(item, fmt::format("{}: {}", where, what),
                     fmt::format("byte {} is {:#04x}, not {:#04x}", at + i, bytes[i], byte_at(i)));
                return false;
            }
        }
        return true;
    };
    if (item.has("pattern")) {
        const std::uint64_t number = item.number("pattern");
        compare("pattern " + item.text("pattern"),
                [number](std::uint64_t i) { return pattern_byte(number, i); });
    }
    const auto before = [&](std::uint64_t i) { return memory.byte_at_start(at + i); };
    if (item.has("untouched") && item.flag("untouched")) {
        compare("untouched", before);
    } else if (item.has("untouched")) {
        std::uint64_t same = 0;
        while (same < length && bytes[same] == before(same)) {
            ++same;
        }
        if (same == length) {
            miss(item, where + ": changed", "it is as it was");
        }
    }
    if (item.has("same_as")) {
        const Checked other = item.at("same_as");
        const Memory* const found = run_.memory_of(other.text("host"), other.text("memory", "mem"));
        if (found == nullptr || other.size("at") + length > found->size) {
            miss(other, where + ": the same as another place", "there is no such place");
        } else {
            const std::uint8_t* const there = found->bytes + other.size("at");
            compare(fmt::format("the same as at {}", other.text("host")),
                    [there](std::uint64_t i) { return there[i]; });
        }
    }
    if (item.has("checksum")) {
        const std::string sum = fmt::format("{:016x}", XXH64(bytes, length, 0));
        if (sum != item.text("checksum")) {
            miss(item, fmt::format("{}: checksum {}", where, item.text("checksum")), sum);
        }
    }
    if (item.has("word")) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes, std::min<std::uint64_t>(sizeof word, length));
        if (word != item.number("word")) {
            miss(item, fmt::format("word at {} of {}: {}", at, memory.name, item.number("word")),
                 std::to_string(word));
        }
    }
}

void Judge::judge_exit(Checked exits, const std::string& host, const std::string& command,
                       int status) {
    kind_ = "exit";
    const std::uint64_t wanted = exits.number(host);
    if (wanted != static_cast<std::uint64_t>(status)) {
        miss(exits.has(host) ? exits.at(host) : exits,
             fmt::format("exit status {} of \"{}\" on {}", exit_text(wanted), command, host),
             exit_text(static_cast<std::uint64_t>(status)));
    }
}

void Judge::judge_time(Checked time) {
    if (!in_time(time, run_.now())) {
        miss(time, "the time" + describe_times(time), time_text(run_.now()));
    }
}

void Judge::judge_never(Checked clause) {
    const std::int64_t from = clause.duration("from");
    const std::int64_t until = clause.duration("until", kNever);
    const auto is_meant = [&](std::string_view host, std::int64_t time) {
        return time >= from && time <= until &&
               (!clause.has("host") || clause.text("host") == host);
    };
    for (const Record& record : run_.records()) {
        if (!is_meant(record.node, record.time_ps)) {
            continue;
        }
        const bool completion =
            record.name == "completion" && (clause.has("status") || clause.has("opcode")) &&
            (!clause.has("status") || clause.text("status") == record.text("status")) &&
            (!clause.has("opcode") || clause.text("opcode") == record.text("opcode"));
        const bool state = clause.has("state") && record.name == "qp_state" &&
                           record.text("to") == clause.text("state");
        const bool named = clause.has("record") && record.name == clause.text("record");
        if (completion || state || named) {
            std::string happened = fmt::format("{} at {}", record.name, record.node);
            for (const Record::Field& field : record.fields) {
                happened += fmt::format(" {}={}", field.name, field.text);
            }
            miss(clause, record.time_ps, "never", std::move(happened));
            return;
        }
    }
    for (const AsyncEventSeen& seen : run_.events()) {
        if (clause.has("event") && clause.text("event") == event_name(seen.event) &&
            is_meant(seen.host, seen.time_ps)) {
            miss(clause, seen.time_ps, "never",
                 fmt::format("{} at {}", event_name(seen.event), seen.host));
            return;
        }
    }
    for (const CmEventSeen& seen : run_.cm_events()) {
        if (clause.text("cm_event") == cm_event_name(seen) && is_meant(seen.host, seen.time_ps)) {
            miss(clause, seen.time_ps, "never", fmt::format("{} at {}", describe(seen), seen.host));
            return;
        }
    }
}

void Judge::judge_digest(Checked digest) {
    const std::string found = fmt::format("{:016x}", run_.digest());
    if (digest.value() != nullptr && digest.own_text() != found) {
        miss(digest, "digest " + digest.own_text(), found);
    }
}

}  // namespace scenarios
