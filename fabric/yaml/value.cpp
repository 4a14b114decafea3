#include "fabric/yaml/value.hpp"

#include <algorithm>

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

namespace fabric::yaml {

namespace {

Position position_of(const YAML::Mark& mark) {
    return {static_cast<std::size_t>(std::max(mark.line, 0)) + 1,
            static_cast<std::size_t>(std::max(mark.column, 0)) + 1};
}

class Copier {
  public:
    explicit Copier(Errors& errors) : errors_(errors) {}

    Value copy(const YAML::Node& node, std::size_t depth) {
        Value value;
        value.position = position_of(node.Mark());
        if (stop_) {
            return value;
        }
        if (depth > Value::kMaxDepth || ++values_ > Value::kMaxValues) {
            stop_ = true;
            errors_.add(value.position,
                        depth > Value::kMaxDepth ? "nested too deep" : "too many values");
            return value;
        }
        if (node.IsScalar()) {
            value.kind = Kind::kScalar;
            value.text = node.Scalar();
        } else if (node.IsSequence()) {
            value.kind = Kind::kList;
            for (const YAML::Node& item : node) {
                value.items.push_back(copy(item, depth + 1));
            }
        } else if (node.IsMap()) {
            value.kind = Kind::kMapping;
            for (const auto& entry : node) {
                Value key = copy(entry.first, depth + 1);
                if (key.kind != Kind::kScalar) {
                    errors_.add(key.position, "a key is a word, no list and no mapping");
                    continue;
                }
                value.entries.push_back({std::move(key), copy(entry.second, depth + 1)});
            }
        }
        return value;
    }

  private:
    Errors& errors_;
    std::size_t values_ = 0;
    bool stop_ = false;
};

}  // namespace

void Errors::add(Position position, std::string_view text) {
    lines_.push_back(fmt::format("{}:{}:{}: {}", file_, position.line, position.column, text));
}

std::string Errors::text() const {
    std::string all;
    for (std::size_t i = 0; i < std::min(lines_.size(), kMaxLines); ++i) {
        all += fmt::format("{}{}", i == 0 ? "" : "\n", lines_[i]);
    }
    if (lines_.size() > kMaxLines) {
        all += fmt::format("\n{}: and {} more", file_, lines_.size() - kMaxLines);
    }
    return all;
}

// yaml-cpp throws; nothing of it leaves this function.
std::optional<Value> parse(std::string_view text, Errors& errors) {
    try {
        const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
        if (documents.size() > 1) {
            errors.add(position_of(documents[1].Mark()), "a second document");
            return std::nullopt;
        }
        if (documents.empty()) {
            return Value{};
        }
        Value value = Copier(errors).copy(documents[0], 0);
        return errors.empty() ? std::optional(std::move(value)) : std::nullopt;
    } catch (const YAML::Exception& exception) {
        errors.add(position_of(exception.mark), exception.msg);
        return std::nullopt;
    }
}

std::string quoted_if_needed(std::string_view text) {
    const auto is_plain = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '_' || c == '.' || c == '/' || c == ':' || c == '-' || c == ' ';
    };
    const auto is_word = [](char c) { return c != ':' && c != '-' && c != ' '; };
    const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), is_plain) &&
                       is_word(text.front()) && is_word(text.back()) &&
                       text.find(": ") == std::string_view::npos && text != "null" &&
                       text != "Null" && text != "NULL" && text != "---" && text != "...";
    if (plain) {
        return std::string(text);
    }
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            quoted += '\\';
            quoted += c;
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
            quoted += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
        } else {
            quoted += c;
        }
    }
    return quoted + '"';
}

}  // namespace fabric::yaml
