#include "scenarios/search/swarm.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/core.h>

#include "fabric/core/assert.hpp"
#include "fabric/core/random.hpp"
#include "fabric/yaml/quantities.hpp"

#include "simverbs/model/statuses.hpp"

#include "scenarios/engine/compose.hpp"

namespace scenarios {

namespace yaml = fabric::yaml;

namespace {

constexpr std::int64_t kNanosecond = 1'000;
constexpr std::int64_t kMostHeal = 20'000'000'000;  // 20 ms
constexpr std::uint64_t kDefaultTimeout = 14;
constexpr std::uint64_t kDefaultRetries = 7;

std::string duration_text(std::int64_t picoseconds) {
    return yaml::duration_text(fabric::SimDuration(picoseconds));
}

// The seed of a scenario, whatever it had.
void set_seed(yaml::Value& root, std::uint64_t seed) {
    const auto changed = set(root, fmt::format("run.seed={}", seed));
    SIMVERBS_ASSERT(changed.has_value(), "{}", changed.error());
}

// Returns the smaller value of the two ends of a connection.
std::uint64_t least_of(Checked connection, std::string_view key, std::uint64_t otherwise) {
    std::uint64_t least = connection.number(key, otherwise);
    for (const auto& [host, end] : connection.at("ends").entries()) {
        least = std::min(least, Checked(end).number(key, least));
    }
    return least;
}

std::int64_t ack_timeout_ps(std::uint64_t code) {
    return std::int64_t{4'096'000} << code;  // 4.096 us * 2^code (IBA 9.7.6.1.3)
}

void collect_statuses(const yaml::Value& value, std::set<std::string>& statuses) {
    for (const yaml::Entry& entry : value.entries) {
        if (entry.key.text == "status") {
            statuses.insert(entry.value.text);
        }
        collect_statuses(entry.value, statuses);
    }
    for (const yaml::Value& item : value.items) {
        collect_statuses(item, statuses);
    }
}

void drop_keys(yaml::Value& mapping, std::span<const std::string_view> keys) {
    std::erase_if(mapping.entries, [keys](const yaml::Entry& entry) {
        return std::ranges::find(keys, entry.key.text) != keys.end();
    });
}

// `faults` and `expect.never` as lists, made where they are missing.
void append(yaml::Value& root, const std::string& text) {
    yaml::Errors errors("made");
    if (auto more = yaml::parse(text, errors)) {
        for (yaml::Entry& entry : more->entries) {
            const auto there = std::ranges::find(root.entries, entry.key.text,
                                                 [](const yaml::Entry& e) { return e.key.text; });
            if (there == root.entries.end() || there->value.kind != yaml::Kind::kList) {
                std::erase_if(root.entries, [&entry](const yaml::Entry& other) {
                    return other.key.text == entry.key.text;
                });
                root.entries.push_back(std::move(entry));
            } else {
                std::ranges::move(entry.value.items, std::back_inserter(there->value.items));
            }
        }
    }
}

yaml::Value& mapping_of(yaml::Value& root, std::string_view key) {
    for (yaml::Entry& entry : root.entries) {
        if (entry.key.text == key) {
            entry.value.kind = yaml::Kind::kMapping;
            return entry.value;
        }
    }
    yaml::Entry made;
    made.key.kind = yaml::Kind::kScalar;
    made.key.text = key;
    made.value.kind = yaml::Kind::kMapping;
    root.entries.push_back(std::move(made));
    return root.entries.back().value;
}

}  // namespace

// The random numbers of one seed.
class Draw {
  public:
    explicit Draw(std::uint64_t seed) : stream_(seed, "swarm", "faults") {}

    std::uint64_t below(std::uint64_t bound) {
        return stream_.below(std::max<std::uint64_t>(bound, 1));
    }
    std::int64_t until(std::int64_t end) {
        return static_cast<std::int64_t>(
            below(static_cast<std::uint64_t>(std::max<std::int64_t>(end, 1))));
    }
    // Short ones as often as long ones: from 100 ns to `most`, in steps of 1 ns.
    std::int64_t length(std::int64_t most) {
        constexpr std::int64_t kShortest = 100 * kNanosecond;
        std::int64_t end = kShortest;
        std::uint64_t octaves = 0;
        for (; end < most / 2; end *= 2) {
            ++octaves;
        }
        const std::int64_t scale = kShortest << below(octaves + 1);
        return std::min(most, (scale + until(scale)) / kNanosecond * kNanosecond);
    }
    template <class Choices>
    const auto& of(const Choices& choices) {
        return choices[below(choices.size())];
    }

  private:
    fabric::RandomStream stream_;
};

Swarm::Swarm(const Scenario& scenario, unsigned faults) : base_(scenario), faults_(faults) {}

fabric::Outcome<Swarm> Swarm::make(const Scenario& scenario, const SwarmOptions& options,
                                   std::int64_t usual_ps) {
    Swarm swarm(scenario, options.faults);
    std::int64_t patience = kMostHeal * 4;
    std::int64_t longest = 0;
    std::set<std::string> hosts;
    for (const auto& [name, value] : scenario.at("connections").entries()) {
        const Checked connection(value);
        const std::string type = connection.text("type", "RC");
        const std::uint64_t code = least_of(connection, "timeout", kDefaultTimeout);
        const std::uint64_t retries = least_of(connection, "retries", kDefaultRetries);
        if (type != "RC" && type != "XRC") {
            return fabric::Failure(
                fmt::format("connection {} is {}: what is lost there stays lost, and need not "
                            "complete; a swarm of faults is for RC and XRC",
                            name.text, type));
        }
        if (code == 0) {
            return fabric::Failure(fmt::format(
                "connection {} has no time-out: what is lost is never sent again", name.text));
        }
        if (retries < options.faults) {
            return fabric::Failure(
                fmt::format("connection {} tries again {} times, fewer than the {} faults that "
                            "may hit it",
                            name.text, retries, options.faults));
        }
        const std::int64_t bears = ack_timeout_ps(code) * static_cast<std::int64_t>(retries + 1);
        patience = std::min(patience, bears);
        longest = std::max(longest, bears);
        for (const yaml::Value& host : connection.at("between").items()) {
            hosts.insert(host.text);
        }
    }
    if (hosts.empty()) {
        return fabric::Failure(
            "it has no connections, so there is nothing that could fail to complete");
    }
    swarm.hosts_.assign(hosts.begin(), hosts.end());
    swarm.find_places();
    swarm.heal_ps_ = options.heal_ps != 0 ? options.heal_ps : patience / 4;
    swarm.usual_ps_ = std::clamp<std::int64_t>(usual_ps, 1, swarm.heal_ps_ / 2);
    demand_completion(swarm.base_.root);
    // Each fault may cost one of them all its patience; what is not done by then never will be.
    const std::int64_t stop = usual_ps + swarm.heal_ps_ + longest * (options.faults + 1);
    yaml::Value& run = mapping_of(swarm.base_.root, "run");
    if (!Checked(run).has("stop")) {
        append(run, fmt::format("stop: {}\n", duration_text(stop)));
    }
    return swarm;
}

// Links of idle hosts lead nowhere.
void Swarm::find_places() {
    std::map<std::string, bool> needed;  // by node
    for (const fabric::NodeSpec& node : base_.topology.nodes) {
        needed[node.name] = node.kind != fabric::NodeKind::kHca ||
                            std::ranges::find(hosts_, fabric::host_of(node)) != hosts_.end();
    }
    std::map<std::string, int> seen;
    for (const fabric::LinkSpec& link : base_.topology.links) {
        const auto& [one, other] = std::minmax(link.a.node, link.b.node);
        const int nth = ++seen[fmt::format("{}-{}", one, other)];
        if (needed[one] && needed[other]) {
            places_.push_back(
                {fmt::format("{}-{}{}", one, other, nth == 1 ? "" : fmt::format("#{}", nth)),
                 {one, other}});
        }
    }
}

std::string Swarm::fault_text(Draw& draw, unsigned number) const {
    enum class Kind : std::uint8_t { kPacket, kLatePacket, kLink };
    struct Choice {
        std::string_view action;
        Kind kind;
        unsigned weight;
    };
    constexpr auto kChoices = std::to_array<Choice>({
        {"drop", Kind::kPacket, 4},
        {"corrupt", Kind::kPacket, 2},
        {"duplicate", Kind::kLatePacket, 3},
        {"delay", Kind::kLatePacket, 3},
        {"reorder", Kind::kLatePacket, 2},
        {"hold", Kind::kLatePacket, 1},
        {"pause", Kind::kLink, 1},
        {"link_down", Kind::kLink, 1},
        {"link_flap", Kind::kLink, 1},
    });
    constexpr unsigned kWeights = [kChoices] {
        unsigned sum = 0;
        for (const Choice& choice : kChoices) {
            sum += choice.weight;
        }
        return sum;
    }();
    auto left = static_cast<unsigned>(draw.below(kWeights));
    std::size_t at = 0;
    for (; left >= kChoices[at].weight; ++at) {
        left -= kChoices[at].weight;
    }
    const Choice& choice = kChoices[at];
    const std::int64_t begin = draw.until(usual_ps_) / kNanosecond * kNanosecond;
    const std::string name = fmt::format("swarm{}", number);
    if (choice.kind == Kind::kLink) {
        const Place& place = draw.of(places_);
        constexpr std::int64_t kFlaps = 2;
        const bool flaps = choice.action == "link_flap";
        const std::int64_t length = draw.length((heal_ps_ - begin) / (flaps ? 2 * kFlaps : 1));
        std::string more;
        if (choice.action == "pause") {
            more = fmt::format(", node: {}", draw.of(place.ends));
        } else if (flaps) {
            more = fmt::format(", interval: {}, times: {}", duration_text(length), kFlaps);
        }
        return fmt::format(
            "{{name: {}, action: {}, link: \"{}\", duration: {}{}, when: {{at: {}}}}}", name,
            choice.action, place.link, duration_text(length), more, duration_text(begin));
    }
    constexpr auto kDirections =
        std::to_array<std::string_view>({"either", "requests", "responses"});
    constexpr std::uint64_t kFirstFew = 6;
    const std::string_view direction = draw.of(kDirections);
    const std::string_view side = draw.below(2) == 0 ? "from" : "to";
    const std::string& host = draw.of(hosts_);
    const std::uint64_t nth = 1 + draw.below(kFirstFew);
    const std::int64_t length =
        choice.kind == Kind::kLatePacket ? draw.length((heal_ps_ - begin) / 2) : 0;
    return fmt::format(
        "{{name: {}, action: {}{}, when: {{{}: {}, direction: {}, at: {}, until: {}, nth: {}}}}}",
        name, choice.action,
        length == 0 ? "" : fmt::format(", duration: {}", duration_text(length)), side, host,
        direction, duration_text(begin), duration_text(heal_ps_ - length), nth);
}

Scenario Swarm::scenario(std::uint64_t seed) const {
    Scenario made = base_;
    set_seed(made.root, seed);
    Draw draw(seed);
    const auto count = static_cast<unsigned>(1 + draw.below(faults_));
    std::string text = "faults:\n";
    for (unsigned number = 1; number <= count; ++number) {
        text += fmt::format("- {}\n", fault_text(draw, number));
    }
    append(made.root, text);
    return made;
}

void demand_completion(yaml::Value& root) {
    constexpr auto kOfTheWay = std::to_array<std::string_view>(
        {"counters", "time", "fired", "digest", "events", "stopped"});
    constexpr auto kTimes = std::to_array<std::string_view>({"at_least", "at_most"});
    std::set<std::string> named;
    collect_statuses(root, named);
    yaml::Value& expect = mapping_of(root, "expect");
    drop_keys(expect, kOfTheWay);
    for (yaml::Entry& part : expect.entries) {
        if (part.key.text == "completions") {
            for (yaml::Entry& end : part.value.entries) {
                for (yaml::Value& item : end.value.items) {
                    drop_keys(item, kTimes);
                }
            }
        }
    }
    std::string never = "never:\n";
    for (const std::string_view status : simverbs::kWcStatusNames) {
        if (status != "SUCCESS" && !named.contains(std::string(status))) {
            never += fmt::format("- {{status: {}}}\n", status);
        }
    }
    append(expect, never);
}

}  // namespace scenarios
