// A process that has opened one device of a simulation: asks its command channel and owns what the
// device hands over. Knows no driver: commands go straight to the Attachment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "simverbs/hca/client.hpp"
#include "simverbs/hca/command.hpp"
#include "simverbs/hca/event_pipe.hpp"
#include "simverbs/hca/guarded_copy.hpp"
#include "simverbs/world/attachment.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs::test {

// Whose memory a host has: this process's, or, as a server sees it, another's that this reaches.
enum class MemoryOf : bool { kThisProcess, kAnother };

class HostMemory final : public AddressSpace {
  public:
    explicit HostMemory(MemoryOf whose) : whose_(whose) {}

    // As where its process ends, or unmaps it without a word.
    void vanish() { is_gone_ = true; }

    bool read(std::uint64_t address, std::byte* bytes, std::size_t length) override {
        return !is_gone_ && memory_.read(address, bytes, length);
    }
    bool write(std::uint64_t address, const std::byte* bytes, std::size_t length) override {
        return !is_gone_ && memory_.write(address, bytes, length);
    }
    [[nodiscard]] bool is_own() const override { return whose_ == MemoryOf::kThisProcess; }
    [[nodiscard]] std::byte* reach(std::uint64_t address, std::uint64_t length) override {
        return is_gone_ ? nullptr : memory_.reach(address, length);
    }

  private:
    MemoryOf whose_;
    bool is_gone_ = false;
    OwnMemory memory_;
};

class Host final : private Client {
  public:
    // Sees the device of this rank and opens it.
    Host(Simulation& simulation, std::size_t rank, MemoryOf whose = MemoryOf::kThisProcess);
    ~Host() override;

    [[nodiscard]] std::uint32_t context() const { return context_; }
    [[nodiscard]] Hca& hca() const { return attachment_->device(0); }
    [[nodiscard]] Attachment& attachment() { return *attachment_; }
    // Completions and events that the device said it had delivered.
    [[nodiscard]] std::size_t deliveries() const { return deliveries_; }
    [[nodiscard]] std::size_t rings() const { return rings_.size(); }

    // An errno. Fills in the context.
    template <Command C>
    int ask(C command, typename C::Reply& reply) {
        if constexpr (requires { command.context; }) {
            command.context = context_;
        }
        return attachment_->execute(C::kCode, std::as_bytes(std::span(&command, 1)),
                                    std::as_writable_bytes(std::span(&reply, 1)));
    }
    template <Command C>
    int ask(const C& command) {
        typename C::Reply reply{};
        return ask(command, reply);
    }
    // The reply of a command that has to succeed.
    template <Command C>
    typename C::Reply must(const C& command) {
        typename C::Reply reply{};
        EXPECT_EQ(ask(command, reply), 0) << to_string(C::kCode);
        return reply;
    }

    // The descriptor that came with the last command. The host closes it in the end.
    [[nodiscard]] int last_descriptor() const { return descriptors_.back(); }
    [[nodiscard]] int event_descriptor() const { return descriptors_.front(); }
    void lose_memory() { memory_.vanish(); }
    // Closes the context; commands answer ENOENT from then on.
    void close();

    // Async events since the last call.
    std::vector<EventMessage> take_events() { return read_all(event_descriptor()); }
    static std::vector<EventMessage> read_all(int descriptor);

  private:
    AddressSpace& memory() override { return memory_; }
    RingMemory make_ring(std::size_t bytes, std::size_t zeroed) override;
    void release_ring(const RingMemory& ring) override;
    void hand_over(int descriptor) override { descriptors_.push_back(descriptor); }
    void completion_delivered(const CompletionRing* /*queue*/) override { ++deliveries_; }
    void event_delivered() override { ++deliveries_; }

    HostMemory memory_;
    std::vector<std::byte*> rings_;
    std::vector<int> descriptors_;
    std::size_t deliveries_ = 0;
    std::unique_ptr<Attachment> attachment_;
    std::uint32_t context_ = 0;
};

}  // namespace simverbs::test
