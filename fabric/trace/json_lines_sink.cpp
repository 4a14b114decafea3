#include "fabric/trace/json_lines_sink.hpp"

#include <cerrno>
#include <iterator>
#include <ostream>

#include <fmt/format.h>

namespace fabric::trace {

JsonLinesSink::JsonLinesSink(std::ostream& out) : out_(out) {
    write_schema();
}

JsonLinesSink::JsonLinesSink(const std::string& path)
    : file_(path, std::ios::binary | std::ios::trunc), out_(file_) {
    write_schema();
}

JsonLinesSink::~JsonLinesSink() {
    flush();
}

void JsonLinesSink::flush() {
    out_.flush();
    note_error();
}

void JsonLinesSink::note_error() {
    if (error_ == 0 && !out_.good()) {
        error_ = errno != 0 ? errno : EIO;
    }
}

bool JsonLinesSink::ok() const {
    return out_.good();
}

void JsonLinesSink::write_schema() {
    out_ << fmt::format(R"({{"schema":"simverbs-trace","version":{},"time_unit":"ps",)"
                        R"("members":["time","seq","node","category","name","fields"]}})"
                        "\n",
                        kSchemaVersion);
}

void JsonLinesSink::record(const TraceRecord& record) {
    line_.clear();
    const auto append = std::back_inserter(line_);
    fmt::format_to(append, R"({{"time":{},"seq":{},"node":)", to_picoseconds(record.time),
                   record.seq);
    if (record.node == kNoNode) {
        line_ += "null";
    } else {
        fmt::format_to(append, "{}", record.node.value());
    }
    fmt::format_to(append, R"(,"category":"{}","name":)", to_string(record.category));
    append_json_string(line_, record.name);
    line_ += ",\"fields\":{";
    for (const Field& field : record.fields) {
        if (&field != &record.fields.front()) {
            line_ += ',';
        }
        append_json_string(line_, field.name);
        line_ += ':';
        switch (field.kind) {
            case Field::Kind::kSigned:
                fmt::format_to(append, "{}", static_cast<std::int64_t>(field.number));
                break;
            case Field::Kind::kUnsigned:
                fmt::format_to(append, "{}", field.number);
                break;
            case Field::Kind::kBool:
                line_ += field.number != 0 ? "true" : "false";
                break;
            case Field::Kind::kText:
            case Field::Kind::kEnum:
                append_json_string(line_, field.text);
                break;
        }
    }
    line_ += "}}\n";
    out_.write(line_.data(), static_cast<std::streamsize>(line_.size()));
    if (flushes_each_) {
        out_.flush();
    }
    note_error();
}

void append_json_string(std::string& out, std::string_view text) {
    out += '"';
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\n') {
            out += "\\n";
        } else if (c == '\t') {
            out += "\\t";
        } else if (byte < 0x20 || byte == 0x7F) {
            fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
        } else {
            out += c;
        }
    }
    out += '"';
}

}  // namespace fabric::trace
