// `simverbs lab watch`: a check at every save of an answer, until Ctrl-C; and Ctrl-C itself, for
// all words of `simverbs lab` that run programs of students.
#pragma once

#include <string>

#include "tutorials/lab/attempt.hpp"
#include "tutorials/lab/exercise.hpp"

namespace simverbs::cli {

// Takes SIGINT, SIGTERM and SIGHUP for as long as it lives: they end a run, not this process.
// Throws std::system_error.
class Interruption {
  public:
    Interruption();
    ~Interruption();
    Interruption(const Interruption&) = delete;
    Interruption& operator=(const Interruption&) = delete;

    // Readable once a signal has come.
    [[nodiscard]] int descriptor() const { return descriptor_; }
    // Returns the signal that has come; 0: none.
    [[nodiscard]] int signal() const;

  private:
    int descriptor_;
};

// Checks once, prints the report, and notes in the student's folder when it is solved. Pictures go
// beside the file. Returns an exit status: kUsage after saying why nothing can be judged here.
int check_and_report(const lab::Exercise& exercise, const lab::Toolbox& toolbox,
                     const std::string& file, bool with_pictures);

// Checks now and at every save. Ends by `interruption`, or false when the folder of the file is
// gone. Throws std::system_error.
bool watch_answer(const lab::Exercise& exercise, const lab::Toolbox& toolbox,
                  const std::string& file, bool with_pictures, const Interruption& interruption);

}  // namespace simverbs::cli
