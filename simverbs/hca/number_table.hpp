// 24-bit numbers (queue pairs, keys, handles) and the objects they name.
//
// A number's high byte is a block that belongs to one context, so that what one process creates
// never depends on what another does. Numbers of a block rise and are used again only after all
// others: a stale one names nothing for as long as possible.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace simverbs {

inline constexpr std::uint32_t kNumberBlockBits = 16;
inline constexpr std::uint32_t kNumberBlocks = 256;  // block 0 is reserved

template <class T>
class NumberTable {
  public:
    // nullptr for a number that names nothing, whatever its upper bits.
    [[nodiscard]] T* find(std::uint32_t number) const {
        const std::uint32_t block = number >> kNumberBlockBits;
        if (block >= blocks_.size() || blocks_[block] == nullptr) {
            return nullptr;
        }
        const auto& page = blocks_[block]->pages[(number >> kPageBits) % kPages];
        return page == nullptr ? nullptr : page->entries[number % kPageEntries];
    }

    // Whether the number names something or once did.
    [[nodiscard]] bool was_given_out(std::uint32_t number) const {
        const std::uint32_t block = number >> kNumberBlockBits;
        return block < blocks_.size() && blocks_[block] != nullptr &&
               number % kBlockNumbers <= blocks_[block]->highest;
    }

    // The next unused number of a block; nothing if the block is full.
    std::optional<std::uint32_t> reserve(std::uint32_t block) {
        Block& in = block_of(block);
        for (std::uint32_t tries = 0; tries < kBlockNumbers; ++tries) {
            in.last = (in.last + 1) % kBlockNumbers;
            in.highest = std::max(in.highest, in.last);
            if (entry(in, in.last) == nullptr) {
                return block << kNumberBlockBits | in.last;
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
        std::uint32_t last = 0;
        std::uint32_t highest = 0;
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

    std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace simverbs
