// The JSON Schema of shapes, for editors that complete and check.
#include <map>

#include <nlohmann/json.hpp>

#include "scenarios/engine/shape.hpp"

namespace scenarios {

namespace {

using Json = nlohmann::ordered_json;

class Writer {
  public:
    Json write(const Shape& shape) {
        if (shape.title.empty()) {
            return body(shape);
        }
        const std::string title(shape.title);
        if (!defined_.contains(title)) {
            defined_[title] = {};  // it contains itself
            defined_[title] = body(shape);
        }
        return {{"$ref", "#/$defs/" + title}};
    }
    [[nodiscard]] Json definitions() const {
        Json all = Json::object();
        for (const auto& [title, body] : defined_) {
            all[title] = body;
        }
        return all;
    }

  private:
    Json body(const Shape& shape) {
        Json own = own_kind(shape);
        if (shape.instead == nullptr) {
            return own;
        }
        return {{"anyOf", Json::array({own, write(*shape.instead)})}};
    }

    Json own_kind(const Shape& shape) {
        switch (shape.kind) {
            case ShapeKind::kNumber: {
                Json number = {{"type", "integer"}, {"minimum", shape.least}};
                if (shape.most != std::numeric_limits<std::uint64_t>::max()) {
                    number["maximum"] = shape.most;
                }
                return shape.words.empty()
                           ? number
                           : Json{{"anyOf", Json::array({number, {{"enum", shape.words}}})}};
            }
            case ShapeKind::kFlag:
                return {{"type", "boolean"}};
            case ShapeKind::kDuration:
                return {{"type", "string"}, {"pattern", "^[0-9]+(\\.[0-9]+)? ?(ps|ns|us|ms|s)$"}};
            case ShapeKind::kSize:
                return {{"anyOf",
                         Json::array(
                             {{{"type", "integer"}, {"minimum", shape.least}},
                              {{"type", "string"},
                               {"pattern", "^[0-9]+(\\.[0-9]+)? ?(B|KiB|MiB|GiB|kB|MB|GB)$"}}})}};
            case ShapeKind::kWord: {
                Json words = Json::array();
                for (const std::string_view word : shape.words) {
                    words.push_back(word);
                }
                return {{"enum", words}};
            }
            case ShapeKind::kList:
                return {{"type", "array"}, {"items", write(*shape.item)}};
            case ShapeKind::kNamed:
                return {{"type", "object"}, {"additionalProperties", write(*shape.item)}};
            case ShapeKind::kMapping:
            case ShapeKind::kOneOf:
                return mapping(shape);
            case ShapeKind::kAnything:
                return Json::object();
            case ShapeKind::kText:
            case ShapeKind::kName:
                break;
        }
        return {{"type", Json::array({"string", "number"})}};
    }

    Json mapping(const Shape& shape) {
        Json properties = Json::object();
        Json required = Json::array();
        Json one_of = Json::array();
        for (const std::span<const Key> keys : {shape.keys, shape.more}) {
            for (const Key& key : keys) {
                Json property = write(*key.shape);
                property["description"] = key.what;
                properties[std::string(key.name)] = property;
                if (key.required) {
                    required.push_back(key.name);
                }
            }
        }
        Json all = {{"type", "object"}, {"properties", properties}};
        all["additionalProperties"] = false;
        if (!required.empty()) {
            all["required"] = required;
        }
        if (shape.kind == ShapeKind::kOneOf) {
            for (const Key& key : shape.keys) {
                one_of.push_back({{"required", Json::array({key.name})}});
            }
            all["oneOf"] = one_of;
        }
        return all;
    }

    std::map<std::string, Json> defined_;
};

}  // namespace

std::string json_schema(const Shape& shape, std::string_view title) {
    Writer writer;
    Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
    schema.update(writer.write(shape));
    schema["$defs"] = writer.definitions();
    return schema.dump(2) + "\n";
}

}  // namespace scenarios
