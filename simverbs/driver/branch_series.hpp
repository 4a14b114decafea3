// Runs the branches of one moment of an explored program one after another in one child process,
// which goes back to its beginning after each (checkpoint.hpp).
//
// That saves most of what a branch costs otherwise: to fork, to fill a child's page tables, and to
// take its memory apart. Whatever a child cannot take back, or would have to wait for, ends it
// (confined_calls.hpp). So does a branch that takes long. Then the branch runs in a child of its
// own.
#pragma once

#include <csignal>
#include <cstdint>
#include <memory>
#include <string_view>

#include <sys/types.h>

#include "simverbs/driver/checkpoint.hpp"
#include "simverbs/driver/confined_calls.hpp"

namespace simverbs::driver {

class BranchSeries {
  public:
    explicit BranchSeries(const ConfinedDescriptors& descriptors) : descriptors_(descriptors) {}

    // --- of the parent ---------------------------------------------------------------------------

    // Before a fork. Returns false if this process is better off without.
    [[nodiscard]] bool begin();
    // Returns true if the address is that of memory that the parent shares with its children.
    [[nodiscard]] bool shares(std::uint64_t address) const;

    struct Result {
        std::uint32_t branches = 0;  // that have ended
        bool is_broken = false;      // it has ended in the middle of the next one
    };
    // Waits for the child. What a broken branch has reported goes out of the file of reports.
    [[nodiscard]] Result await(pid_t child);

    // --- of the child ----------------------------------------------------------------------------

    // Ends it, if it cannot go back.
    void confine();
    struct Ended {
        std::string_view name;  // "": the first branch begins
        int status = 0;         // as waitpid(2) has it
    };
    // Returns once for each branch, and says which one has ended.
    [[nodiscard]] Ended next();
    // Notes that all there is to say of that branch has been reported.
    void note_end();
    [[nodiscard]] std::uint32_t branches_ended() const;
    // The branch with that fault begins.
    void begin_branch(std::string_view name);
    // Ends it. What its program has written by then counts for nothing.
    [[noreturn]] static void end();

  private:
    struct Area;
    struct Unmap {
        void operator()(Area* area) const;
    };

    static void on_trap(int signal, siginfo_t* info, void* context);

    ConfinedDescriptors descriptors_;
    std::unique_ptr<Area, Unmap> area_;
    int in_vain_ = 0;  // series without a branch that has ended, one after another
};

}  // namespace simverbs::driver
