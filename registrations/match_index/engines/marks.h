// The marks of the match index's keys that an event has, and names that are looked up together.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "names.h"
#include "shard.h"

class Marks : public Shard {
  public:
    Marks(nb::handle data, nb::dict sections, nb::dict head) : Shard(data, sections, head) {
        present_.resize(keys_);
    }

  protected:
    void unmark() {
        for (u32 gate : gates_) present_.clear(gate);
        for (u32 key : marked_) present_.clear(key);
        if (spans_are_set_) set_spans(false);
        gates_.clear(), marked_.clear(), spans_.clear(), stabs_.clear();
        pending_.clear(), arena_.clear();
    }

    bool mark(u32 key) {
        if (key >= keys_) damaged();
        if (present_.get(key)) return false;
        present_.set(key);
        marked_.push_back(key);
        return true;
    }

    void mark_name(std::string_view name) { mark_found(find(name)); }

    // Mark a key, and the sets of alternatives that contain its value.
    void mark_found(u32 key) {
        if (!key || !mark(key) || key >= implying_end_) return;
        if (key < gates_end_) damaged();
        size_t position = key - gates_end_;
        for (u32 at = implied_at_[position], end = implied_at_[position + 1]; at < end; ++at)
            mark(implied_[at]);
    }

    // Mark the thresholds of a path before `below` and from `above` on. `bounds`: the record's begin,
    // middle and end.
    void mark_bounds(const u32 *bounds, u32 group, u32 below, u32 above) {
        if (group < keys_ || group >= groups_end_) damaged();
        mark_span(bounds[0], below);
        mark_span(above, bounds[2]);
        stabs_.push_back({group, below, above});
    }

    void mark_span(u32 first, u32 end) {
        if (first >= end) return;
        if (end > keys_) damaged();
        spans_.push_back({first, end});
    }

    // Set the bits of all thresholds in the spans if that costs less than to search the spans for
    // each of `count` thresholds.
    void expect_thresholds(size_t count) {
        size_t words = 0;
        for (const Span &span : spans_) words += (span.end - span.first) / 64 + 1;
        if (count * spans_.size() > words) set_spans(true);
    }

    bool has(u32 key) const {
        if (key < numbers_first_ || spans_are_set_) return present_.get(key);
        for (const Span &span : spans_)
            if (span.first <= key && key < span.end) return true;
        return false;
    }

    void begin_name(char kind, std::string_view path) {
        name_ = kind;
        name_ += std::to_string(path.size());
        name_ += ':';
        name_ += path;
    }

    void queue_value(const std::string &head, PyObject *value) {
        name_ = head;
        if (add_tail(name_, value)) queue_name();
    }

    void queue_name() {
        u64 digest = digest_of(name_);
        size_t slot = digest & (slots_ - 1);
        if (slot < table_.size) fetch(table_.at + slot);
        pending_.push_back({digest, arena_.size(), arena_.size() + name_.size()});
        arena_ += name_;
    }

    // Each loop prefetches what the next one reads.
    void mark_pending() {
        for (const PendingName &one : pending_) {
            u32 number = u32(table_[one.digest & (slots_ - 1)]);
            if (number < name_at_.size) fetch(name_at_.at + number);
            if (number < key_runs_.size) fetch(key_runs_.at + number);
        }
        for (const PendingName &one : pending_) {
            u32 number = u32(table_[one.digest & (slots_ - 1)]);
            if (number < name_at_.size && name_at_[number] < names_.size)
                fetch(names_.at + name_at_[number]);
        }
        std::string_view names(arena_);
        for (const PendingName &one : pending_)
            mark_found(find(names.substr(one.begin, one.end - one.begin), one.digest));
    }

    Bits present_;
    std::vector<u32> gates_, marked_;
    std::vector<Span> spans_;
    std::vector<Stab> stabs_;
    std::string name_;

  private:
    void set_spans(bool value) {
        for (const Span &span : spans_) present_.fill(span.first, span.end, value);
        spans_are_set_ = value;
    }

    bool spans_are_set_ = false;
    std::vector<PendingName> pending_;
    std::string arena_;
};
