// The compiled engine of the match index: what lookup.py and python_engine.py do, over the same
// mapped bytes. docs/match-index.md describes these.
//
// It never trusts a number that it reads: one that leads outside of its section ends the match with
// an error. It runs under the interpreter's lock and calls back for tests and rare numbers only.

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "present.h"

namespace {

class Kernel : public Present {
  public:
    Kernel(nb::handle data, nb::dict sections, nb::dict head, nb::object test, nb::object hierarchy,
           nb::object order, nb::object number_of_text, Py_ssize_t application_at)
        : Present(data, sections, head, hierarchy, order, number_of_text, application_at), test_(test) {
        verdicts_.assign(nb::cast<size_t>(head["tests"]), 0);
    }

    // The ids of all that the event matches, or their dense places, as bytes of 64-bit integers.
    nb::object match(nb::handle event, bool places) {
        struct Undo {
            Kernel &kernel;
            ~Undo() { kernel.forget(); }
        } undo{*this};
        if (see(event)) collect();
        return copied(places);
    }

    void bury(u32 at) {
        const u32 *begin = dense_at_.at, *end = begin + dense_at_.size;
        auto after = std::upper_bound(begin, end, at, [](u32 place, u32 word) {
            return place < (word & PLACE);
        });
        if (after == begin || after == end) damaged();
        u32 conjunction = u32(after - begin) - 1;
        if (wounded_.empty()) is_wounded_.resize(dense_at_.size);
        is_wounded_.set(conjunction);
        wounded_[conjunction].insert(at);
    }

    u64 touched = 0;

    int visit(visitproc visit, void *arg) const {
        Py_VISIT(test_.ptr());
        return Present::visit(visit, arg);
    }

    void let_go() {
        Present::let_go();
        test_ = nb::none();
    }

  private:
    // --- what that leads to ---

    void collect() {
        add_runs(0, 1);
        for (u32 key : seen_) add_runs(key, key + 1);
        for (const Span &span : spans_) add_runs(span.first, span.end);
        for (const Runs &runs : runs_) add_stretches(runs);
        for (const Span &stretch : stretches_)
            if (rest_at_[stretch.first] < rest_.size) fetch(rest_.at + rest_at_[stretch.first]);
        for (const Span &stretch : stretches_) scan(stretch.first, stretch.end);
    }

    void add_runs(u32 first_key, u32 end_key) {
        u32 first = key_runs_[first_key], end = key_runs_[end_key];
        if (first == end) return;
        if (first > end || end > run_gates_.size) damaged();
        fetch(run_gates_.at + first);
        fetch(run_conjunctions_.at + first);
        runs_.push_back({first, end, end_key == first_key + 1});
    }

    // Of many runs of one key, those of the event's gates are looked for.
    void add_stretches(const Runs &runs) {
        if (runs.end - runs.first <= RUNS_FEW || !runs.one_key) {
            for (u32 run = runs.first; run < runs.end; ++run) {
                u32 gate = run_gates_.at[run];
                if (gate >= gates_end_) damaged();
                if (present_.get(gate)) add_stretch(run);
            }
            return;
        }
        for (u32 gate : gates_) {
            const u32 *until = run_gates_.at + runs.end;
            const u32 *at = std::lower_bound(run_gates_.at + runs.first, until, gate);
            if (at != until && *at == gate) add_stretch(at - run_gates_.at);
        }
    }

    void add_stretch(size_t run) {
        u32 first = run_conjunctions_[run], end = run_conjunctions_[run + 1];
        if (first > end || end >= rest_at_.size) damaged();
        fetch(rest_at_.at + first);
        if (!stretches_.empty() && stretches_.back().end == first)
            stretches_.back().end = end;
        else
            stretches_.push_back({first, end});
    }

    // Conjunctions all of whose words hold. The first word of each is looked at without a branch,
    // because nobody could predict it; most that come through hold.
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
            count += word >= TEST || present_.get(key) != (word >= NOT);
            at = until;
        }
        size_t kept = before;
        for (size_t at = before; at < count; ++at)
            if (holds_all(found_[at])) found_[kept++] = found_[at];
        found_.resize(kept);
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
        return present_.get(word & NUMBER) != (word >= NOT);
    }

    bool passes(u32 test) {
        if (test >= verdicts_.size()) damaged();
        if (!verdicts_[test]) {
            bool verdict = nb::cast<bool>(test_(test, event_));
            verdicts_[test] = verdict ? 2 : 1;
            tried_.push_back(test);
        }
        return verdicts_[test] == 2;
    }

    // --- what comes out ---

    nb::object copied(bool places) {
        size_t total = 0;
        out_.clear();
        told_.clear();
        for (u32 conjunction : found_) {
            u32 word = dense_at_[conjunction], low = word & PLACE;
            u32 high = dense_at_[size_t(conjunction) + 1] & PLACE;
            if (low > high || high > ids_.size) damaged();
            bool is_shared = word & SHARED;
            if (!wounded_.empty() && is_wounded_.get(conjunction)) {
                const auto &gone = wounded_[conjunction];
                for (u32 at = low; at < high; ++at)
                    if (!gone.count(at)) add_span(at, at + 1, is_shared, total);
            } else {
                add_span(low, high, is_shared, total);
            }
        }
        nb::object made = nb::steal(PyBytes_FromStringAndSize(nullptr, Py_ssize_t(total * 8)));
        if (!made.is_valid()) nb::raise_python_error();
        write(reinterpret_cast<std::int64_t *>(PyBytes_AS_STRING(made.ptr())), places);
        return made;
    }

    // Of a filter that is found through several of its conjunctions, the first entry stays.
    void add_span(u32 low, u32 high, bool is_shared, size_t &total) {
        if (!is_shared) {
            fetch(ids_.at + low);
            out_.push_back({low, high});
            total += high - low;
            return;
        }
        for (u32 at = low; at < high; ++at)
            if (told_.add(ids_.at[at])) out_.push_back({at, at + 1}), ++total;
    }

    void write(std::int64_t *into, bool places) const {
        for (const Span &span : out_) {
            size_t count = span.end - span.first;
            if (places)
                for (size_t at = 0; at < count; ++at) into[at] = std::int64_t(span.first + at);
            else if (count == 1)
                *into = ids_.at[span.first];
            else
                std::memcpy(into, ids_.at + span.first, count * 8);
            into += count;
        }
    }

    void forget() {
        Present::forget();
        for (u32 test : tried_) verdicts_[test] = 0;
        tried_.clear(), found_.clear(), runs_.clear(), stretches_.clear();
    }

    nb::object test_;
    Bits is_wounded_;
    std::vector<u32> tried_, found_;
    std::vector<Span> stretches_, out_;
    std::vector<Runs> runs_;
    std::vector<unsigned char> verdicts_;
    Told told_;
    std::unordered_map<u32, std::unordered_set<u32>> wounded_;
};

int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    return nb::inst_ready(self) ? nb::inst_ptr<Kernel>(self)->visit(visit, arg) : 0;
}

int clear(PyObject *self) {
    if (nb::inst_ready(self)) nb::inst_ptr<Kernel>(self)->let_go();
    return 0;
}

PyType_Slot COLLECTED[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse)},
                           {Py_tp_clear, reinterpret_cast<void *>(clear)},
                           {0, nullptr}};

}  // namespace

NB_MODULE(kernel, module) {
    nb::set_leak_warnings(false);  // of an index that is open when the program ends
    nb::class_<Kernel>(module, "Kernel", nb::type_slots(COLLECTED))
        .def(nb::init<nb::handle, nb::dict, nb::dict, nb::object, nb::object, nb::object,
                      nb::object, Py_ssize_t>())
        .def("match", &Kernel::match)
        .def("bury", &Kernel::bury)
        .def_ro("lookups", &Kernel::lookups)
        .def_ro("touched", &Kernel::touched);
}
