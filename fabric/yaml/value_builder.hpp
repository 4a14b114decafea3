// A tree of values from the events of yaml-cpp's parser. No tree of yaml-cpp's own stands between:
// it takes several times the memory, and aliases that grow without bound are stopped as they come.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include "fabric/yaml/value.hpp"

namespace fabric::yaml {

Position position_of(const YAML::Mark& mark);

// One document. Limits of Value are exceptions of YAML::Exception's kind, as the parser's own are;
// what else is wrong goes to the errors.
class ValueBuilder final : public YAML::EventHandler {
  public:
    explicit ValueBuilder(Errors& errors) : errors_(errors) {}

    [[nodiscard]] Position begin() const { return begin_; }
    [[nodiscard]] Value take() { return std::move(root_); }

    void OnDocumentStart(const YAML::Mark& mark) override;
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& text) override;
    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value style) override;
    void OnSequenceEnd() override { close(); }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value style) override;
    void OnMapEnd() override { close(); }

  private:
    // A list or mapping that has not ended.
    struct Open {
        Value value;
        YAML::anchor_t anchor;
        std::optional<Value> key;  // of a mapping: its value comes next
    };

    void open(const YAML::Mark& mark, Kind kind, YAML::anchor_t anchor);
    void close();
    void add(Value value, YAML::anchor_t anchor);
    void count(const YAML::Mark& mark, const Value& value, std::size_t depth);

    Errors& errors_;
    Position begin_;
    Value root_;
    std::vector<Open> open_;
    std::map<YAML::anchor_t, Value> anchored_;
    std::size_t values_ = 0;
    std::size_t text_ = 0;
};

}  // namespace fabric::yaml
