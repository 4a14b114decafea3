#include "viz/trace_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <istream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace simverbs::viz {
namespace {

using Json = nlohmann::ordered_json;  // fields stay in the order of the file

constexpr int kKnownVersion = 1;

bool schema_fits(const std::string& line) {
    const Json schema = Json::parse(line, nullptr, false);
    return schema.is_object() && schema.value("schema", std::string()) == "simverbs-trace" &&
           schema.value("version", 0) == kKnownVersion;
}

bool read_field(const std::string& name, const Json& value, Record& record) {
    Field field{.name = name};
    if (value.is_string()) {
        field.is_text = true;
        field.text = value.get<std::string>();
    } else if (value.is_number_unsigned()) {
        field.number = static_cast<std::int64_t>(value.get<std::uint64_t>());
    } else if (value.is_number_integer()) {
        field.number = value.get<std::int64_t>();
    } else if (value.is_boolean()) {
        field.number = value.get<bool>() ? 1 : 0;
    } else {
        return false;
    }
    record.fields.push_back(std::move(field));
    return true;
}

bool read_record(const std::string& line, Record& record) {
    const Json object = Json::parse(line, nullptr, false);
    if (!object.is_object()) {
        return false;
    }
    const auto time = object.find("time");
    const auto seq = object.find("seq");
    const auto node = object.find("node");
    const auto category = object.find("category");
    const auto name = object.find("name");
    const auto fields = object.find("fields");
    const auto end = object.end();
    if (time == end || !time->is_number_integer() || seq == end || !seq->is_number_unsigned() ||
        node == end || category == end || !category->is_string() || name == end ||
        !name->is_string() || fields == end || !fields->is_object()) {
        return false;
    }
    record.time = time->get<std::int64_t>();
    record.seq = seq->get<std::uint64_t>();
    record.node = node->is_number_unsigned() ? node->get<std::uint32_t>() : Record::kNoNode;
    record.category = category->get<std::string>();
    record.name = name->get<std::string>();
    return std::all_of(fields->items().begin(), fields->items().end(), [&record](const auto& item) {
        return read_field(item.key(), item.value(), record);
    });
}

}  // namespace

const Field* Record::find(std::string_view field) const {
    const auto found = std::find_if(fields.begin(), fields.end(),
                                    [field](const Field& one) { return one.name == field; });
    return found == fields.end() ? nullptr : &*found;
}

std::int64_t Record::number(std::string_view field) const {
    const Field* const found = find(field);
    return found == nullptr ? 0 : found->number;
}

std::string_view Record::text(std::string_view field) const {
    const Field* const found = find(field);
    return found == nullptr ? std::string_view() : std::string_view(found->text);
}

fabric::Outcome<Trace> read_trace(std::istream& in, std::string_view name) {
    std::string line;
    if (!std::getline(in, line) || !schema_fits(line)) {
        return fabric::Failure(
            fmt::format("{}:1: not a trace of simverbs, version {}", name, kKnownVersion));
    }
    Trace trace;
    for (std::size_t number = 2; std::getline(in, line); ++number) {
        Record record;
        if (!read_record(line, record)) {
            if (in.eof()) {
                trace.is_cut = true;
                break;
            }
            return fabric::Failure(fmt::format("{}:{}: not a record of a trace", name, number));
        }
        trace.records.push_back(std::move(record));
    }
    return trace;
}

fabric::Outcome<Trace> read_trace(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        return fabric::Failure(fmt::format("{}: {}", path, std::strerror(errno)));
    }
    return read_trace(file, path);
}

}  // namespace simverbs::viz
