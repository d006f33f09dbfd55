// The building blocks of the compiled engine: checked sections, bits, a set of ids, UTF-8.

#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nb = nanobind;

using Number = std::pair<double, unsigned>;  // as names.number_order
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 TEST = 1u << 31, NOT = 1u << 30, NUMBER = NOT - 1;
constexpr u32 SHARED = 1u << 31, POSITION = SHARED - 1;
constexpr u32 HAS_VALUES = 1, IS_OPENED = 2, HAS_PREFIXES = 4, HAS_NUMBERS = 8, HAS_TEXTS = 16;
constexpr u32 HAS_SUFFIXES = 32, HAS_FOLDED = 64, HAS_FOLDED_PREFIXES = 128, HAS_FOLDED_SUFFIXES = 256;
constexpr u32 HAS_GRAMS_OF_1 = 512, HAS_GRAMS_OF_2 = 1024, HAS_GRAMS_OF_4 = 2048, HAS_GRAMS_OF_8 = 4096;
constexpr u32 HAS_BLOCKS = 8192;
constexpr u32 OF_FOLDED = HAS_FOLDED | HAS_FOLDED_PREFIXES | HAS_FOLDED_SUFFIXES;
constexpr u32 OF_GRAMS = HAS_GRAMS_OF_1 | HAS_GRAMS_OF_2 | HAS_GRAMS_OF_4 | HAS_GRAMS_OF_8;
constexpr u32 OF_TEXTS = HAS_PREFIXES | HAS_SUFFIXES | OF_FOLDED | OF_GRAMS | HAS_BLOCKS;
constexpr u32 PATH_WORDS = 23, RUNS_FEW = 16, FANOUT_BITS = 4;
constexpr u64 MIX = 0x9E3779B97F4A7C15u;  // text_keys.MIX
constexpr u32 FORMAT = 5;  // layout.VERSION that this engine reads
constexpr Py_ssize_t PATHS_CACHED_MAX = 10000;  // limits.INDEX_PATHS_CACHED_MAX
constexpr Py_ssize_t ADDRESS_CHARS_MAX = 64;  // of text_tests.py
constexpr Py_ssize_t PATH_CACHED_CHARS_MAX = 128;  // limits.INDEX_PATH_CACHED_CHARS_MAX
constexpr std::int64_t EXACT = std::int64_t(1) << 53;  // integers below are doubles

// The fields of Event that are read, by their index in the tuple.
constexpr Py_ssize_t DOMAIN_AT = 0, TYPE_AT = 1, ATTRIBUTES_AT = 2;

[[noreturn]] void damaged() { throw std::out_of_range("the match index has an offset out of range"); }

template <class T> struct Section {
    const T *at = nullptr;
    size_t size = 0;
    T operator[](size_t position) const {
        if (position >= size) damaged();
        return at[position];
    }
    std::string_view text(u64 begin, u64 end) const {
        if (begin > end || end > size) damaged();
        return {reinterpret_cast<const char *>(at) + begin, size_t(end - begin)};
    }
};

// UTF-8 of a text, also of unpaired surrogates, which Python encodes only on request.
class Utf8 {
  public:
    explicit Utf8(PyObject *text) {
        Py_ssize_t size = 0;
        const char *data = PyUnicode_AsUTF8AndSize(text, &size);
        if (!data) {
            PyErr_Clear();
            encoded_ = nb::steal(PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass"));
            if (!encoded_.is_valid()) nb::raise_python_error();
            data = PyBytes_AS_STRING(encoded_.ptr());
            size = PyBytes_GET_SIZE(encoded_.ptr());
        }
        view = {data, size_t(size)};
    }
    std::string_view view;

  private:
    nb::object encoded_;
};

class Bits {
  public:
    void resize(size_t count) { words_.assign((count + 63) / 64 + 1, 0); }
    bool get(u32 at) const { return words_[at >> 6] >> (at & 63) & 1; }
    void set(u32 at) { words_[at >> 6] |= u64(1) << (at & 63); }
    void clear(u32 at) { words_[at >> 6] &= ~(u64(1) << (at & 63)); }
    void fill(u32 first, u32 end, bool value) {
        while (first < end && (first & 63)) put(first++, value);
        if (first < end) std::memset(&words_[first >> 6], value ? 0xff : 0, size_t(end - first) / 64 * 8);
        for (first += (end - first) / 64 * 64; first < end;) put(first++, value);
    }

  private:
    void put(u32 at, bool value) { value ? set(at) : clear(at); }
    std::vector<u64> words_;
};

// The ids returned so far for one event. `clear` only increments the round that slots must have.
class DistinctIds {
  public:
    void clear() {
        count_ = 0;
        if (++round_ == 0) slots_.assign(slots_.size(), {}), round_ = 1;
    }
    bool add(std::int64_t id) {
        if (2 * (count_ + 1) > slots_.size()) grow();
        Slot &slot = slots_[slot_of(id)];
        if (slot.round == round_) return false;
        slot = {id, round_};
        ++count_;
        return true;
    }

  private:
    struct Slot {
        std::int64_t id = 0;
        u32 round = 0;
    };
    size_t slot_of(std::int64_t id) const {
        size_t mask = slots_.size() - 1, at = (u64(id) * 0x9E3779B97F4A7C15u) >> 20 & mask;
        while (slots_[at].round == round_ && slots_[at].id != id) at = (at + 1) & mask;
        return at;
    }
    void grow() {
        std::vector<Slot> before(std::max<size_t>(64, 2 * slots_.size()));
        before.swap(slots_);
        for (const Slot &slot : before)
            if (slot.round == round_) slots_[slot_of(slot.id)] = slot;
    }
    std::vector<Slot> slots_;
    size_t count_ = 0;
    u32 round_ = 0;
};

struct Span {
    u32 first, end;
};

// A value, or the range of several, for the intervals of a group: those with a lower bound before
// the key `below` and an upper bound from the key `above` on.
struct Stab {
    u32 group, below, above;
};

struct Runs {
    u32 first, end;
    bool one_key;
};

// A path in the index: its record, and the common prefix of the names of its values.
struct PathRecord {
    const u32 *record;
    std::string head;
};

// A name whose look-up is batched with others, so that their memory latencies overlap.
struct PendingName {
    u64 digest;
    size_t begin, end;  // in `arena_`
};

inline void fetch(const void *at) {
#if defined(__GNUC__)
    __builtin_prefetch(at);
#else
    (void)at;
#endif
}

// The first of `count` ascending items that is not below the value. It has no branch that depends on
// the items, which none could predict, and prefetches both items that the next step may read.
template <class T> const T *first_from(const T *at, size_t count, T value) {
    while (count > 1) {
        size_t half = count / 2;
        count -= half;
        fetch(at + count / 2), fetch(at + half + count / 2);
        at += half & (size_t(0) - size_t(at[half - 1] < value));
    }
    return at + (count && *at < value);
}
