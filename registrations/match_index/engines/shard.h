// The view of a mapped file of the match index in the compiled engine.

#pragma once

#include "parts.h"
#include "xxh64.h"

class Shard {
  public:
    Shard(nb::handle data, nb::dict sections, nb::dict head) {
        if (PyObject_GetBuffer(data.ptr(), &buffer_, PyBUF_SIMPLE)) nb::raise_python_error();
        auto count = [&](const char *name) { return nb::cast<u64>(head[name]); };
        mask_ = count("hash_mask");
        slots_ = count("slots");
        gates_end_ = u32(count("gates_end"));
        implying_end_ = u32(count("implying_end"));
        named_end_ = u32(count("named_end"));
        wildcards_first_ = u32(count("wildcards_first"));
        numbers_first_ = u32(count("numbers_first"));
        texts_first_ = u32(count("texts_first"));
        keys_ = u32(count("keys"));
        forms_ = u32(count("gate_forms"));
        has_types_ = count("flags") & 1;
        groups_end_ = keys_ + u32(count("interval_groups"));
        first_interval_ = u32(count("conjunctions") - count("intervals"));
        load(sections, "table", table_);
        load(sections, "name_at", name_at_);
        load(sections, "names", names_);
        load(sections, "paths", paths_);
        load(sections, "lengths", lengths_);
        load(sections, "implied_at", implied_at_);
        load(sections, "implied", implied_);
        load(sections, "numbers", numbers_);
        load(sections, "number_ranks", number_ranks_);
        load(sections, "wildcard_at", wildcard_at_);
        load(sections, "part_at", part_at_);
        load(sections, "parts", parts_);
        load(sections, "gram_bits", gram_bits_);
        load(sections, "text_at", text_at_);
        load(sections, "texts", texts_);
        load(sections, "text_ranks", text_ranks_);
        load(sections, "key_runs", key_runs_);
        load(sections, "run_gates", run_gates_);
        load(sections, "run_conjunctions", run_conjunctions_);
        load(sections, "lows", lows_);
        load(sections, "highs", highs_);
        load(sections, "tops", tops_);
        load(sections, "rest_at", rest_at_);
        load(sections, "rest", rest_);
        load(sections, "dense_at", dense_at_);
        load(sections, "ids", ids_);
    }
    ~Shard() { PyBuffer_Release(&buffer_); }
    Shard(const Shard &) = delete;
    Shard &operator=(const Shard &) = delete;

  protected:
    u64 digest_of(std::string_view name) const {
        return xxh64(name.data(), name.size(), 42) & mask_;
    }

    u32 find(std::string_view name) const { return find(name, digest_of(name)); }

    u32 find(std::string_view name, u64 digest) const {
        u32 high = u32(digest >> 32);
        for (u64 at = digest & (slots_ - 1);; ++at) {
            u64 word = table_[at];
            if (!word) return 0;
            u32 number = u32(word);
            if (u32(word >> 32) == high &&
                names_.text(name_at_[number], name_at_[size_t(number) + 1]) == name)
                return number;
        }
    }

    u32 number_position(const Number &value, u32 low, u32 high) const {
        check_thresholds(low, high, numbers_first_, texts_first_);
        if (high - numbers_first_ > numbers_.size) damaged();
        const double *first = numbers_.at + (low - numbers_first_), *end = numbers_.at + (high - numbers_first_);
        low = numbers_first_ + u32(first_from(first, size_t(end - first), value.first) - numbers_.at);
        if (low == high || numbers_.at[low - numbers_first_] != value.first) return low;
        for (u32 rank = 2 * value.second + 1; low < high;) {  // among equal ones
            u32 middle = low + (high - low) / 2, at = middle - numbers_first_;
            if (numbers_.at[at] == value.first && number_ranks_[at] < rank)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    u32 text_position(std::string_view value, u32 low, u32 high) const {
        check_thresholds(low, high, texts_first_, keys_);
        while (low < high) {
            u32 middle = low + (high - low) / 2, at = middle - texts_first_;
            int order = texts_.text(text_at_[at], text_at_[size_t(at) + 1]).compare(value);
            if (order < 0 || (order == 0 && text_ranks_[at] < 1))
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    static void check_thresholds(u32 low, u32 high, u32 first, u32 end) {
        if (low < first || low > high || high > end) damaged();
    }

    Py_buffer buffer_{};
    u64 mask_, slots_;
    u32 gates_end_, implying_end_, named_end_, wildcards_first_, numbers_first_, texts_first_, keys_,
        forms_, groups_end_, first_interval_;
    bool has_types_;
    Section<u64> table_, gram_bits_;
    Section<double> numbers_;
    Section<std::int64_t> ids_;
    Section<char> names_, texts_, parts_;
    Section<unsigned char> text_ranks_;
    Section<std::uint16_t> lengths_, number_ranks_;
    Section<u32> name_at_, paths_, implied_at_, implied_, wildcard_at_, part_at_, text_at_, key_runs_,
        run_gates_, run_conjunctions_, lows_, highs_, tops_, rest_at_, rest_, dense_at_;

  private:
    template <class T> void load(nb::dict &sections, const char *name, Section<T> &into) {
        nb::tuple found = nb::cast<nb::tuple>(sections[name]);
        u64 offset = nb::cast<u64>(found[0]), length = nb::cast<u64>(found[1]);
        if (offset > u64(buffer_.len) || length > u64(buffer_.len) - offset) damaged();
        into.at = reinterpret_cast<const T *>(static_cast<const char *>(buffer_.buf) + offset);
        into.size = length / sizeof(T);
    }
};
