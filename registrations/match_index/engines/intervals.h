// The intervals of the match index that a value is in. Mirrors interval_lookup.py.

#pragma once

#include "present.h"

class Intervals : public Present {
  public:
    Intervals(nb::handle data, nb::dict sections, nb::dict head, nb::object hierarchy, nb::object order,
              nb::object number_of_text, Py_ssize_t application_at)
        : Present(data, sections, head, hierarchy, order, number_of_text, application_at) {
        size_t count = lows_.size, at = 0;
        for (u32 bits = FANOUT_BITS; count > 1; bits += FANOUT_BITS) {
            count = (count + (1 << FANOUT_BITS) - 1) >> FANOUT_BITS;
            levels_.push_back({bits, at});
            at += count;
        }
        if (at > tops_.size || highs_.size != lows_.size) damaged();
    }

  protected:
    // Call `add` for the conjunctions from `first` to before `end`, of one group and gate, whose
    // interval has the value.
    template <class Add> void each_stabbed(u32 first, u32 end, const Stab &stab, Add add) const {
        if (first < first_interval_ || first > end || end - first_interval_ > lows_.size) damaged();
        size_t begin = first - first_interval_;
        const u32 *lows = lows_.at, *highs = highs_.at;
        size_t until = size_t(first_from(lows + begin, end - first, stab.below) - lows);
        for (size_t at = begin; at < until;) {
            u32 bits = 0;
            for (const Level &level : levels_) {
                if (at & ((size_t(1) << level.bits) - 1)) break;
                if (tops_.at[level.at + (at >> level.bits)] >= stab.above) break;
                bits = level.bits;
            }
            if (!bits && highs[at] >= stab.above) add(u32(at) + first_interval_);
            at += size_t(1) << bits;
        }
    }

  private:
    // Blocks of 2^bits intervals, whose greatest upper bounds are in `tops` from `at` on.
    struct Level {
        u32 bits;
        size_t at;
    };
    std::vector<Level> levels_;
};
