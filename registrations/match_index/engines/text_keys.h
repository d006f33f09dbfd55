// The keys of the match index that a text has: its beginnings and ends, also in lower case, the
// blocks of the address that it is, and the wildcards that it fits. Mirrors text_lookup.py.

#pragma once

#include <arpa/inet.h>

#include "marks.h"

class TextKeys : public Marks {
  protected:
    using Marks::Marks;

    void mark_text_keys(const PathRecord &by, const std::vector<PyObject *> &members) {
        u32 flags = by.record[0];
        for (PyObject *one : members) {
            if (!PyUnicode_Check(one)) continue;
            Utf8 text(one);
            if (flags & HAS_PREFIXES) queue_beginnings(by, '^', 3, text.view);
            if (flags & HAS_SUFFIXES) queue_ends(by, '$', 11, text.view);
            if (flags & OF_FOLDED) queue_folded(by, one, text.view);
            if (flags & HAS_BLOCKS && take_address(one, text.view)) queue_beginnings(by, '%', 21, bits_);
            if (flags & OF_GRAMS) mark_wildcards(by, text.view);
        }
    }

    void unmark() {
        clear_grams();
        Marks::unmark();
    }

  private:
    void begin_name_of(const PathRecord &by, char kind) {
        name_ = by.head;
        name_[0] = kind;
    }

    void queue_beginnings(const PathRecord &by, char kind, u32 lengths, std::string_view text) {
        for (u32 at = by.record[lengths]; at < by.record[lengths + 1]; ++at) {
            size_t length = lengths_[at];
            if (length > text.size()) break;
            begin_name_of(by, kind);
            name_ += text.substr(0, length);
            queue_name();
        }
    }

    void queue_ends(const PathRecord &by, char kind, u32 lengths, std::string_view text) {
        for (u32 at = by.record[lengths]; at < by.record[lengths + 1]; ++at) {
            size_t length = lengths_[at];
            if (length > text.size()) break;
            begin_name_of(by, kind);
            name_ += text.substr(text.size() - length);
            queue_name();
        }
    }

    void queue_folded(const PathRecord &by, PyObject *text, std::string_view view) {
        lower(text, view);
        if (by.record[0] & HAS_FOLDED) {
            begin_name_of(by, '~');
            name_ += lower_;
            queue_name();
        }
        if (by.record[0] & HAS_FOLDED_PREFIXES) queue_beginnings(by, '[', 13, lower_);
        if (by.record[0] & HAS_FOLDED_SUFFIXES) queue_ends(by, ']', 15, lower_);
    }

    // As str.lower, which only Python knows beyond ASCII.
    void lower(PyObject *text, std::string_view view) {
        if (PyUnicode_IS_ASCII(text)) {
            lower_ = view;
            for (char &one : lower_)
                if (one >= 'A' && one <= 'Z') one = char(one + ('a' - 'A'));
            return;
        }
        nb::object made = nb::steal(PyObject_CallMethod(text, "lower", nullptr));
        if (!made.is_valid()) nb::raise_python_error();
        lower_ = Utf8(made.ptr()).view;
    }

    // As text_tests.address_of and bits_of.
    bool take_address(PyObject *text, std::string_view view) {
        if (PyUnicode_GET_LENGTH(text) > ADDRESS_CHARS_MAX) return false;
        address_ = view;
        size_t end = view.find('%');
        if (end != view.npos) {  // the scope of an address of version 6
            std::string_view scope = view.substr(end + 1);
            if (scope.empty() || scope.find_first_of("%/") != scope.npos) return false;
            address_.resize(end);
        }
        if (address_.find('\0') != address_.npos) return false;
        unsigned char bytes[16];
        size_t size = 16;
        if (inet_pton(AF_INET6, address_.c_str(), bytes) != 1) {
            if (end != view.npos || inet_pton(AF_INET, address_.c_str(), bytes) != 1) return false;
            size = 4;
        }
        bits_ = size == 4 ? '4' : '6';
        for (size_t at = 0; at < 8 * size; ++at) bits_ += bytes[at >> 3] >> (7 - (at & 7)) & 1 ? '1' : '0';
        return true;
    }

    // --- wildcards ---

    void mark_wildcards(const PathRecord &by, std::string_view text) {
        u32 flags = by.record[0];
        if (flags & HAS_GRAMS_OF_1) mark_grams<std::uint8_t>(by, text);
        if (flags & HAS_GRAMS_OF_2) mark_grams<std::uint16_t>(by, text);
        if (flags & HAS_GRAMS_OF_4) mark_grams<std::uint32_t>(by, text);
        if (flags & HAS_GRAMS_OF_8) mark_grams<std::uint64_t>(by, text);
        clear_grams();
    }

    // Look up the grams of a text that pass the path's filter.
    template <class Gram> void mark_grams(const PathRecord &by, std::string_view text) {
        u32 begin = by.record[17], end = by.record[18], words = end - begin;
        if (begin >= end || end > gram_bits_.size || words & (words - 1)) damaged();
        const u64 *bits = gram_bits_.at + begin;
        int shift = 58;
        for (; words > 1; words >>= 1) --shift;
        for (size_t at = 0; at + sizeof(Gram) <= text.size(); ++at) {
            Gram gram;
            std::memcpy(&gram, text.data() + at, sizeof(Gram));
            u64 bit = u64(gram) * MIX >> shift;
            if (bits[bit >> 6] >> (bit & 63) & 1) mark_gram(by, text.substr(at, sizeof(Gram)), text);
        }
    }

    // Mark the wildcards of a gram that the text fits; the gram's own mark is for this text only.
    void mark_gram(const PathRecord &by, std::string_view gram, std::string_view text) {
        begin_name_of(by, '*');
        name_ += gram;
        u32 number = find(name_);
        if (!number) return;
        if (number < gates_end_ || number >= implying_end_) damaged();
        if (present_.get(number)) return;
        present_.set(number);
        grams_.push_back(number);
        size_t position = number - gates_end_;
        for (u32 at = implied_at_[position], end = implied_at_[position + 1]; at < end; ++at) {
            u32 wildcard = implied_[at];
            if (wildcard < wildcards_first_ || wildcard >= numbers_first_) damaged();
            if (!present_.get(wildcard) && fits(wildcard - wildcards_first_, text)) mark(wildcard);
        }
    }

    // As wildcard.fits, over UTF-8.
    bool fits(size_t wildcard, std::string_view text) const {
        u32 first = wildcard_at_[wildcard], end = wildcard_at_[wildcard + 1];
        if (first + 1 >= end || end >= part_at_.size) damaged();
        std::string_view head = part(first), tail = part(end - 1);
        if (head.size() + tail.size() > text.size()) return false;
        if (text.compare(0, head.size(), head)) return false;
        if (text.compare(text.size() - tail.size(), tail.size(), tail)) return false;
        const char *at = text.data() + head.size(), *until = text.data() + text.size() - tail.size();
        for (u32 number = first + 1; number + 1 < end; ++number) {
            std::string_view one = part(number);
            // linear, unlike string_view::find
            at = static_cast<const char *>(memmem(at, size_t(until - at), one.data(), one.size()));
            if (!at) return false;
            at += one.size();
        }
        return true;
    }

    std::string_view part(u32 number) const {
        return parts_.text(part_at_[number], part_at_[size_t(number) + 1]);
    }

    void clear_grams() {
        for (u32 gram : grams_) present_.clear(gram);
        grams_.clear();
    }

    std::vector<u32> grams_;
    std::string lower_, address_, bits_;
};
