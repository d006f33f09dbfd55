// What the compiled engine is made of: checked sections, bits, a set of numbers, UTF-8.

#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
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
constexpr u32 SHARED = 1u << 31, PLACE = SHARED - 1;
constexpr u32 HAS_VALUES = 1, IS_OPENED = 2, HAS_PREFIXES = 4, HAS_NUMBERS = 8, HAS_TEXTS = 16;
constexpr u32 PATH_WORDS = 12, RUNS_FEW = 16;
constexpr Py_ssize_t PATHS_CACHED_MAX = 10000;  // limits.INDEX_PATHS_CACHED_MAX
constexpr Py_ssize_t PATH_CACHED_CHARS_MAX = 128;  // limits.INDEX_PATH_CACHED_CHARS_MAX
constexpr std::int64_t EXACT = std::int64_t(1) << 53;  // integers below are doubles

// The fields of Event that are looked at, by their place in the tuple.
constexpr Py_ssize_t DOMAIN_AT = 0, TYPE_AT = 1, ATTRIBUTES_AT = 2;

[[noreturn]] void damaged() { throw std::out_of_range("the match index leads outside of itself"); }

template <class T> struct Section {
    const T *at = nullptr;
    size_t size = 0;
    T operator[](size_t place) const {
        if (place >= size) damaged();
        return at[place];
    }
    std::string_view text(u64 begin, u64 end) const {
        if (begin > end || end > size) damaged();
        return {reinterpret_cast<const char *>(at) + begin, size_t(end - begin)};
    }
};

// UTF-8 of a text; half characters too, which Python encodes only on request.
class Utf8 {
  public:
    explicit Utf8(PyObject *text) {
        Py_ssize_t size = 0;
        const char *data = PyUnicode_AsUTF8AndSize(text, &size);
        if (!data) {
            PyErr_Clear();
            kept_ = nb::steal(PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass"));
            if (!kept_.is_valid()) nb::raise_python_error();
            data = PyBytes_AS_STRING(kept_.ptr());
            size = PyBytes_GET_SIZE(kept_.ptr());
        }
        view = {data, size_t(size)};
    }
    std::string_view view;

  private:
    nb::object kept_;
};

class Bits {
  public:
    void resize(size_t count) { words_.assign((count + 63) / 64 + 1, 0); }
    bool get(u32 at) const { return words_[at >> 6] >> (at & 63) & 1; }
    void set(u32 at) { words_[at >> 6] |= u64(1) << (at & 63); }
    void clear(u32 at) { words_[at >> 6] &= ~(u64(1) << (at & 63)); }
    void fill(u32 first, u32 end, bool value) {
        while (first < end && (first & 63)) put(first++, value);
        while (first + 64 <= end) words_[first >> 6] = value ? ~u64(0) : 0, first += 64;
        while (first < end) put(first++, value);
    }

  private:
    void put(u32 at, bool value) { value ? set(at) : clear(at); }
    std::vector<u64> words_;
};

// Numbers told so far for one event; emptied by counting up what their slots must say.
class Told {
  public:
    void clear() {
        count_ = 0;
        if (++turn_ == 0) slots_.assign(slots_.size(), {}), turn_ = 1;
    }
    bool add(std::int64_t id) {
        if (2 * (count_ + 1) > slots_.size()) grow();
        Slot &slot = slots_[place(id)];
        if (slot.turn == turn_) return false;
        slot = {id, turn_};
        ++count_;
        return true;
    }

  private:
    struct Slot {
        std::int64_t id = 0;
        u32 turn = 0;
    };
    size_t place(std::int64_t id) const {
        size_t mask = slots_.size() - 1, at = (u64(id) * 0x9E3779B97F4A7C15u) >> 20 & mask;
        while (slots_[at].turn == turn_ && slots_[at].id != id) at = (at + 1) & mask;
        return at;
    }
    void grow() {
        std::vector<Slot> before(std::max<size_t>(64, 2 * slots_.size()));
        before.swap(slots_);
        for (const Slot &slot : before)
            if (slot.turn == turn_) slots_[place(slot.id)] = slot;
    }
    std::vector<Slot> slots_;
    size_t count_ = 0;
    u32 turn_ = 0;
};

struct Span {
    u32 first, end;
};

struct Runs {
    u32 first, end;
    bool one_key;
};

// What is asked of the value at a path: its record, and what the names of its values begin with.
struct Road {
    const u32 *record;
    std::string head;
};

// A name that is looked for together with others, so that memory is waited for once.
struct Wanted {
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
