// Finds what a question asks for in a trace, and names queue pairs.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "scenarios/engine/explain.hpp"

namespace scenarios {

namespace {

constexpr std::size_t kMostListed = 12;

template <class T>
std::string list_of(const std::set<T>& all) {
    std::vector<T> first;
    for (const T& one : all) {
        if (first.size() < kMostListed) {
            first.push_back(one);
        }
    }
    return all.empty() ? "there is none"
                       : fmt::format("there are {}{}", fmt::join(first, ", "),
                                     all.size() > kMostListed ? ", ..." : "");
}

bool is_meant(const Record& record, const Question& question) {
    return (!question.qpn || record.number("qpn") == *question.qpn) &&
           (question.node.empty() || record.node == question.node) &&
           (!question.index || record.number("index") == *question.index) &&
           (!question.time_ps || record.time_ps == *question.time_ps);
}

// The lives of queue pairs: each RESET ends one.
class Lives {
  public:
    explicit Lives(std::span<const Record> records) {
        for (const Record& record : records) {
            if (record.name == "qp_state" && record.text("to") == "RESET") {
                resets_[{record.node, record.number("qpn")}] = &record;
            }
        }
    }
    // Returns true if the record is of its queue pair's last one.
    [[nodiscard]] bool is_last(const Record& record) const {
        const auto reset = resets_.find({record.node, record.number("qpn")});
        return reset == resets_.end() || &record > reset->second;
    }

  private:
    std::map<std::pair<std::string, std::uint64_t>, const Record*> resets_;
};

}  // namespace

const Record* find_completion(std::span<const Record> records, const Question& question) {
    if (question.completion != nullptr) {
        return question.completion;
    }
    const Lives lives(records);
    const Record* first = nullptr;
    int best = 0;
    for (const Record& record : records) {
        if (record.name != "completion" || !is_meant(record, question)) {
            continue;
        }
        const std::string_view status = record.text("status");
        const bool is_last_life = lives.is_last(record);
        const bool is_failure = status != "SUCCESS" && status != "WR_FLUSH_ERR";
        if ((question.is_of_this_life && !is_last_life) ||
            (!question.index && status == "SUCCESS")) {
            continue;
        }
        const bool is_of_one = question.qpn || question.index;
        const int rank = 1 + (question.index || is_failure ? 2 : 0) +
                         (is_of_one && !question.time_ps && is_last_life ? 1 : 0);
        if (rank > best) {
            best = rank;
            first = &record;
        }
    }
    return first;
}

const Record* find_polled(std::span<const Record> records, const PolledCompletion& polled) {
    std::uint64_t behind = 0;
    const auto found = std::find_if(records.rbegin(), records.rend(), [&](const Record& record) {
        return record.name == "completion" && record.node == polled.node &&
               record.number("cq") == polled.cq && record.number("qpn") == polled.qpn &&
               behind++ >= polled.unread &&
               static_cast<int>(record.number("status")) == polled.status;
    });
    return found == records.rend() ? nullptr : &*found;
}

const Record* find_stop(std::span<const Record> records, const Question& question) {
    const Lives lives(records);
    for (const Record& record : records) {
        if (record.name == "qp_state" && record.text("trigger") != "modify" &&
            record.text("trigger") != "drained" &&
            is_meant(record, {question.qpn, {}, question.node}) &&
            (!question.is_of_this_life || lives.is_last(record))) {
            return &record;
        }
    }
    return nullptr;
}

std::string end_text(const RunNames* names, const std::string& node, std::uint64_t qpn) {
    const std::string end = names == nullptr ? "" : names->end_of(node, qpn);
    return end.empty() ? queue_pair_text(node, qpn) : fmt::format("{} (QP {:#x})", end, qpn);
}

std::string describe_unknown(std::span<const Record> records, const Question& question) {
    std::set<std::string> nodes;
    std::set<std::string> queue_pairs;  // of the node
    bool has_queue_pair = false;
    bool has_request = false;
    for (const Record& record : records) {
        nodes.insert(record.node);
        if (!question.node.empty() && record.node != question.node) {
            continue;
        }
        const std::uint64_t qpn = record.number("qpn");
        if (qpn != 0) {
            queue_pairs.insert(fmt::format("{:#x}", qpn));
            has_queue_pair = has_queue_pair || (question.qpn && qpn == *question.qpn);
        }
        has_request = has_request ||
                      (record.name == "completion" && (!question.qpn || qpn == *question.qpn) &&
                       (question.index && record.number("index") == *question.index));
    }
    if (!question.node.empty() && !nodes.contains(question.node)) {
        return fmt::format("no node \"{}\"; {}", question.node, list_of(nodes));
    }
    if (question.qpn && !has_queue_pair) {
        return fmt::format("no queue pair {:#x}{}{}; {}", *question.qpn,
                           question.node.empty() ? "" : " on ", question.node,
                           list_of(queue_pairs));
    }
    if (question.index && !has_request) {
        return fmt::format("no request {} has completed there", *question.index);
    }
    return "";
}

}  // namespace scenarios
