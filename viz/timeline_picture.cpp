#include "viz/timeline_picture.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "fabric/core/xml_text.hpp"

#include "viz/markup.hpp"
#include "viz/palette.hpp"
#include "viz/work_requests.hpp"

namespace simverbs::viz {
namespace {

// Pixels.
constexpr int kLeft = 210;
constexpr int kStep = 3;
constexpr int kSteps = 290;
constexpr int kLane = 30;
constexpr int kTop = 56;
constexpr std::size_t kMostLanes = 16;

enum class Mark : std::uint8_t { kWork, kFailed, kAgain, kLost, kFault };

struct Style {
    std::string_view words;
    std::string_view colour;
    int width;
    int offset;  // from the middle of the lane, downwards
};
constexpr std::array<Style, 5> kStyles = {{
    {"work requests under way", kBlue, 6, -6},
    {"failed completion", kVermilion, 12, -6},
    {"sent again", kOrange, 5, 3},
    {"lost", kVermilion, 5, 9},
    {"fault fired", kPurple, 10, 0},
}};

class Overview {
  public:
    Overview(const Trace& trace, const Run& run) : run_(run) {
        std::map<QpName, std::size_t> work;
        const std::vector<WorkRequest> requests = work_requests(trace, run);
        for (const WorkRequest& request : requests) {
            ++work[request.qp];
        }
        for (const RunPacket& packet : run.packets) {
            ++work[packet.from];
        }
        choose_lanes(work);
        for (const WorkRequest& request : requests) {
            const Record& record = trace.records[request.completion];
            mark(request.qp, Mark::kWork, request.posted, record.time);
            if (record.text("status") != "SUCCESS") {
                mark(request.qp, Mark::kFailed, record.time, record.time);
            }
        }
        for (const RunPacket& packet : run.packets) {
            if (packet.retransmission) {
                mark(packet.from, Mark::kAgain, packet.sent, packet.sent);
            }
            if (!packet.lost.empty()) {
                mark(packet.from, Mark::kLost, packet.lost_time, packet.lost_time);
            }
        }
        for (const Record& record : trace.records) {
            if (record.name == "fault_fired") {
                faults_.at(step(record.time)) = true;
            }
        }
    }

    [[nodiscard]] std::string svg() const {
        const int lanes = static_cast<int>(lanes_.size()) + 1;
        const int bottom = kTop + lanes * kLane;
        const int width = kLeft + kSteps * kStep + 60;
        std::string out = fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 "
            "{0} {1}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
            "<title>Work requests over virtual time</title>\n"
            "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
            width, bottom + (lanes_left_out_ > 0 ? 34 : 12));
        out += key() + axis(bottom);
        out += text(kLeft - 12, kTop + 4 + kLane / 2, "end", "faults");
        out += steps(faults_, Mark::kFault, kTop + kLane / 2);
        int y = kTop + kLane + kLane / 2;
        for (const QpName& lane : lanes_) {
            out += text(kLeft - 12, y + 4, "end", run_.label(lane));
            for (const Mark mark : {Mark::kWork, Mark::kFailed, Mark::kAgain, Mark::kLost}) {
                const auto found = marks_.find({lane, mark});
                out += found == marks_.end() ? std::string() : steps(found->second, mark, y);
            }
            y += kLane;
        }
        if (lanes_left_out_ > 0) {
            out += text(16, bottom + 22, "start",
                        fmt::format("Queue pairs with less work, not drawn: {}", lanes_left_out_));
        }
        return out + "</svg>\n";
    }

  private:
    using Steps = std::array<bool, kSteps>;

    // Those with the most work, in their own order.
    void choose_lanes(const std::map<QpName, std::size_t>& work) {
        std::vector<std::pair<QpName, std::size_t>> order(work.begin(), work.end());
        std::stable_sort(order.begin(), order.end(),
                         [](const auto& a, const auto& b) { return a.second > b.second; });
        lanes_left_out_ = order.size() - std::min(order.size(), kMostLanes);
        order.resize(order.size() - lanes_left_out_);
        for (const auto& [qp, count] : order) {
            lanes_.push_back(qp);
        }
        std::sort(lanes_.begin(), lanes_.end());
    }

    // A whole number of picoseconds, no less than one.
    [[nodiscard]] std::int64_t step_length() const { return (run_.end - run_.begin) / kSteps + 1; }
    [[nodiscard]] std::size_t step(std::int64_t time) const {
        const std::int64_t at = (time - run_.begin) / step_length();
        return static_cast<std::size_t>(std::clamp<std::int64_t>(at, 0, kSteps - 1));
    }

    void mark(const QpName& qp, Mark which, std::int64_t from, std::int64_t until) {
        if (!std::binary_search(lanes_.begin(), lanes_.end(), qp)) {
            return;
        }
        Steps& steps = marks_[{qp, which}];
        std::fill(steps.begin() + static_cast<std::ptrdiff_t>(step(from)),
                  steps.begin() + static_cast<std::ptrdiff_t>(step(until)) + 1, true);
    }

    static std::string text(int x, int y, std::string_view anchor, std::string_view content) {
        return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", x,
                           y, anchor, kInk, fabric::xml_text(content));
    }

    static std::string steps(const Steps& steps, Mark mark, int y) {
        const Style& style = kStyles.at(static_cast<std::size_t>(mark));
        std::string path;
        for (int i = 0; i < kSteps; ++i) {
            if (!steps.at(static_cast<std::size_t>(i))) {
                continue;
            }
            const int begin = i;
            while (i + 1 < kSteps && steps.at(static_cast<std::size_t>(i) + 1)) {
                ++i;
            }
            path += fmt::format("M{},{} L{},{}", kLeft + begin * kStep, y + style.offset,
                                kLeft + (i + 1) * kStep, y + style.offset);
        }
        return path.empty() ? path
                            : fmt::format(
                                  "<path d=\"{}\" fill=\"none\" stroke=\"{}\" "
                                  "stroke-width=\"{}\"/>\n",
                                  path, style.colour, style.width);
    }

    static std::string key() {
        constexpr int kItem = 185;
        std::string out;
        int x = 16;
        for (const Style& style : kStyles) {
            out += fmt::format(
                "<path d=\"M{},16 L{},16\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>", x,
                x + 14, style.colour, style.width);
            out += text(x + 20, 20, "start", style.words);
            x += kItem + (&style == &kStyles.front() ? 20 : 0);
        }
        return out;
    }

    // Picoseconds between two ticks: 1, 2 or 5 times a power of ten, so that there are few.
    [[nodiscard]] std::int64_t between_ticks() const {
        constexpr std::int64_t kMostTicks = 8;
        const std::int64_t least = (run_.end - run_.begin) / kMostTicks + 1;
        for (std::int64_t power = 1;; power *= 10) {
            for (const std::int64_t digit : {1, 2, 5}) {
                if (digit * power >= least) {
                    return digit * power;
                }
            }
        }
    }

    [[nodiscard]] std::string axis(int bottom) const {
        const std::int64_t apart = between_ticks();
        std::string out;
        for (std::int64_t time = (run_.begin + apart - 1) / apart * apart; time <= run_.end;
             time += apart) {
            const int x = kLeft + kStep * static_cast<int>((time - run_.begin) / step_length());
            out += fmt::format(
                "<line x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\" stroke=\"#d0d0d0\"/>", x,
                kTop - 4, bottom);
            out += text(x, kTop - 10, "middle", time_text(time));
        }
        return out;
    }

    const Run& run_;
    std::vector<QpName> lanes_;
    std::size_t lanes_left_out_ = 0;
    std::map<std::pair<QpName, Mark>, Steps> marks_;
    Steps faults_{};
};

}  // namespace

std::string timeline_picture(const Trace& trace, const Run& run) {
    return Overview(trace, run).svg();
}

}  // namespace simverbs::viz
