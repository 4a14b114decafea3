#include "scenarios/engine/compose.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include <fmt/core.h>

namespace scenarios {

namespace yaml = fabric::yaml;
using yaml::Kind;
using yaml::Value;

namespace {

Value* find(Value& mapping, std::string_view key) {
    for (yaml::Entry& entry : mapping.entries) {
        if (entry.key.text == key) {
            return &entry.value;
        }
    }
    return nullptr;
}

bool is_flat(const Value& value) {
    return value.kind == Kind::kScalar || value.kind == Kind::kNothing ||
           (value.entries.empty() && value.items.empty());
}

std::string flat(const Value& value) {
    switch (value.kind) {
        case Kind::kMapping:
            return "{}";
        case Kind::kList:
            return "[]";
        case Kind::kScalar:
            return yaml::quoted_if_needed(value.text);
        case Kind::kNothing:
            break;
    }
    return "";
}

void write_block(const Value& value, std::size_t indent, std::string& out) {
    const std::string spaces(indent, ' ');
    for (const auto& [key, inner] : value.entries) {
        if (is_flat(inner)) {
            out += fmt::format("{}{}: {}\n", spaces, yaml::quoted_if_needed(key.text), flat(inner));
        } else {
            out += fmt::format("{}{}:\n", spaces, yaml::quoted_if_needed(key.text));
            write_block(inner, indent + 2, out);
        }
    }
    for (const Value& item : value.items) {
        if (is_flat(item)) {
            out += fmt::format("{}- {}\n", spaces, flat(item));
        } else {
            std::string inner;
            write_block(item, indent + 2, inner);
            inner.replace(indent, 1, "-");
            out += inner;
        }
    }
}

}  // namespace

Value key_named(std::string_view name) {
    Value key;
    key.kind = Kind::kScalar;
    key.text = name;
    return key;
}

void merge(Value& into, Value over) {
    if (into.kind != Kind::kMapping || over.kind != Kind::kMapping) {
        into = std::move(over);
        return;
    }
    std::map<std::string, std::size_t, std::less<>> places;  // workloads make thousands
    for (const yaml::Entry& entry : into.entries) {
        places.emplace(entry.key.text, places.size());
    }
    for (yaml::Entry& entry : over.entries) {
        const auto [place, is_new] = places.emplace(entry.key.text, into.entries.size());
        if (is_new) {
            into.entries.push_back(std::move(entry));
        } else {
            merge(into.entries[place->second].value, std::move(entry.value));
        }
    }
}

fabric::Outcome<void> set(Value& root, std::string_view setting) {
    const std::size_t equals = setting.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
        return fabric::Failure(fmt::format("--set {}: expected KEY.KEY=VALUE", setting));
    }
    yaml::Errors errors("--set " + std::string(setting));
    const auto parsed = yaml::parse(setting.substr(equals + 1), errors);
    if (!parsed) {
        return fabric::Failure(errors.text());
    }
    Value* at = &root;
    std::string_view path = setting.substr(0, equals);
    while (!path.empty()) {
        const std::size_t end = std::min(path.find('.'), path.size());
        const std::string_view key = path.substr(0, end);
        path.remove_prefix(std::min(end + 1, path.size()));
        if (at->kind == Kind::kList) {
            std::size_t index = at->items.size();
            std::from_chars(key.data(), key.data() + key.size(), index);
            if (index >= at->items.size()) {
                return fabric::Failure(fmt::format("--set {}: \"{}\" is none of the {} items there",
                                                   setting, key, at->items.size()));
            }
            at = &at->items[index];
            continue;
        }
        if (at->kind == Kind::kScalar) {
            return fabric::Failure(
                fmt::format("--set {}: there are no keys below \"{}\"", setting, at->text));
        }
        at->kind = Kind::kMapping;
        Value* next = find(*at, key);
        if (next == nullptr) {
            Value none;
            none.position = at->position;
            at->entries.push_back({key_named(key), none});
            next = &at->entries.back().value;
        }
        at = next;
    }
    const yaml::Position position = at->position;
    *at = *parsed;
    at->position = position;
    return {};
}

void apply_defaults(Value& root) {
    const Value* const defaults = find(root, "defaults");
    if (defaults == nullptr) {
        return;
    }
    Value copy = *defaults;
    Value* const connections = find(root, "connections");
    const Value* const common = find(copy, "connection");
    if (connections != nullptr && common != nullptr) {
        for (yaml::Entry& entry : connections->entries) {
            Value whole = *common;
            merge(whole, std::move(entry.value));
            entry.value = std::move(whole);
        }
    }
    std::erase_if(root.entries,
                  [](const yaml::Entry& entry) { return entry.key.text == "defaults"; });
}

std::string to_text(const Value& value) {
    std::string out;
    write_block(value, 0, out);
    return out;
}

}  // namespace scenarios
