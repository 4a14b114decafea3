#include "fabric/topology/ibnetdiscover_records.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/core.h>

#include "fabric/topology/text_file.hpp"

namespace fabric::ibnetdiscover {

namespace {

// Files that include one another come to an end here, as in ibsim.
constexpr std::size_t kMaxIncludes = 9;

bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

// The rest of a line, and its column.
class Cursor {
  public:
    explicit Cursor(std::string_view line) : line_(line) {}

    [[nodiscard]] std::size_t column() const { return at_ + 1; }
    [[nodiscard]] std::string_view rest() const { return line_.substr(at_); }
    [[nodiscard]] bool at_end() const { return at_ == line_.size(); }

    void skip_spaces() {
        while (!at_end() && is_space(line_[at_])) {
            ++at_;
        }
    }
    bool skip(std::string_view text) {
        const bool found = rest().starts_with(text);
        at_ += found ? text.size() : 0;
        return found;
    }
    // Up to `end`, which is passed over too; nothing when there is none.
    std::optional<std::string_view> take_until(std::string_view end) {
        const std::size_t found = line_.find(end, at_);
        if (found == std::string_view::npos) {
            return std::nullopt;
        }
        const std::string_view taken = line_.substr(at_, found - at_);
        at_ = found + end.size();
        return taken;
    }
    // Up to the next space, empty at the end.
    std::string_view take_word() {
        skip_spaces();
        const std::size_t begin = at_;
        while (!at_end() && !is_space(line_[at_])) {
            ++at_;
        }
        return line_.substr(begin, at_ - begin);
    }
    template <class Number>
    std::optional<Number> take_number(int base = 10) {
        Number number = 0;
        const char* const begin = line_.data() + at_;
        const auto [end, status] =
            std::from_chars(begin, line_.data() + line_.size(), number, base);
        if (status != std::errc{}) {
            return std::nullopt;
        }
        at_ += static_cast<std::size_t>(end - begin);
        return number;
    }

  private:
    std::string_view line_;
    std::size_t at_ = 0;
};

class Parser {
  public:
    explicit Parser(Records& records) : records_(records) {}

    // False: records_.error says why.
    bool parse_file(std::string_view text, const std::string& name) {
        const std::size_t file = records_.files.size();
        records_.files.push_back(name);
        std::size_t number = 0;
        while (!text.empty()) {
            const std::size_t end = std::min(text.find('\n'), text.size());
            place_ = {file, ++number, 1};
            Cursor line(text.substr(0, end));
            text.remove_prefix(std::min(end + 1, text.size()));
            if (!parse_line(line)) {
                return false;
            }
        }
        node_ = nullptr;
        return true;
    }

  private:
    enum Type : std::uint8_t { kHca, kSwitch, kTypes };

    bool fail(const Cursor& line, std::string_view text) {
        Place place = place_;
        place.column = line.column();
        records_.error = records_.at(place, text);
        return false;
    }

    bool parse_line(Cursor& line) {
        line.skip_spaces();
        const std::string_view text = line.rest();
        if (text.starts_with('#')) {
            return true;
        }
        if (text.starts_with('[')) {
            return parse_port(line);
        }
        node_ = nullptr;  // anything else ends the node's record
        if (text.empty()) {
            return true;
        }
        return parse_keyword(line);
    }

    bool parse_keyword(Cursor& line) {
        using Parse = bool (Parser::*)(Cursor&);
        struct Keyword {
            std::string_view name;
            Parse parse;
        };
        static constexpr auto kKeywords = std::to_array<Keyword>({
            {"switchguid", &Parser::parse_guid_base<kSwitch>},
            {"Switch", &Parser::parse_node<kSwitch>},
            {"hcaguids", &Parser::parse_guid_base<kHca>},
            {"caguid", &Parser::parse_guid_base<kHca>},
            {"Hca", &Parser::parse_node<kHca>},
            {"Ca", &Parser::parse_node<kHca>},
            {"width", &Parser::parse_width},
            {"speed", &Parser::parse_speed},
            {"module", &Parser::parse_module},
            {"include", &Parser::parse_include},
            {"vendid", &Parser::pass_over},
            {"devid", &Parser::pass_over},
            {"sysimgguid", &Parser::pass_over},
            {"Chassis", &Parser::pass_over},
            {"Hostname", &Parser::pass_over},
            {"pdebug", &Parser::pass_over},
            {"rtguid", &Parser::refuse_routers},
            {"Rt", &Parser::refuse_routers},
            {"@", &Parser::refuse_aliases},
            {"do", &Parser::refuse_commands},
        });
        for (const Keyword& keyword : kKeywords) {
            if (line.rest().starts_with(keyword.name)) {
                line.skip(keyword.name);
                return (this->*keyword.parse)(line);
            }
        }
        return fail(line, "expected a node (Switch or Ca), a port ([1] ...), a GUID or a comment");
    }

    bool pass_over(Cursor& /*line*/) { return true; }
    bool refuse_routers(Cursor& line) { return fail(line, "routers are not modelled"); }
    bool refuse_aliases(Cursor& line) {
        return fail(line, "aliases of ports are not read: name the node and its port");
    }
    bool refuse_commands(Cursor& line) {
        return fail(line, "commands of ibsim's console are not carried out");
    }

    // "=0x200000(...)", or "+16" beyond the last "=".
    template <Type kType>
    bool parse_guid_base(Cursor& line) {
        const bool relative = line.rest().find('=') == std::string_view::npos;
        if (!line.take_until(relative ? "+" : "=")) {
            return fail(line, "expected = and a GUID, or + and a number");
        }
        line.skip_spaces();
        const auto value = line.skip("0x") ? line.take_number<std::uint64_t>(16)
                                           : line.take_number<std::uint64_t>();
        if (!value || (!relative && *value == 0)) {
            return fail(line, "expected a GUID, such as 0x0002c90300a1b2c3");
        }
        if (!relative) {
            bases_[kType] = *value;
        }
        next_guids_[kType] = bases_[kType] + (relative ? *value : 0);
        return true;
    }

    bool parse_mask(Cursor& line, unsigned most, unsigned& mask) {
        const bool has_sign = line.take_until("=").has_value();
        line.skip_spaces();
        const Cursor before = line;
        const auto value = has_sign ? line.take_number<unsigned>() : std::nullopt;
        if (!value || *value == 0 || *value > most) {
            return fail(before, fmt::format("expected = and a mask from 1 to {}", most));
        }
        mask = *value;
        return true;
    }
    bool parse_width(Cursor& line) { return parse_mask(line, kMostWidths, widths_); }
    bool parse_speed(Cursor& line) { return parse_mask(line, kMostSpeeds, speeds_); }

    bool parse_module(Cursor& line) {
        line.take_until("\"");
        const auto name = line.take_until("\"");
        if (!name) {
            return fail(line, "expected a name in quotes");
        }
        module_ = *name;
        return true;
    }

    bool parse_include(Cursor& line) {
        const Cursor before = line;
        line.take_until("\"");
        const auto name = line.take_until("\"");
        if (!name) {
            return fail(line, "expected the name of a file in quotes");
        }
        if (includes_ == kMaxIncludes) {
            return fail(before, fmt::format("{} files include one another", kMaxIncludes));
        }
        const std::string& from = records_.files[place_.file];
        const std::size_t folder = from.rfind('/');
        std::string path(*name);
        if (!path.starts_with('/') && folder != std::string::npos) {
            path = from.substr(0, folder + 1) + path;
        }
        const auto text = read_text_file(path);
        if (!text) {
            return fail(before, text.error());
        }
        const Place place = place_;
        ++includes_;
        const bool parsed = parse_file(*text, path);
        --includes_;
        place_ = place;
        return parsed;
    }

    [[nodiscard]] std::string with_module(std::string_view id) const {
        return module_.empty() ? std::string(id) : fmt::format("{}#{}", module_, id);
    }

    // "	8 "Switch1"	# "description" base port 0 lid 3 lmc 0".
    template <Type kType>
    bool parse_node(Cursor& line) {
        NodeRecord node;
        node.place = place_;
        node.kind = kType == kSwitch ? NodeKind::kSwitch : NodeKind::kHca;
        line.skip_spaces();
        const auto ports = line.take_number<std::uint16_t>();
        if (!ports || *ports == 0) {
            return fail(line, "expected the number of ports");
        }
        node.port_count = *ports;
        line.skip_spaces();
        if (!line.skip("\"")) {
            return fail(line, "expected the node's id in quotes");
        }
        const auto id = line.take_until("\"");
        if (!id || id->empty()) {
            return fail(line, "expected an id and a closing quote");
        }
        node.id = with_module(*id);
        node.description = description_in(line);
        if (next_guids_[kType] != 0) {
            node.guid = Guid(next_guids_[kType]);
            next_guids_[kType] += kType == kSwitch ? 1U : node.port_count + 1U;
        }
        records_.nodes.push_back(std::move(node));
        node_ = &records_.nodes.back();
        return true;
    }

    // In quotes, or up to what is said of the switch's port 0.
    static std::string description_in(Cursor& line) {
        if (!line.take_until("#")) {
            return {};
        }
        line.skip_spaces();
        if (line.skip("\"")) {
            const std::string_view rest = line.rest();
            return std::string(rest.substr(0, std::min(rest.rfind('"'), rest.size())));
        }
        std::string_view text = line.rest();
        for (const std::string_view end : {" enhanced port ", " base port ", " lid ", " lmc "}) {
            text = text.substr(0, std::min(text.find(end), text.size()));
        }
        while (!text.empty() && is_space(text.back())) {
            text.remove_suffix(1);
        }
        return std::string(text);
    }

    // [1](2c90300a1b2c4) 	"S-0002c90300d5e6f7"[3](...) w=2	# lid 4 lmc 0 "description"
    // lid 2 4xEDR
    bool parse_port(Cursor& line) {
        PortRecord port;
        port.place = place_;
        port.widths = widths_;
        port.speeds = speeds_;
        const Cursor before = line;
        line.skip("[");
        const auto number = line.take_number<std::uint16_t>();
        if (node_ == nullptr) {
            return fail(before, "a port outside of a node's record");
        }
        if (!number || *number == 0 || *number > node_->port_count || !line.skip("]")) {
            return fail(before, fmt::format("expected a port from [1] to [{}], as {} has",
                                            node_->port_count, node_->id));
        }
        if (!skip_outer_port(line) || !take_guid(line, port.guid)) {
            return false;
        }
        line.skip_spaces();
        if (!line.skip("\"")) {
            return fail(line, "expected the id of the node at the other end in quotes");
        }
        const auto id = line.take_until("\"");
        if (!id) {
            return fail(line, "expected a closing quote");
        }
        port.remote_id =
            id->find('#') == std::string_view::npos ? with_module(*id) : std::string(*id);
        if (id->find('@') != std::string_view::npos) {
            return refuse_aliases(line);
        }
        if (line.skip("[")) {
            const auto remote = line.take_number<std::uint16_t>();
            if (!remote || *remote == 0 || !line.skip("]")) {
                return fail(line, "expected the number of the port at the other end");
            }
            port.remote_port = *remote;
        }
        Guid remote_guid;
        if (!skip_outer_port(line) || !take_guid(line, remote_guid) || !parse_options(line, port)) {
            return false;
        }
        if (!node_->ports.emplace(*number, std::move(port)).second) {
            return fail(before, fmt::format("port {} of {} has two links", *number, node_->id));
        }
        return true;
    }

    // "[ext 5]": what is printed on the outside of a chassis.
    bool skip_outer_port(Cursor& line) {
        return !line.skip("[ext ") || line.take_until("]") || fail(line, "expected ]");
    }

    bool take_guid(Cursor& line, Guid& guid) {
        line.skip_spaces();
        if (!line.skip("(")) {
            return true;
        }
        const auto value = line.take_number<std::uint64_t>(16);
        if (!value || !line.skip(")")) {
            return fail(line, "expected a GUID in hexadecimal digits and )");
        }
        guid = Guid(*value);
        return true;
    }

    // Before the comment they are ibsim's, within it what ibnetdiscover reports; descriptions end
    // with the last quote.
    bool parse_options(Cursor& line, PortRecord& port) {
        const std::string_view rest = line.rest();
        const bool has_comment = rest.find('#') != std::string_view::npos;
        while (true) {
            const Cursor before = line;
            const std::string_view word = line.take_word();
            if (word.empty() || word.starts_with('#')) {
                break;
            }
            if (!parse_option(word, port)) {
                return fail(before, fmt::format("\"{}\": expected w= or s= and a mask, or # and a "
                                                "comment",
                                                word));
            }
        }
        if (!has_comment) {
            return true;
        }
        while (line.take_until("\"")) {
        }
        for (std::string_view word = line.take_word(); !word.empty(); word = line.take_word()) {
            parse_option(word, port);  // or a word like any other
            parse_rate(word, port);
        }
        return true;
    }

    static bool parse_option(std::string_view word, PortRecord& port) {
        constexpr std::array<std::uint8_t, 6> kLanes = {0, 1, 2, 4, 8, 15};  // by PortInfo:VLCap
        unsigned value = 0;
        const auto [end, status] = std::from_chars(
            word.begin() + std::min<std::size_t>(2, word.size()), word.end(), value);
        if (word.size() < 3 || word[1] != '=' || status != std::errc{} || end != word.end() ||
            value == 0) {
            return false;
        }
        if (word[0] == 'w' && value <= kMostWidths) {
            port.widths = value;
            return true;
        }
        if (word[0] == 's' && value <= kMostSpeeds) {
            port.speeds = value;
            return true;
        }
        if (word[0] == 'v' && value < kLanes.size()) {
            port.vls = kLanes[value];
            return true;
        }
        return false;
    }

    static void parse_rate(std::string_view word, PortRecord& port) {
        const std::size_t times = word.find('x');
        if (times == std::string_view::npos) {
            return;
        }
        for (const LinkWidthProperties& row : kLinkWidths) {
            if (row.name == word.substr(0, times + 1)) {
                port.width = row.width;
            }
        }
        for (const LinkSpeedProperties& row : kLinkSpeeds) {
            if (port.width && row.name == word.substr(times + 1)) {
                port.speed = row.speed;
            }
        }
    }

    static constexpr unsigned kMostWidths = 31;  // 1x, 4x, 8x, 12x, 2x
    static constexpr unsigned kMostSpeeds = 7;   // SDR, DDR, QDR

    Records& records_;
    Place place_;
    NodeRecord* node_ = nullptr;  // whose ports follow
    std::array<std::uint64_t, kTypes> bases_{};
    std::array<std::uint64_t, kTypes> next_guids_{};  // 0: none is given
    unsigned widths_ = ~0U;
    unsigned speeds_ = ~0U;
    std::string module_;
    std::size_t includes_ = 0;
};

}  // namespace

std::string Records::at(const Place& place, std::string_view text) const {
    return fmt::format("{}:{}:{}: {}", files.at(place.file), place.line, place.column, text);
}

Records parse(std::string_view text, const std::string& file) {
    Records records;
    Parser(records).parse_file(text, file);
    return records;
}

}  // namespace fabric::ibnetdiscover
