// The compiled engine of the match index. It mirrors lookup.py and python_engine.py, over the same
// mapped bytes, which docs/match-index.md describes.
//
// It trusts no number that it reads: one that points outside of its section ends the match with an
// error. It holds the interpreter's lock and calls back only for tests and rare numbers.

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "intervals.h"

namespace {

class Kernel : public Intervals {
  public:
    Kernel(nb::handle data, nb::dict sections, nb::dict head, nb::object test, nb::object hierarchy,
           nb::object order, nb::object number_of_text, Py_ssize_t application_at)
        : Intervals(data, sections, head, hierarchy, order, number_of_text, application_at),
          test_(test) {
        verdicts_.assign(nb::cast<size_t>(head["tests"]), 0);
    }

    // The ids of all matching filters, or their dense positions, as bytes of 64-bit integers.
    nb::object match(nb::handle event, bool positions) {
        struct Undo {
            Kernel &kernel;
            ~Undo() { kernel.unmark(); }
        } undo{*this};
        if (mark_event(event)) collect();
        return result(positions);
    }

    void mark_removed(u32 at) {
        const u32 *begin = dense_at_.at, *end = begin + dense_at_.size;
        auto after = std::upper_bound(begin, end, at, [](u32 position, u32 word) {
            return position < (word & POSITION);
        });
        if (after == begin || after == end) damaged();
        u32 conjunction = u32(after - begin) - 1;
        if (partly_deleted_.empty()) is_partly_deleted_.resize(dense_at_.size);
        is_partly_deleted_.set(conjunction);
        partly_deleted_[conjunction].insert(at);
    }

    u64 touched = 0;

    int visit(visitproc visit, void *arg) const {
        Py_VISIT(test_.ptr());
        return Present::visit(visit, arg);
    }

    void release() {
        Present::release();
        test_ = nb::none();
    }

  private:
    // --- conjunctions of the marked keys ---

    void collect() {
        add_runs(0, 1);
        for (u32 key : marked_) add_runs(key, key + 1);
        for (const Span &span : spans_) add_runs(span.first, span.end);
        for (const Runs &runs : runs_) add_ranges(runs);
        for (const Stab &stab : stabs_) add_stabbed(stab);
        size_t count = 0;
        for (const Span &range : ranges_) {
            count += range.end - range.first;
            if (rest_at_[range.first] < rest_.size) fetch(rest_.at + rest_at_[range.first]);
        }
        expect_thresholds(count);
        for (const Span &range : ranges_) scan(range.first, range.end);
    }

    void add_runs(u32 first_key, u32 end_key) {
        u32 first = key_runs_[first_key], end = key_runs_[end_key];
        if (first == end) return;
        if (first > end || end > run_gates_.size) damaged();
        fetch(run_gates_.at + first);
        fetch(run_conjunctions_.at + first);
        runs_.push_back({first, end, end_key == first_key + 1});
    }

    // Of a key with many runs, search those of the event's gates.
    void add_ranges(const Runs &runs) {
        if (runs.end - runs.first <= RUNS_FEW || !runs.one_key) {
            for (u32 run = runs.first; run < runs.end; ++run) {
                u32 gate = run_gates_.at[run];
                if (gate >= gates_end_) damaged();
                if (present_.get(gate)) add_range(run);
            }
            return;
        }
        each_run(runs.first, runs.end, [&](size_t run) { add_range(run); });
    }

    // Call `add` for the runs of the event's gates among those of one key.
    template <class Add> void each_run(u32 first, u32 end, Add add) const {
        for (u32 gate : gates_) {
            const u32 *until = run_gates_.at + end;
            const u32 *at = std::lower_bound(run_gates_.at + first, until, gate);
            if (at != until && *at == gate) add(size_t(at - run_gates_.at));
        }
    }

    void add_stabbed(const Stab &stab) {
        u32 first = key_runs_[stab.group], end = key_runs_[stab.group + 1];
        if (first > end || end > run_gates_.size) damaged();
        each_run(first, end, [&](size_t run) {
            each_stabbed(run_conjunctions_[run], run_conjunctions_[run + 1], stab,
                         [&](u32 conjunction) { add_range(conjunction, conjunction + 1); });
        });
    }

    void add_range(size_t run) { add_range(run_conjunctions_[run], run_conjunctions_[run + 1]); }

    void add_range(u32 first, u32 end) {
        if (first > end || end >= rest_at_.size) damaged();
        fetch(rest_at_.at + first);
        if (!ranges_.empty() && ranges_.back().end == first)
            ranges_.back().end = end;
        else
            ranges_.push_back({first, end});
    }

    // Collect the conjunctions whose words all hold. The first word of each is tested without a
    // branch, which would be unpredictable; most conjunctions that pass it hold.
    void scan(u32 first, u32 end) {
        touched += end - first;
        size_t before = found_.size(), count = before;
        found_.resize(before + (end - first));
        for (u32 conjunction = first, at = rest_at_.at[first]; conjunction < end; ++conjunction) {
            u32 until = rest_at_.at[conjunction + 1];
            if (at > until || until > rest_.size) damaged();
            u32 word = at < until ? rest_.at[at] : TEST;
            u32 key = word >= TEST ? 0 : word & NUMBER;
            if (key >= keys_) damaged();
            found_[count] = conjunction;
            count += word >= TEST || has(key) != (word >= NOT);
            at = until;
        }
        size_t passed = before;
        for (size_t at = before; at < count; ++at)
            if (holds_all(found_[at])) found_[passed++] = found_[at];
        found_.resize(passed);
    }

    bool holds_all(u32 conjunction) {
        fetch(dense_at_.at + conjunction);
        u32 at = rest_at_.at[conjunction], until = rest_at_.at[conjunction + 1];
        while (at < until && holds(rest_.at[at])) ++at;
        return at == until;
    }

    bool holds(u32 word) {
        if (word >= TEST) return passes(word & NUMBER);
        if ((word & NUMBER) >= keys_) damaged();
        return has(word & NUMBER) != (word >= NOT);
    }

    bool passes(u32 test) {
        if (test >= verdicts_.size()) damaged();
        if (!verdicts_[test]) {
            bool verdict = nb::cast<bool>(test_(test, event_));
            verdicts_[test] = verdict ? 2 : 1;
            evaluated_.push_back(test);
        }
        return verdicts_[test] == 2;
    }

    // --- the result ---

    nb::object result(bool positions) {
        size_t total = 0;
        out_.clear();
        distinct_.clear();
        for (u32 conjunction : found_) {
            u32 word = dense_at_[conjunction], low = word & POSITION;
            u32 high = dense_at_[size_t(conjunction) + 1] & POSITION;
            if (low > high || high > ids_.size) damaged();
            bool is_shared = word & SHARED;
            if (!partly_deleted_.empty() && is_partly_deleted_.get(conjunction)) {
                const auto &gone = partly_deleted_[conjunction];
                for (u32 at = low; at < high; ++at)
                    if (!gone.count(at)) add_span(at, at + 1, is_shared, total);
            } else {
                add_span(low, high, is_shared, total);
            }
        }
        nb::object made = nb::steal(PyBytes_FromStringAndSize(nullptr, Py_ssize_t(total * 8)));
        if (!made.is_valid()) nb::raise_python_error();
        write(reinterpret_cast<std::int64_t *>(PyBytes_AS_STRING(made.ptr())), positions);
        return made;
    }

    // Of a filter that matches by several of its conjunctions, keep the first entry.
    void add_span(u32 low, u32 high, bool is_shared, size_t &total) {
        if (!is_shared) {
            fetch(ids_.at + low);
            out_.push_back({low, high});
            total += high - low;
            return;
        }
        for (u32 at = low; at < high; ++at)
            if (distinct_.add(ids_.at[at])) out_.push_back({at, at + 1}), ++total;
    }

    void write(std::int64_t *into, bool positions) const {
        for (const Span &span : out_) {
            size_t count = span.end - span.first;
            if (positions)
                for (size_t at = 0; at < count; ++at) into[at] = std::int64_t(span.first + at);
            else if (count == 1)
                *into = ids_.at[span.first];
            else
                std::memcpy(into, ids_.at + span.first, count * 8);
            into += count;
        }
    }

    void unmark() {
        Present::unmark();
        for (u32 test : evaluated_) verdicts_[test] = 0;
        evaluated_.clear(), found_.clear(), runs_.clear(), ranges_.clear();
    }

    nb::object test_;
    Bits is_partly_deleted_;
    std::vector<u32> evaluated_, found_;
    std::vector<Span> ranges_, out_;
    std::vector<Runs> runs_;
    std::vector<unsigned char> verdicts_;
    DistinctIds distinct_;
    std::unordered_map<u32, std::unordered_set<u32>> partly_deleted_;
};

int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    return nb::inst_ready(self) ? nb::inst_ptr<Kernel>(self)->visit(visit, arg) : 0;
}

int clear(PyObject *self) {
    if (nb::inst_ready(self)) nb::inst_ptr<Kernel>(self)->release();
    return 0;
}

PyType_Slot COLLECTED[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse)},
                           {Py_tp_clear, reinterpret_cast<void *>(clear)},
                           {0, nullptr}};

}  // namespace

NB_MODULE(kernel, module) {
    nb::set_leak_warnings(false);  // of an index that is open when the program ends
    module.attr("FORMAT") = FORMAT;
    nb::class_<Kernel>(module, "Kernel", nb::type_slots(COLLECTED))
        .def(nb::init<nb::handle, nb::dict, nb::dict, nb::object, nb::object, nb::object,
                      nb::object, Py_ssize_t>())
        .def("match", &Kernel::match)
        .def("mark_removed", &Kernel::mark_removed)
        .def_ro("lookups", &Kernel::lookups)
        .def_ro("touched", &Kernel::touched);
}
