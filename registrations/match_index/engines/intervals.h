// The intervals of the match index that a value is in. Mirrors interval_lookup.py.

#pragma once

#include "present.h"

class Intervals : public Present {
  public:
    Intervals(nb::handle data, nb::dict sections, nb::dict head, nb::object hierarchy, nb::object order,
              nb::object number_of_text, Py_ssize_t application_at)
        : Present(data, sections, head, hierarchy, order, number_of_text, application_at) {
        size_t size = 1, count = lows_.size, at = 0;
        while (count > 1) {
            size *= FANOUT;
            count = (count + FANOUT - 1) / FANOUT;
            levels_.push_back({size, at});
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
        size_t until = size_t(
            std::lower_bound(lows + begin, lows + (end - first_interval_), stab.below) - lows);
        for (size_t at = begin; at < until;) {
            size_t step = 0;
            for (const Level &level : levels_) {
                if (at % level.size || tops_.at[level.at + at / level.size] >= stab.above) break;
                step = level.size;
            }
            if (!step) {
                if (highs[at] >= stab.above) add(u32(at) + first_interval_);
                step = 1;
            }
            at += step;
        }
    }

  private:
    // Blocks of so many intervals, whose greatest upper bounds are in `tops` from `at` on.
    struct Level {
        size_t size, at;
    };
    std::vector<Level> levels_;
};
