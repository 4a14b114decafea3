// 24-bit numbers (queue pairs, keys, handles) and the objects they name.
//
// A number's high byte is a block that belongs to one context, so that what one process creates
// never depends on what another does. Numbers of a block rise, or come in an order drawn from a
// seed, and are used again only after all others: a stale one names nothing for as long as
// possible.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fabric/core/assert.hpp"
#include "fabric/core/hash.hpp"

namespace simverbs {

inline constexpr std::uint32_t kLargestNumber = 0xFF'FFFF;
inline constexpr std::uint32_t kNumberBlockBits = 16;
inline constexpr std::uint32_t kNumberBlocks = 256;  // block 0 is reserved

template <class T>
class NumberTable {
  public:
    // `first`: the low bits of the first number of each block, below 2^16.
    explicit NumberTable(std::uint32_t first = 1, std::optional<std::uint64_t> seed = {})
        : first_(first), seed_(seed) {}

    // nullptr for a number that names nothing, whatever its upper bits.
    [[nodiscard]] T* find(std::uint32_t number) const {
        const std::uint32_t block = number >> kNumberBlockBits;
        if (block >= blocks_.size() || blocks_[block] == nullptr) {
            return nullptr;
        }
        const auto& page = blocks_[block]->pages[(number >> kPageBits) % kPages];
        return page == nullptr ? nullptr : page->entries[number % kPageEntries];
    }

    // Whether the number names something or once did. Not of a table with a seed.
    [[nodiscard]] bool was_given_out(std::uint32_t number) const {
        SIMVERBS_ASSERT(!seed_, "its numbers do not rise");
        const std::uint32_t block = number >> kNumberBlockBits;
        return block < blocks_.size() && blocks_[block] != nullptr &&
               (number - first_) % kBlockNumbers < blocks_[block]->drawn;
    }

    // The next unused number of a block; nothing if the block is full.
    std::optional<std::uint32_t> reserve(std::uint32_t block) {
        Block& in = block_of(block);
        for (std::uint32_t tries = 0; tries < kBlockNumbers; ++tries) {
            const std::uint32_t within = place(block, in.next);
            in.next = (in.next + 1) % kBlockNumbers;
            in.drawn = std::min(in.drawn + 1, kBlockNumbers);
            if (entry(in, within) == nullptr) {
                return block << kNumberBlockBits | within;
            }
        }
        return std::nullopt;
    }

    // `number` was reserved.
    void assign(std::uint32_t number, T& object) {
        entry(block_of(number >> kNumberBlockBits), number % kBlockNumbers) = &object;
    }

    void erase(std::uint32_t number) {
        blocks_[number >> kNumberBlockBits]
            ->pages[(number >> kPageBits) % kPages]
            ->entries[number % kPageEntries] = nullptr;
    }

  private:
    static constexpr std::uint32_t kBlockNumbers = 1U << kNumberBlockBits;
    static constexpr std::uint32_t kPageBits = 8;
    static constexpr std::uint32_t kPageEntries = 1U << kPageBits;
    static constexpr std::uint32_t kPages = kBlockNumbers / kPageEntries;
    struct Page {
        std::array<T*, kPageEntries> entries{};
    };
    struct Block {
        std::uint32_t next = 0;   // that many further than the first
        std::uint32_t drawn = 0;  // different ones
        std::array<std::unique_ptr<Page>, kPages> pages;
    };
    Block& block_of(std::uint32_t block) {
        if (block >= blocks_.size()) {
            blocks_.resize(block + 1);
        }
        if (blocks_[block] == nullptr) {
            blocks_[block] = std::make_unique<Block>();
        }
        return *blocks_[block];
    }
    static T*& entry(Block& in, std::uint32_t within) {
        auto& page = in.pages[within >> kPageBits];
        if (page == nullptr) {
            page = std::make_unique<Page>();
        }
        return page->entries[within % kPageEntries];
    }

    // The n-th number of a block: every one is the n-th for some n.
    [[nodiscard]] std::uint32_t place(std::uint32_t block, std::uint32_t n) const {
        const std::uint32_t rising = (first_ + n) % kBlockNumbers;
        return seed_ ? shuffled(fabric::mix_words(*seed_, block), rising) : rising;
    }
    // A Feistel network is one-to-one whatever its rounds do.
    static std::uint32_t shuffled(std::uint64_t key, std::uint32_t within) {
        constexpr std::uint64_t kRounds = 4;
        std::uint32_t left = within >> 8U;
        std::uint32_t right = within & 0xFFU;
        for (std::uint64_t round = 0; round < kRounds; ++round) {
            const std::uint64_t drawn = fabric::mix_words(key + round, right);
            const std::uint32_t next = left ^ static_cast<std::uint32_t>(drawn >> 56U);
            left = std::exchange(right, next);
        }
        return left << 8U | right;
    }

    std::uint32_t first_;
    std::optional<std::uint64_t> seed_;
    std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace simverbs
