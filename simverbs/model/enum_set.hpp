// A set of enumerators that cannot be mixed with another kind of set.
//
// An enumeration takes part by saying so (kIsSetMember) and by giving each enumerator a bit of its
// own. There is deliberately no conversion to an integer: a mask that arrives from a C interface is
// turned into a set by name, with EnumSet<E>::from_bits().
#pragma once

#include <bit>
#include <cstddef>
#include <type_traits>

namespace simverbs {

template <typename E>
inline constexpr bool kIsSetMember = false;

template <typename E>
concept SetMember = std::is_enum_v<E> && kIsSetMember<E>;

template <SetMember E>
struct EnumSet {
    using Word = std::underlying_type_t<E>;

    Word bits = 0;

    constexpr EnumSet() = default;
    constexpr EnumSet(E e) : bits(static_cast<Word>(e)) {}  // NOLINT(google-explicit-constructor)

    // Unknown bits are kept: who has to refuse them compares with a set of the known ones.
    [[nodiscard]] static constexpr EnumSet from_bits(Word bits) {
        EnumSet set;
        set.bits = bits;
        return set;
    }

    [[nodiscard]] constexpr bool empty() const { return bits == 0; }
    [[nodiscard]] constexpr std::size_t size() const {
        return static_cast<std::size_t>(std::popcount(bits));
    }
    // Every member of `other` is in this set; true of the empty set.
    [[nodiscard]] constexpr bool contains(EnumSet other) const {
        return (bits & other.bits) == other.bits;
    }
    [[nodiscard]] constexpr bool intersects(EnumSet other) const {
        return (bits & other.bits) != 0;
    }
    [[nodiscard]] constexpr EnumSet without(EnumSet other) const {
        return from_bits(static_cast<Word>(bits & ~other.bits));
    }

    friend constexpr EnumSet operator|(EnumSet a, EnumSet b) {
        return from_bits(static_cast<Word>(a.bits | b.bits));
    }
    friend constexpr EnumSet operator&(EnumSet a, EnumSet b) {
        return from_bits(static_cast<Word>(a.bits & b.bits));
    }
    friend constexpr bool operator==(EnumSet, EnumSet) = default;
};

template <SetMember E>
constexpr EnumSet<E> operator|(E a, E b) {
    return EnumSet<E>(a) | EnumSet<E>(b);
}

}  // namespace simverbs
