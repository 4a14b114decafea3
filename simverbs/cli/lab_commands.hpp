// `simverbs lab`: exercises that teach verbs, and check what students made of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "simverbs/cli/command.hpp"
#include "simverbs/cli/lab_watch.hpp"

#include "tutorials/lab/attempt.hpp"
#include "tutorials/lab/exercise.hpp"

namespace simverbs::cli {

class LabCommands final : public Command {
  public:
    explicit LabCommands(CLI::App& app);

    [[nodiscard]] bool is_chosen() const override { return lab_->parsed(); }
    [[nodiscard]] int run() override;

  private:
    CLI::App* add(const char* name, const char* help);
    void add_time_limit(CLI::App& command);
    void add_words_of_students();
    void add_words_of_teachers();
    [[nodiscard]] std::string exercises() const;
    // Nothing after saying why.
    [[nodiscard]] std::optional<lab::Exercise> exercise() const;
    // The file that is to be checked. Nothing after saying why.
    [[nodiscard]] std::optional<std::string> answer(const lab::Exercise& exercise) const;
    [[nodiscard]] lab::Toolbox toolbox(const Interruption& interruption) const;
    [[nodiscard]] int list() const;
    [[nodiscard]] int list_as_json() const;
    [[nodiscard]] int start() const;
    [[nodiscard]] int check() const;
    [[nodiscard]] int watch() const;
    [[nodiscard]] int hint() const;
    [[nodiscard]] int solution() const;
    [[nodiscard]] int grade() const;
    [[nodiscard]] int prove() const;

    CLI::App* lab_;
    CLI::App* list_ = nullptr;
    CLI::App* start_ = nullptr;
    CLI::App* check_ = nullptr;
    CLI::App* watch_ = nullptr;
    CLI::App* hint_ = nullptr;
    CLI::App* solution_ = nullptr;
    CLI::App* grade_ = nullptr;
    CLI::App* prove_ = nullptr;
    CLI::App* rubric_ = nullptr;
    std::string exercises_;
    std::string which_;
    std::string place_ = ".";
    std::string output_;
    unsigned jobs_ = 1;
    std::chrono::milliseconds time_limit_{0};  // 0: that of the rubric
    bool python_ = false;
    bool as_json_ = false;
    bool without_pictures_ = false;
    bool without_wrong_ = false;
};

}  // namespace simverbs::cli
