#include "drawing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string_view>

#include <expat.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace viz_test {
namespace {

using Attributes = std::map<std::string, std::string, std::less<>>;

// Advance widths of Helvetica for the characters from space to tilde, in thousandths of the size.
constexpr std::array<int, 95> kHelvetica = {
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333,  278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667,  611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278,  556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500,  500, 334, 260, 334, 584};
constexpr int kOther = 600;  // of characters outside that table

double width_of(std::string_view text, double size) {
    int sum = 0;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7f) {
            sum += kHelvetica.at(byte - 0x20U);
        } else if (byte == 0xc2) {  // of a no-break space, the only one here
            sum += kHelvetica.front();
        } else if (byte >= 0xc0 || byte < 0x20) {  // one for the bytes of a character
            sum += kOther;
        }
    }
    return sum * size / 1000;
}

double number(const Attributes& of, std::string_view name, double otherwise = 0) {
    const auto found = of.find(name);
    return found == of.end() ? otherwise : std::strtod(found->second.c_str(), nullptr);
}

std::string word(const Attributes& of, std::string_view name) {
    const auto found = of.find(name);
    return found == of.end() ? std::string() : found->second;
}

bool is_seen(const std::string& paint) {
    return !paint.empty() && paint != "none" && paint != "transparent";
}

// The numbers of "M12,3 L4.5,6": letters and commas only separate them.
std::vector<double> numbers_of(const std::string& text) {
    std::vector<double> all;
    const char* at = text.c_str();
    while (*at != '\0') {
        char* end = nullptr;
        const double value = std::strtod(at, &end);
        if (end == at) {
            ++at;
        } else {
            all.push_back(value);
            at = end;
        }
    }
    return all;
}

std::vector<Point> points_of(const std::string& text) {
    const std::vector<double> all = numbers_of(text);
    std::vector<Point> points;
    for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
        points.push_back({all[i], all[i + 1]});
    }
    return points;
}

void add_curve(std::vector<Point>& line, Point a, Point b, Point c) {
    constexpr int kPieces = 16;
    const Point from = line.back();
    for (int i = 1; i <= kPieces; ++i) {
        const double t = static_cast<double>(i) / kPieces;
        const double u = 1 - t;
        const auto along = [t, u](double p, double q, double r, double s) {
            return u * u * u * p + 3 * u * u * t * q + 3 * u * t * t * r + t * t * t * s;
        };
        line.push_back({along(from.x, a.x, b.x, c.x), along(from.y, a.y, b.y, c.y)});
    }
}

// Absolute M, L, C and Z, in one subpath each.
std::vector<std::vector<Point>> subpaths_of(const std::string& path) {
    std::vector<std::vector<Point>> lines;
    for (std::size_t at = 0; at < path.size();) {
        const std::size_t next = path.find_first_of("MLCZz", at + 1);
        const std::vector<Point> points =
            points_of(path.substr(at + 1, next == std::string::npos ? next : next - at - 1));
        if (path[at] == 'M') {
            lines.push_back(points);
        } else if (path[at] == 'C') {
            for (std::size_t i = 0; i + 2 < points.size(); i += 3) {
                add_curve(lines.back(), points[i], points[i + 1], points[i + 2]);
            }
        } else if (path[at] == 'L') {
            lines.back().insert(lines.back().end(), points.begin(), points.end());
        } else {
            lines.back().push_back(lines.back().front());
        }
        at = next;
    }
    return lines;
}

class Reader {
  public:
    Drawing drawing;

    void begin(const std::string& element, const Attributes& own) {
        if (hidden_ > 0 || element == "defs" || element == "title" || element == "marker") {
            ++hidden_;
            return;
        }
        const Point before = shift_;
        Attributes all = inherited_.empty() ? Attributes{} : inherited_.back();
        for (const char* const local : {"id", "class", "x", "y", "transform", "marker-end"}) {
            all.erase(local);
        }
        for (const auto& [name, value] : own) {
            all.insert_or_assign(name, value);
        }
        if (element == "svg") {
            open_page(all);
        } else if (element == "g") {
            move(all);
            node_ = word(own, "class") == "node" ? ++nodes_ : 0;
        } else if (element == "text") {
            text_.clear();
        } else {
            add_shape(element, all);
        }
        inherited_.push_back(std::move(all));
        shifts_.push_back(before);
    }

    void end(const std::string& element) {
        if (hidden_ > 0) {
            --hidden_;
            return;
        }
        if (element == "text") {
            add_text(inherited_.back());
        }
        inherited_.pop_back();
        shift_ = shifts_.back();
        shifts_.pop_back();
    }

    void characters(std::string_view more) { text_ += more; }

  private:
    void open_page(const Attributes& of) {
        const bool in_points = word(of, "width").ends_with("pt");
        const double scale = in_points ? 4.0 / 3 : 1;
        drawing.width = number(of, "width") * scale;
        drawing.height = number(of, "height") * scale;
        const std::vector<double> box = numbers_of(word(of, "viewBox"));
        drawing.page = box.size() == 4 ? Area{box[0], box[1], box[0] + box[2], box[1] + box[3]}
                                       : Area{0, 0, drawing.width, drawing.height};
    }

    // "scale(1 1) rotate(0) translate(4 256)"; only the last is ever used.
    void move(const Attributes& of) {
        const std::string transform = word(of, "transform");
        const std::size_t at = transform.find("translate(");
        if (at != std::string::npos) {
            const std::vector<double> by = numbers_of(transform.substr(at));
            shift_ = {shift_.x + by.at(0), shift_.y + by.at(1)};
        }
    }

    void add_text(const Attributes& of) {
        DrawnText text{.order = order_++, .node = node_};
        text.has_edge = word(of, "paint-order") == "stroke" && word(of, "stroke") == "#ffffff";
        for (const char c : text_) {
            const bool is_space = c == ' ' || c == '\n' || c == '\t';
            if (is_space && (text.content.empty() || text.content.back() == ' ')) {
                text.loses_space = true;
                continue;
            }
            text.content += is_space ? ' ' : c;
        }
        if (text.content.ends_with(' ')) {
            text.loses_space = true;
            text.content.pop_back();
        }
        const double size = number(of, "font-size", 16);
        const double width = width_of(text.content, size);
        const std::string anchor = word(of, "text-anchor");
        const double x = number(of, "x") + shift_.x -
                         (anchor == "end"      ? width
                          : anchor == "middle" ? width / 2
                                               : 0);
        const double y = number(of, "y") + shift_.y;
        text.area = {x, y - 0.72 * size, x + width, y + 0.2 * size};
        if (!text.content.empty()) {
            drawing.texts.push_back(std::move(text));
        }
    }

    void add_shape(const std::string& element, const Attributes& of) {
        std::vector<std::vector<Point>> outlines;
        if (element == "path") {
            outlines = subpaths_of(word(of, "d"));
        } else if (element == "polygon" || element == "polyline") {
            outlines = {points_of(word(of, "points"))};
        } else if (element == "line") {
            outlines = {
                {{number(of, "x1"), number(of, "y1")}, {number(of, "x2"), number(of, "y2")}}};
        } else if (element == "rect") {
            outlines = {rectangle(of)};
        } else if (element == "circle" || element == "ellipse") {
            outlines = {ellipse(of)};
        }
        const bool is_open = element == "line" || element == "polyline";
        const bool is_filled = !is_open && (is_seen(word(of, "fill")) || word(of, "fill").empty());
        for (std::vector<Point>& points : outlines) {
            for (Point& point : points) {
                point = {point.x + shift_.x, point.y + shift_.y};
            }
            if (is_filled) {
                drawing.fills.push_back(
                    {around(points), order_, is_seen(word(of, "stroke")) && points.size() != 4});
            }
            if (node_ != 0 && !is_open && is_seen(word(of, "stroke"))) {
                drawing.nodes.push_back({around(points), node_});
            }
            if (element == "polygon" && points.size() == 4 && is_filled) {
                drawing.arrowheads.push_back(points[1]);  // as Graphviz writes them
            }
            if (is_seen(word(of, "stroke"))) {
                drawing.lines.push_back({std::move(points), order_});
            }
            ++order_;
        }
    }

    [[nodiscard]] std::vector<Point> rectangle(const Attributes& of) const {
        const double x = number(of, "x");
        const double y = number(of, "y");
        const auto length = [&of](const char* name, double whole) {
            return word(of, name).ends_with('%') ? whole * number(of, name) / 100
                                                 : number(of, name);
        };
        const double right = x + length("width", drawing.width);
        const double bottom = y + length("height", drawing.height);
        return {{x, y}, {right, y}, {right, bottom}, {x, bottom}, {x, y}};
    }

    static std::vector<Point> ellipse(const Attributes& of) {
        constexpr int kPieces = 32;
        constexpr double kTurn = 6.283185307179586;
        const double rx = number(of, "rx", number(of, "r"));
        const double ry = number(of, "ry", number(of, "r"));
        std::vector<Point> points;
        for (int i = 0; i <= kPieces; ++i) {
            points.push_back({number(of, "cx") + rx * std::cos(kTurn * i / kPieces),
                              number(of, "cy") + ry * std::sin(kTurn * i / kPieces)});
        }
        return points;
    }

    std::vector<Attributes> inherited_;
    std::string text_;
    Point shift_;
    std::vector<Point> shifts_;  // outside each open element
    std::size_t order_ = 0;
    std::size_t node_ = 0;   // that is being read
    std::size_t nodes_ = 0;  // so far
    int hidden_ = 0;
};

}  // namespace

Area around(const std::vector<Point>& points) {
    Area area{points.front().x, points.front().y, points.front().x, points.front().y};
    for (const Point& point : points) {
        area.left = std::min(area.left, point.x);
        area.right = std::max(area.right, point.x);
        area.top = std::min(area.top, point.y);
        area.bottom = std::max(area.bottom, point.y);
    }
    return area;
}

Drawing read_drawing(const std::string& svg) {
    Reader reader;
    XML_Parser parser = XML_ParserCreate(nullptr);
    XML_SetUserData(parser, &reader);
    XML_SetElementHandler(
        parser,
        [](void* to, const char* name, const char** pairs) {
            Attributes attributes;
            for (; *pairs != nullptr; pairs += 2) {
                attributes.emplace(pairs[0], pairs[1]);
            }
            static_cast<Reader*>(to)->begin(name, attributes);
        },
        [](void* to, const char* name) { static_cast<Reader*>(to)->end(name); });
    XML_SetCharacterDataHandler(parser, [](void* to, const char* text, int size) {
        static_cast<Reader*>(to)->characters({text, static_cast<std::size_t>(size)});
    });
    if (XML_Parse(parser, svg.data(), static_cast<int>(svg.size()), 1) == XML_STATUS_ERROR) {
        reader.drawing.error = fmt::format("line {}: {}", XML_GetCurrentLineNumber(parser),
                                           XML_ErrorString(XML_GetErrorCode(parser)));
    }
    XML_ParserFree(parser);
    return std::move(reader.drawing);
}

}  // namespace viz_test
