// Traces from files: JSON Lines as fabric/trace writes them.
#include <fstream>
#include <map>
#include <mutex>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/engine/explain.hpp"

namespace scenarios {

namespace {

// Returns the same name where it stays for ever. Files have few names, and the same ones.
std::string_view kept_name(std::string_view name) {
    static std::mutex guard;
    static std::set<std::string, std::less<>> names;
    const std::lock_guard lock(guard);
    const auto found = names.find(name);
    return found != names.end() ? *found : *names.emplace(name).first;
}

Record record_of(const nlohmann::json& line, const std::map<std::int64_t, std::string>& names) {
    Record record;
    record.time_ps = line.value("time", std::int64_t{0});
    record.category = kept_name(line.value("category", ""));
    record.name = kept_name(line.value("name", ""));
    const nlohmann::json node = line.value("node", nlohmann::json());
    if (node.is_number_integer()) {
        const auto found = names.find(node.get<std::int64_t>());
        record.node =
            found == names.end() ? fmt::format("node {}", node.get<std::int64_t>()) : found->second;
    }
    const nlohmann::json fields = line.value("fields", nlohmann::json::object());
    for (const auto& [name, value] : fields.items()) {
        Record::Field field{kept_name(name),
                            value.is_string() ? value.get<std::string>() : value.dump(), 0};
        if (value.is_boolean()) {
            field.number = value.get<bool>() ? 1 : 0;
        } else if (value.is_number_integer()) {
            field.number = value.is_number_unsigned()
                               ? value.get<std::uint64_t>()
                               : static_cast<std::uint64_t>(value.get<std::int64_t>());
        }
        record.fields.push_back(std::move(field));
    }
    return record;
}

}  // namespace

fabric::Outcome<std::vector<Record>> read_trace(const std::string& file) {
    std::ifstream in(file);
    std::vector<Record> records;
    std::map<std::int64_t, std::string> names;
    std::size_t number = 0;
    for (std::string text; std::getline(in, text);) {
        ++number;
        const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
        const bool is_schema = number == 1 && line.is_object() &&
                               line.value("schema", nlohmann::json()) == "simverbs-trace";
        if (!line.is_object() || (number == 1 && !is_schema)) {
            return fabric::Failure(
                fmt::format("{}:{}: {}", file, number,
                            number == 1 ? "no trace of simverbs" : "no JSON object"));
        }
        if (is_schema) {
            continue;
        }
        try {
            Record record = record_of(line, names);
            if (record.name == "node" && line.at("node").is_number_integer()) {
                names[line.at("node").get<std::int64_t>()] = record.text("label");
            }
            records.push_back(std::move(record));
        } catch (const nlohmann::json::exception&) {
            return fabric::Failure(fmt::format("{}:{}: no trace record", file, number));
        }
    }
    if (number == 0) {
        return fabric::Failure(file + ": cannot be read, or is empty");
    }
    return records;
}

}  // namespace scenarios
