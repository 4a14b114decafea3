// Tells when a client unmaps memory that the server relies on, so that nobody has to look.
//
// The client hands over a userfaultfd(2) by which the kernel reports what is unmapped of registered
// ranges, and nothing else: no access to them faults. Whoever unmaps waits in the kernel until the
// report is read or the descriptor is closed. It is closed here, by the first report: a program
// that unmaps registered memory is rare, and a descriptor that its other end can still change is
// better not read. From then on nothing is watched any more.
//
// One thread at a time.
#pragma once

#include "simverbs/protocol/served_protocol.hpp"

namespace simverbs {

class UnmapWatch {
  public:
    UnmapWatch() = default;
    ~UnmapWatch() { end(); }
    UnmapWatch(const UnmapWatch&) = delete;
    UnmapWatch& operator=(const UnmapWatch&) = delete;

    // Takes over `descriptor`, if it is the first userfaultfd(2) of the client; closes any other.
    void begin(int descriptor);
    // Lets those go on who wait to be reported.
    void end();
    // Readable once something that was added has been unmapped. -1: nothing is watched.
    [[nodiscard]] int descriptor() const { return descriptor_; }

    // From here on it is reported if any of `pages` is unmapped, or moved. Returns false where it
    // is not: a part of them is not mapped, or the kernel does not report that (before Linux 5.19).
    bool add(const PageRange& pages);
    // Does nothing where they have not been added.
    void remove(const PageRange& pages);

  private:
    int descriptor_ = -1;
    bool has_begun_ = false;
};

}  // namespace simverbs
