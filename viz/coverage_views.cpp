#include "viz/coverage_views.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "fabric/core/xml_text.hpp"

#include "viz/palette.hpp"

namespace simverbs::viz {
namespace {

constexpr std::string_view kSubject = "verbs coverage";

std::size_t percent(std::size_t reached, std::size_t of) {
    return of == 0 ? 0 : reached * 100 / of;
}

// The subject of a badge: the groups whose names begin so, together.
struct Theme {
    std::string_view name;
    std::string_view groups;
};
constexpr std::array<Theme, 3> kThemes{{
    {"QP moves", "moves: Queue pair"},
    {"statuses", "completion statuses"},
    {"events", "asynchronous events"},
}};

std::size_t percent_of(const Theme& theme, const std::vector<CoverageGroup>& groups) {
    std::size_t reached = 0;
    std::size_t of = 0;
    for (const CoverageGroup& group : groups) {
        if (group.name.starts_with(theme.groups)) {
            reached += group.reached();
            of += group.items.size();
        }
    }
    return percent(reached, of);
}

std::string message_of(const std::vector<CoverageGroup>& groups) {
    std::string text;
    for (const Theme& theme : kThemes) {
        text += fmt::format("{}{} {} %", text.empty() ? "" : ", ", theme.name,
                            percent_of(theme, groups));
    }
    return text;
}

}  // namespace

std::string coverage_lists(const std::vector<CoverageGroup>& groups) {
    std::string out;
    for (const CoverageGroup& group : groups) {
        std::string items;
        for (const Covered& item : group.items) {
            items += fmt::format("<li class=\"{}\">{}{}</li>", item.count > 0 ? "yes" : "no",
                                 fabric::xml_text(item.name),
                                 item.count > 0 ? fmt::format(": {}", item.count) : ": never");
        }
        out += fmt::format(
            "<details><summary>{}: {} of {} <progress max=\"{}\" value=\"{}\" "
            "aria-label=\"{}\"></progress></summary><ul class=\"items\">{}</ul></details>\n",
            fabric::xml_text(group.name), group.reached(), group.items.size(),
            std::max<std::size_t>(1, group.items.size()), group.reached(),
            fabric::xml_text(group.name), items);
    }
    return out;
}

std::string coverage_page(const std::vector<CoverageGroup>& groups, const std::string& title) {
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<link rel=\"icon\" href=\"data:,\">\n<title>{0}</title>\n"
        "<style>body {{ font: 15px/1.45 Helvetica, Arial, sans-serif; color: {1}; max-width: "
        "900px; margin: 0 auto; padding: 0 20px; }}\nsummary {{ cursor: pointer; padding: 4px 0; "
        "}}\nprogress {{ float: right; }}\n.items {{ columns: 3 240px; font-size: 13px; }}\n.no {{ "
        "color: #b34700; font-weight: "
        "bold; }}</style></head>\n<body><h1>{0}</h1>\n<p>{2}</p>\n{3}</body></html>\n",
        fabric::xml_text(title), kInk, fabric::xml_text(coverage_line(groups)),
        coverage_lists(groups));
}

std::string coverage_table(const std::vector<CoverageGroup>& groups, const std::string& title) {
    std::string rows;
    std::string missing;
    for (const CoverageGroup& group : groups) {
        rows += fmt::format("| {} | {} | {} | {} % |\n", group.name, group.reached(),
                            group.items.size(), percent(group.reached(), group.items.size()));
        for (const Covered& item : group.items) {
            if (item.count == 0) {
                missing += fmt::format("- {}: {}\n", group.name, item.name);
            }
        }
    }
    return fmt::format(
        "# {}\n\n{}\n\n| what | reached | of | |\n| --- | ---: | ---: | ---: |\n{}{}", title,
        coverage_line(groups), rows, missing.empty() ? "" : "\nNot reached:\n\n" + missing);
}

std::string coverage_line(const std::vector<CoverageGroup>& groups) {
    return fmt::format("{}: {}", kSubject, message_of(groups));
}

std::string coverage_badge(const std::vector<CoverageGroup>& groups) {
    constexpr std::size_t kCharacter = 7;  // pixels, about, of Verdana at 11
    constexpr std::size_t kMargin = 10;
    const std::string message = message_of(groups);
    const std::size_t left = kSubject.size() * kCharacter + kMargin;
    const std::size_t right = message.size() * kCharacter + kMargin;
    std::size_t least = 100;
    for (const Theme& theme : kThemes) {
        least = std::min(least, percent_of(theme, groups));
    }
    constexpr std::size_t kHalf = 50;
    // Dark enough for white words; the numbers say the same.
    const std::string_view colour = least == 100 ? "#00734f" : least >= kHalf ? kBlue : "#b34700";
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"20\" role=\"img\" "
        "aria-label=\"{1}\">\n<title>{1}</title>\n"
        "<rect width=\"{2}\" height=\"20\" fill=\"#444444\"/>\n"
        "<rect x=\"{2}\" width=\"{3}\" height=\"20\" fill=\"{4}\"/>\n"
        "<g fill=\"#ffffff\" font-family=\"Verdana, DejaVu Sans, sans-serif\" font-size=\"11\" "
        "text-anchor=\"middle\">\n<text x=\"{5}\" y=\"14\" textLength=\"{6}\">{7}</text>\n"
        "<text x=\"{8}\" y=\"14\" textLength=\"{9}\">{10}</text>\n</g>\n</svg>\n",
        left + right, fabric::xml_text(coverage_line(groups)), left, right, colour, left / 2,
        left - kMargin, kSubject, left + right / 2, right - kMargin, fabric::xml_text(message));
}

}  // namespace simverbs::viz
