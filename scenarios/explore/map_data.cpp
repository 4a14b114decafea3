#include "scenarios/explore/map_data.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "fabric/core/counted.hpp"

namespace scenarios {

namespace {

struct Column {
    std::string words;  // "drop of @", "qp_error of h0/c when @ is sent", "@ fails with EIO"
    ChoiceGroup group;
};

// The words of a choice without its place, so that it is the same choice at each of them.
std::string words_of(const Choice& choice, const std::string& place) {
    const std::size_t at = choice.name.find(place);
    return at == std::string::npos ? choice.name
                                   : fmt::format("{}@{}", choice.name.substr(0, at),
                                                 choice.name.substr(at + place.size()));
}

// "drop", "qp_error of h0/c", "fails with EIO": the words of a column without "@".
std::string label_of(std::string_view words) {
    constexpr std::string_view kBegin = "@ ";
    for (const std::string_view end : {" of @", " when @ is sent"}) {
        if (words.ends_with(end)) {
            words.remove_suffix(end.size());
        }
    }
    if (words.starts_with(kBegin)) {
        words.remove_prefix(kBegin.size());
    }
    return std::string(words);
}

class Map {
  public:
    Map(const ExploredTest& test, MapRoom& room) : test_(test), room_(room) {}

    nlohmann::ordered_json json() {
        find_columns();
        add_rows();
        nlohmann::ordered_json columns = nlohmann::ordered_json::array();
        for (const Column& column : columns_) {
            columns.push_back({label_of(column.words),
                               kChoiceGroupNames[static_cast<std::size_t>(column.group)],
                               column.words});
        }
        return {{"name", test_.name},
                {"hosts", hosts_},
                {"columns", std::move(columns)},
                {"rows", std::move(rows_)},
                {"rest", rest()}};
    }

  private:
    struct Row {
        std::size_t place;
        std::vector<const Tried*> tried;
    };

    void find_columns() {
        for (const Tried& tried : test_.result.tried) {
            std::string words = words_of(tried.choice, place_text(place_of(tried)));
            if (column_of_.emplace(words, columns_.size()).second) {
                columns_.push_back({std::move(words), tried.choice.group});
            }
        }
        std::ranges::stable_sort(columns_, {}, &Column::group);
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            column_of_[columns_[i].words] = i;
        }
    }

    [[nodiscard]] const Place& place_of(const Tried& tried) const {
        return test_.result.places[tried.choice.place];
    }

    // Packets without any choice are rows, too: they show the course of the run. Calls are not.
    void add_rows() {
        auto next = test_.result.tried.begin();
        std::int64_t number = 0;
        for (std::size_t i = 0; i < test_.result.places.size(); ++i) {
            Row row{i, {}};
            for (; next != test_.result.tried.end() && next->choice.place == i; ++next) {
                row.tried.push_back(&*next);
            }
            if (!row.tried.empty() || test_.result.places[i].call.empty()) {
                add(row, ++number);
            }
        }
    }

    void add(const Row& row, std::int64_t number) {
        const Place& place = test_.result.places[row.place];
        const std::string text = place_text(place);
        std::string cells(columns_.size(), ' ');
        nlohmann::ordered_json findings = nlohmann::ordered_json::array();
        for (const Tried* const tried : row.tried) {
            const std::size_t column = column_of_.at(words_of(tried->choice, text));
            cells[column] = tried->outcome ? letter_of(*tried->outcome) : kNotTried;
            if (tried->finding) {
                findings.push_back({column, test_.before + *tried->finding + 1});
            }
        }
        const std::size_t bytes = text.size() + cells.size() + findings.size() * 8;
        std::size_t& rows =
            room_.rows > 0 || findings.empty() ? room_.rows : room_.rows_with_findings;
        if (rows == 0 || room_.bytes < bytes) {
            leave_out(row);
            return;
        }
        --rows;
        room_.bytes -= bytes;
        const int kind = !place.call.empty() ? 2 : place.packet.is_response ? 1 : 0;
        rows_.push_back({number, text, kind, host(place.packet.host), host(place.to), cells,
                         std::move(findings)});
    }

    void leave_out(const Row& row) {
        ++left_out_;
        for (const Tried* const tried : row.tried) {
            ++outcomes_left_out_[tried->outcome ? to_string(*tried->outcome) : "not tried"];
        }
    }

    [[nodiscard]] std::string rest() const {
        if (left_out_ == 0) {
            return "";
        }
        std::vector<std::string> outcomes;
        for (const auto& [outcome, count] : outcomes_left_out_) {
            outcomes.push_back(fmt::format("{} {}", count, outcome));
        }
        return fmt::format(
            "{} not drawn, for which this page has no room. Their choices: {}.",
            fabric::counted(left_out_, "more row is", "more rows are"),
            outcomes.empty() ? "none" : fmt::format("{}", fmt::join(outcomes, ", ")));
    }

    // Hosts are columns in the order of their first packets.
    std::int64_t host(const std::string& name) {
        if (name.empty()) {
            return -1;
        }
        const auto found = std::ranges::find(hosts_, name);
        if (found != hosts_.end()) {
            return found - hosts_.begin();
        }
        hosts_.push_back(name);
        return static_cast<std::int64_t>(hosts_.size()) - 1;
    }

    const ExploredTest& test_;
    MapRoom& room_;
    std::vector<Column> columns_;
    std::map<std::string, std::size_t> column_of_;
    std::vector<std::string> hosts_;
    nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
    std::uint64_t left_out_ = 0;
    std::map<std::string_view, std::uint64_t> outcomes_left_out_;
};

}  // namespace

char letter_of(Outcome outcome) {
    switch (outcome) {
        case Outcome::kPassed:
            return '.';
        case Outcome::kMissed:
            return 'm';
        case Outcome::kFailed:
            return 'F';
        case Outcome::kWrongData:
            return 'D';
        case Outcome::kHangs:
            return 'H';
        case Outcome::kCrashed:
            return 'C';
        case Outcome::kTooLong:
            return 'L';
        case Outcome::kMisuse:
            return 'U';
        case Outcome::kLeaks:
            return 'K';
        case Outcome::kTooSlow:
            return 'S';
        case Outcome::kNotDeterministic:
            return 'N';
    }
    return ' ';
}

nlohmann::ordered_json map_of(const ExploredTest& test, MapRoom& room) {
    return Map(test, room).json();
}

}  // namespace scenarios
