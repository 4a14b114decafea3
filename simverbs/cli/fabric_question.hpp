// One question to the fabric of a served world, and its answer.
#pragma once

#include <string>

#include "simverbs/protocol/served_protocol.hpp"

namespace simverbs::cli {

class FabricQuestion {
  public:
    // Connects to the world at `socket` and asks; is_asked() is false with errno set where nobody
    // is served there.
    FabricQuestion(const std::string& socket, const FabricRequest& request);
    ~FabricQuestion();
    FabricQuestion(const FabricQuestion&) = delete;
    FabricQuestion& operator=(const FabricQuestion&) = delete;

    [[nodiscard]] bool is_asked() const { return connection_ >= 0; }
    // Readable once there is an answer.
    [[nodiscard]] int descriptor() const { return connection_; }
    // Waits for the answer. False: the world has gone without one.
    bool take_answer();

    // Why it was not asked, or not answered.
    [[nodiscard]] const std::string& reason() const { return reason_; }
    // The answer's errno, and its text, which says what is wrong where errno is not 0.
    [[nodiscard]] int error() const { return error_; }
    [[nodiscard]] const std::string& text() const { return text_; }

  private:
    std::string socket_;
    std::string reason_;
    int connection_ = -1;
    int error_ = 0;
    std::string text_;
};

}  // namespace simverbs::cli
