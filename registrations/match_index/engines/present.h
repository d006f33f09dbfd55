// The keys of the match index that an event has: its gates, its values and nested values, the keys
// of their texts, their ranges, its types.

#pragma once

#include "text_keys.h"

class Present : public TextKeys {
  public:
    Present(nb::handle data, nb::dict sections, nb::dict head, nb::object hierarchy, nb::object order,
            nb::object number_of_text, Py_ssize_t application_at)
        : TextKeys(data, sections, head), hierarchy_(hierarchy), order_(order), number_of_text_(number_of_text),
          application_at_(application_at) {}

    u64 lookups = 0;

  protected:
    // Mark the keys of an event; false if the index has none of its gates.
    bool mark_event(nb::handle event) {
        event_ = event;
        attributes_ = PyTuple_GetItem(event.ptr(), ATTRIBUTES_AT);
        if (!attributes_ || !PyDict_Check(attributes_)) throw nb::type_error("no event");
        mark_gates();
        if (gates_.empty()) return false;
        mark_attributes(attributes_);
        if (has_types_) mark_types();
        return true;
    }

    // Python's garbage collector finds reference cycles through the callables, and breaks them.
    int visit(visitproc visit, void *arg) const {
        for (const nb::object *one : {&hierarchy_, &order_, &number_of_text_}) Py_VISIT(one->ptr());
        return 0;
    }

    void release() { hierarchy_ = order_ = number_of_text_ = nb::none(); }

    nb::handle event_;

  private:
    void mark_gates() {
        mark_gates_of(0, nullptr);
        PyObject *several = PyTuple_GetItem(event_.ptr(), application_at_);
        if (!several) nb::raise_python_error();
        if (!(forms_ >> 4) || !PyTuple_Check(several)) return;
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(several); ++at)
            mark_gates_of(4, PyTuple_GET_ITEM(several, at));
    }

    void mark_gates_of(u32 first, PyObject *application) {
        for (u32 form = 0; form < 4; ++form) {
            if (!(forms_ >> (form + first) & 1)) continue;
            name_ = '@';
            for (u32 bit = 0; bit < 2; ++bit) {
                if (form >> bit & 1)
                    add_part(name_, PyTuple_GET_ITEM(event_.ptr(), bit ? TYPE_AT : DOMAIN_AT));
                else
                    name_ += '*';
            }
            if (application) add_part(name_, application);
            else name_ += '*';
            u32 gate = find(name_);
            if (gate >= gates_end_) damaged();
            if (!gate || present_.get(gate)) continue;
            present_.set(gate);
            gates_.push_back(gate);
        }
    }

    // Null if the index does not have the path.
    const PathRecord *path_record(PyObject *path) {
        PyObject *known = PyDict_GetItemWithError(records_by_path_.ptr(), path);
        if (known) {
            long at = PyLong_AsLong(known);
            return at < 0 ? nullptr : &path_records_[size_t(at)];
        }
        if (PyErr_Occurred()) nb::raise_python_error();
        long made = new_record(Utf8(path).view);
        if (PyUnicode_GET_LENGTH(path) <= PATH_CACHED_CHARS_MAX) cache_record(path, made);
        return made < 0 ? nullptr : &path_records_[size_t(made)];
    }

    void cache_record(PyObject *path, long made) {
        if (PyDict_GET_SIZE(records_by_path_.ptr()) >= PATHS_CACHED_MAX) records_by_path_.clear();
        nb::object at = nb::steal(PyLong_FromLong(made));
        if (PyDict_SetItem(records_by_path_.ptr(), path, at.ptr())) nb::raise_python_error();
    }

    long new_record(std::string_view path) {
        name_ = '/';
        name_ += path;
        u32 number = find(name_);
        if (!number) return -1;
        if (number < named_end_) damaged();
        size_t position = number - named_end_, at = position * PATH_WORDS;
        if (at + PATH_WORDS > paths_.size) damaged();
        if (path_records_.empty()) path_records_.resize(paths_.size / PATH_WORDS);
        begin_name('=', path);
        path_records_[position] = {paths_.at + at, name_};
        return long(position);
    }

    void mark_attributes(PyObject *attributes) {
        PyObject *name, *value;
        Py_ssize_t at = 0;
        while (PyDict_Next(attributes, &at, &name, &value)) {
            if (!PyUnicode_Check(name)) continue;
            ++lookups;
            const PathRecord *found = path_record(name);
            if (!found) continue;
            mark_value(*found, value);
            if (found->record[0] & IS_OPENED && has_inside(value) &&
                Utf8(name).view.find('.') == std::string_view::npos)
                mark_inside(name, value);
        }
        mark_pending();
    }

    static bool is_list(PyObject *value) { return PyList_Check(value) || PyTuple_Check(value); }

    static bool has_inside(PyObject *value) { return PyDict_Check(value) || is_list(value); }

    // The values in the objects of a list, by name, flattened by one level, as
    // values.fields_inside.
    static nb::dict joined(PyObject *list) {
        nb::dict found;
        PyObject **items = PySequence_Fast_ITEMS(list);
        for (Py_ssize_t position = 0; position < PySequence_Fast_GET_SIZE(list); ++position) {
            if (!PyDict_Check(items[position])) continue;
            PyObject *name, *value;
            Py_ssize_t at = 0;
            while (PyDict_Next(items[position], &at, &name, &value)) {
                nb::object none = nb::steal(PyList_New(0));
                PyObject *into = PyDict_SetDefault(found.ptr(), name, none.ptr());
                if (!into) nb::raise_python_error();
                Py_ssize_t end = PyList_GET_SIZE(into);
                int failed = is_list(value) ? PyList_SetSlice(into, end, end, value)
                                            : PyList_Append(into, value);
                if (failed) nb::raise_python_error();
            }
        }
        return found;
    }

    // Mark values in an object, or in the objects of a list, by dotted paths, each once; an attribute
    // with the exact name goes first.
    void mark_inside(PyObject *outer, PyObject *value_there) {
        nb::object inside = PyDict_Check(value_there) ? nb::borrow(value_there)
                                                      : nb::object(joined(value_there));
        PyObject *name, *value;
        Py_ssize_t at = 0;
        while (PyDict_Next(inside.ptr(), &at, &name, &value)) {
            if (!PyUnicode_Check(name)) continue;
            if (Utf8(name).view.find('.') != std::string_view::npos) continue;
            nb::object path = nb::steal(PyUnicode_FromFormat("%U.%U", outer, name));
            if (!path.is_valid()) nb::raise_python_error();
            const PathRecord *found = path_record(path.ptr());
            if (!found) continue;
            ++lookups;
            int exact = PyDict_Contains(attributes_, path.ptr());
            if (exact < 0) nb::raise_python_error();
            if (!exact) mark_value(*found, value);
            if (found->record[0] & IS_OPENED && has_inside(value)) mark_inside(path.ptr(), value);
        }
    }

    void mark_value(const PathRecord &by, PyObject *value) {
        const u32 *record = by.record;
        if (record[1]) mark(record[1]);
        if (PyUnicode_Check(value) && !record[2] && record[0] == HAS_VALUES) {
            queue_value(by.head, value);
            return;
        }
        members_.clear();
        if (is_list(value)) {
            PyObject **items = PySequence_Fast_ITEMS(value);
            for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(value); ++at)
                if (!PyDict_Check(items[at]) && !PyList_Check(items[at]))
                    members_.push_back(items[at]);
        } else if (!PyDict_Check(value)) {
            members_.push_back(value);
        }
        if (members_.empty()) return;
        if (record[2]) mark(record[2]);
        if (record[0] & HAS_VALUES)
            for (PyObject *one : members_) queue_value(by.head, one);
        if (record[0] & OF_TEXTS) mark_text_keys(by, members_);
        if (record[0] & HAS_NUMBERS) mark_numbers(record);
        if (record[0] & HAS_TEXTS) mark_texts(record);
    }

    bool order_of(PyObject *value, Number &into) {
        if (PyFloat_Check(value)) {
            double found = PyFloat_AS_DOUBLE(value);
            into = {found + 0.0, 0};
            return std::isfinite(found);
        }
        if (PyBool_Check(value)) return false;
        if (PyLong_Check(value)) {
            int overflow = 0;
            long long small = PyLong_AsLongLongAndOverflow(value, &overflow);
            if (!overflow && small > -EXACT && small < EXACT) {
                into = {double(small), 0};
                return true;
            }
            return take_order(order_(nb::handle(value)), into);
        }
        if (!PyUnicode_Check(value) || !PyUnicode_GET_LENGTH(value)) return false;
        Py_UCS4 first = PyUnicode_READ_CHAR(value, 0);
        if (first != '-' && (first < '0' || first > '9')) return false;
        nb::object number = number_of_text_(nb::handle(value));
        return !number.is_none() && take_order(order_(number), into);
    }

    static bool take_order(nb::object pair, Number &into) {
        into = {nb::cast<double>(pair[0]), nb::cast<unsigned>(pair[1])};
        return true;
    }

    // Mark the thresholds below the greatest of the numbers, and those above the least.
    void mark_numbers(const u32 *record) {
        bool any = false;
        Number least, greatest, one;
        for (PyObject *member : members_) {
            if (!order_of(member, one)) continue;
            least = any ? std::min(least, one) : one;
            greatest = any ? std::max(greatest, one) : one;
            any = true;
        }
        if (!any) return;
        mark_bounds(record + 5, record[19], number_position(greatest, record[5], record[6]),
                    number_position(least, record[6], record[7]));
    }

    void mark_texts(const u32 *record) {
        bool any = false;
        std::string least, greatest;
        for (PyObject *member : members_) {
            if (!PyUnicode_Check(member)) continue;
            Utf8 one(member);
            if (!any || one.view < least) least = one.view;
            if (!any || one.view > greatest) greatest = one.view;
            any = true;
        }
        if (!any) return;
        mark_bounds(record + 8, record[20], text_position(greatest, record[8], record[9]),
                    text_position(least, record[9], record[10]));
    }

    void mark_types() {
        nb::object hierarchy = hierarchy_(event_);
        for (nb::handle type : hierarchy) {
            Utf8 text(type.ptr());
            name_ = 'T';
            mark_name(name_ += text.view);
            for (size_t at = text.view.find('.'); at != std::string_view::npos;
                 at = text.view.find('.', at + 1)) {
                name_ = 'B';
                mark_name(name_ += text.view.substr(0, at));
            }
        }
    }

    nb::object hierarchy_, order_, number_of_text_;
    Py_ssize_t application_at_;
    PyObject *attributes_ = nullptr;
    nb::dict records_by_path_;
    std::vector<PathRecord> path_records_;
    std::vector<PyObject *> members_;
};
