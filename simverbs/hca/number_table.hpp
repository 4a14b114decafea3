// 24-bit numbers (queue pairs, keys, handles) and the objects they name.
//
// Each context has numbers of its own, its home, so that what one process creates does not depend
// on what another does. A context whose home is full is given blocks that it shares with nobody.
// Numbers rise, or come in an order drawn from a seed, and are used again only after all others: a
// stale one names nothing for as long as possible.
//
//   blocks of 2^16 numbers   whose
//   0                        nobody's
//   1 to 127                 the home of that context
//   128 to 191               64 homes of 1024 numbers each, for contexts 128 to 4223
//   192 to 254               given out as they are needed
//   255                      nobody's: 0xFFFFFF is the number of multicast
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fabric/core/assert.hpp"
#include "fabric/core/hash.hpp"

namespace simverbs {

inline constexpr std::uint32_t kLargestNumber = 0xFF'FFFF;
inline constexpr std::uint32_t kNumberBlockBits = 16;
inline constexpr std::uint32_t kSmallHomeBits = 10;
inline constexpr std::uint32_t kFirstSmallHomes = 128;  // blocks
inline constexpr std::uint32_t kFirstSpareBlock = 192;
inline constexpr std::uint32_t kSpareBlocksEnd = 255;
inline constexpr std::uint32_t kSmallHomesOfABlock = 1U << (kNumberBlockBits - kSmallHomeBits);
inline constexpr std::uint32_t kMaxContexts =
    kFirstSmallHomes - 1 + (kFirstSpareBlock - kFirstSmallHomes) * kSmallHomesOfABlock;
// Numbers that one context can have when no other needs more than its home.
inline constexpr std::uint32_t kNumbersOfAContext =
    (1U << kNumberBlockBits) * (1 + kSpareBlocksEnd - kFirstSpareBlock);

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

    // Returns true if the number names something or once did. Not of a table with a seed.
    [[nodiscard]] bool was_given_out(std::uint32_t number) const {
        SIMVERBS_ASSERT(!seed_, "its numbers do not rise");
        const auto found = ranges_.find(base_of(number));
        return found != ranges_.end() &&
               (number - first_) % found->second.size() < found->second.drawn;
    }

    // The next unused number of a context (1 to kMaxContexts); nothing if there is none.
    std::optional<std::uint32_t> reserve(std::uint32_t context) {
        if (context >= bases_.size()) {
            bases_.resize(context + 1);
        }
        std::vector<std::uint32_t>& bases = bases_[context];
        if (bases.empty()) {
            bases.push_back(add_range(home_of(context), context));
        }
        for (auto base = bases.rbegin(); base != bases.rend(); ++base) {
            if (const auto number = reserve_in(*base, ranges_.at(*base))) {
                return number;
            }
        }
        if (spare_ == kSpareBlocksEnd) {
            return std::nullopt;
        }
        bases.push_back(add_range({spare_++ << kNumberBlockBits, kNumberBlockBits}, context));
        return reserve_in(bases.back(), ranges_.at(bases.back()));
    }

    // `number` was reserved.
    void assign(std::uint32_t number, T& object) {
        T*& place = entry(number);
        ranges_.at(base_of(number)).used += place == nullptr ? 1U : 0U;
        place = &object;
    }

    void erase(std::uint32_t number) {
        T*& place = entry(number);
        ranges_.at(base_of(number)).used -= place == nullptr ? 0U : 1U;
        place = nullptr;
    }

    // The context that a number was given to.
    [[nodiscard]] std::uint32_t context_of(std::uint32_t number) const {
        return ranges_.at(base_of(number)).context;
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
        std::array<std::unique_ptr<Page>, kPages> pages;
    };
    // Numbers that follow each other and belong to one context.
    struct Range {
        std::uint32_t bits = 0;
        std::uint32_t context = 0;
        std::uint32_t next = 0;   // that many further than the first
        std::uint32_t drawn = 0;  // different ones
        std::uint32_t used = 0;   // that name something
        [[nodiscard]] std::uint32_t size() const { return 1U << bits; }
    };
    struct Home {
        std::uint32_t base;
        std::uint32_t bits;
    };

    static Home home_of(std::uint32_t context) {
        SIMVERBS_ASSERT(context >= 1 && context <= kMaxContexts, "there is no context {}", context);
        if (context < kFirstSmallHomes) {
            return {context << kNumberBlockBits, kNumberBlockBits};
        }
        const std::uint32_t small = context - kFirstSmallHomes;
        return {(kFirstSmallHomes << kNumberBlockBits) + (small << kSmallHomeBits), kSmallHomeBits};
    }
    // The first number of the range that a number lies in.
    static std::uint32_t base_of(std::uint32_t number) {
        const std::uint32_t block = number >> kNumberBlockBits;
        const bool is_small = block >= kFirstSmallHomes && block < kFirstSpareBlock;
        const std::uint32_t bits = is_small ? kSmallHomeBits : kNumberBlockBits;
        return number >> bits << bits;
    }
    std::uint32_t add_range(const Home& home, std::uint32_t context) {
        ranges_.emplace(home.base, Range{.bits = home.bits, .context = context});
        return home.base;
    }
    std::optional<std::uint32_t> reserve_in(std::uint32_t base, Range& range) {
        while (range.used < range.size()) {
            const std::uint32_t number = base + place(base, range);
            range.next = (range.next + 1) % range.size();
            range.drawn = std::min(range.drawn + 1, range.size());
            if (entry(number) == nullptr) {
                return number;
            }
        }
        return std::nullopt;
    }
    T*& entry(std::uint32_t number) {
        const std::uint32_t block = number >> kNumberBlockBits;
        if (block >= blocks_.size()) {
            blocks_.resize(block + 1);
        }
        if (blocks_[block] == nullptr) {
            blocks_[block] = std::make_unique<Block>();
        }
        auto& page = blocks_[block]->pages[(number >> kPageBits) % kPages];
        if (page == nullptr) {
            page = std::make_unique<Page>();
        }
        return page->entries[number % kPageEntries];
    }

    // The n-th number of a range: every one is the n-th for some n.
    [[nodiscard]] std::uint32_t place(std::uint32_t base, const Range& range) const {
        const std::uint32_t rising = (first_ + range.next) % range.size();
        const std::uint32_t name = range.bits == kNumberBlockBits ? base >> kNumberBlockBits : base;
        return seed_ ? shuffled(fabric::mix_words(*seed_, name), rising, range.bits) : rising;
    }
    // A Feistel network is one-to-one whatever its rounds do.
    static std::uint32_t shuffled(std::uint64_t key, std::uint32_t within, std::uint32_t bits) {
        constexpr std::uint64_t kRounds = 4;
        const std::uint32_t half = bits / 2;
        std::uint32_t left = within >> half;
        std::uint32_t right = within & ((1U << half) - 1);
        for (std::uint64_t round = 0; round < kRounds; ++round) {
            const std::uint64_t drawn = fabric::mix_words(key + round, right);
            const std::uint32_t next = left ^ static_cast<std::uint32_t>(drawn >> (64U - half));
            left = std::exchange(right, next);
        }
        return left << half | right;
    }

    std::uint32_t first_;
    std::optional<std::uint64_t> seed_;
    std::vector<std::unique_ptr<Block>> blocks_;
    std::map<std::uint32_t, Range> ranges_;          // by their first numbers
    std::vector<std::vector<std::uint32_t>> bases_;  // of each context's ranges
    std::uint32_t spare_ = kFirstSpareBlock;
};

}  // namespace simverbs
