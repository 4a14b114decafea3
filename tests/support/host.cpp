#include "tests/support/host.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include <sys/socket.h>
#include <unistd.h>

#include "simverbs/transport/work_queue.hpp"

namespace simverbs::test {

namespace {

// In memory that need not be zero: whoever reads an entry that was not written does so here.
constexpr int kLeftInMemory = 0xA5;

}  // namespace

Host::Host(Simulation& simulation, std::size_t rank, MemoryOf whose)
    : memory_(whose),
      attachment_(std::make_unique<Attachment>(simulation, static_cast<Client&>(*this),
                                               std::vector<std::size_t>{rank})) {
    GuardedCopy::install();  // as a driver does before it registers memory
    context_ = must(OpenContext{}).handle;
}

Host::~Host() {
    attachment_.reset();
    EXPECT_TRUE(rings_.empty()) << rings_.size() << " rings were not released";
    for (const int descriptor : descriptors_) {
        ::close(descriptor);
    }
}

void Host::close() {
    EXPECT_EQ(ask(CloseContext{}), 0);
}

std::vector<EventMessage> Host::read_all(int descriptor) {
    std::vector<EventMessage> messages;
    EventMessage message;
    while (::recv(descriptor, &message, sizeof message, MSG_DONTWAIT) ==
           static_cast<ssize_t>(sizeof message)) {
        messages.push_back(message);
    }
    return messages;
}

RingMemory Host::make_ring(std::size_t bytes, std::size_t zeroed) {
    auto* base = static_cast<std::byte*>(::operator new(bytes, std::align_val_t(kCacheLine)));
    std::memset(base, 0, zeroed);
    std::memset(base + zeroed, kLeftInMemory, bytes - zeroed);
    rings_.push_back(base);
    return {base, bytes};
}

void Host::release_ring(const RingMemory& ring) {
    EXPECT_EQ(std::erase(rings_, ring.base), 1U);
    ::operator delete(ring.base, std::align_val_t(kCacheLine));
}

}  // namespace simverbs::test
