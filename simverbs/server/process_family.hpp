// A process and those that it has started, as /proc has them.
#pragma once

#include <cstdint>
#include <vector>

#include <sys/types.h>

namespace simverbs {

struct FamilyMember {
    pid_t process = 0;
    pid_t parent = 0;  // 0: of the first
};

// Returns the process, its children, their children and so on. A process whose parent has ended
// belongs to another one.
std::vector<FamilyMember> family_of(pid_t process);

// Says whether processes or threads have been created anywhere on this machine. A family cannot
// have grown if none was.
class NewProcesses {
  public:
    NewProcesses();
    NewProcesses(const NewProcesses&) = delete;
    NewProcesses& operator=(const NewProcesses&) = delete;
    ~NewProcesses();

    // Returns true if any may have been created since the last call that returned true. One read.
    bool any();

  private:
    int file_ = -1;
    std::uint64_t last_ = 0;  // the process or thread that was created last
};

}  // namespace simverbs
