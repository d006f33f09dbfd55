// Stored bytes as an Event, without protobuf's objects in between: it makes what protobuf_codec.py makes.
// Where it cannot (a field that it does not know, damaged bytes), it returns None, and Python does it.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "stored_event.h"

namespace {

struct Failed {};  // a Python error is set

// The fields of Python's Event, in their order. Python uses this module only if it has the same.
const char *const FIELDS[] = {
    "domain", "type", "attributes", "id", "source", "name", "version", "body", "content_type",
    "node", "application", "environment", "mask", "priority", "expires_at_us", "time_us", "key",
    "bundle", "depends", "correlation", "cause", "traceparent", "destinations", "audience",
    "security_level", "summary", "bundle_number", "time_constraint_ms", "merge_scheme", "tombstone",
    "order", "filterable_data"};
constexpr Py_ssize_t COUNT = sizeof FIELDS / sizeof *FIELDS;
PyObject *LEVELS[] = {nullptr, nullptr, nullptr};  // texts, by number as in event.proto

PyObject *EMPTY_TEXT, *NO_TEXTS;  // most values

PyObject *text_of(Text text) {
    if (text.empty()) return Py_NewRef(EMPTY_TEXT);
    PyObject *made = PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), nullptr);
    if (made) return made;
    if (!PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) throw Failed{};
    PyErr_Clear();
    throw Unknown{};
}

PyObject *bytes_of(Text bytes) {
    return PyBytes_FromStringAndSize(bytes.data(), Py_ssize_t(bytes.size()));
}

// The values of a tuple that is not made yet, in their order.
template <Py_ssize_t SIZE> class Values {
  public:
    Values() = default;
    Values(const Values &) = delete;
    Values &operator=(const Values &) = delete;
    ~Values() {
        while (count_) Py_DECREF(values_[--count_]);
    }

    Values &own(PyObject *value) {
        if (!value) throw Failed{};
        values_[count_++] = value;
        return *this;
    }

    Values &none() { return own(Py_NewRef(Py_None)); }
    Values &text(Text value) { return own(text_of(value)); }
    Values &number(int64_t value) { return own(PyLong_FromLongLong(value)); }
    Values &truth(bool value) { return own(PyBool_FromLong(value)); }

    Values &texts(const Texts &values) {
        if (values.empty()) return own(Py_NewRef(NO_TEXTS));
        PyObject *tuple = PyTuple_New(Py_ssize_t(values.size()));
        own(tuple);
        for (size_t at = 0; at < values.size(); ++at)
            PyTuple_SET_ITEM(tuple, Py_ssize_t(at), text_of(values[at]));
        return *this;
    }

    // Returns a tuple of a named class, and gives it the values.
    PyObject *made(PyTypeObject *named) {
        PyObject *tuple = named->tp_alloc(named, SIZE);
        if (!tuple) throw Failed{};
        for (Py_ssize_t at = 0; at < SIZE; ++at) PyTuple_SET_ITEM(tuple, at, values_[at]);
        count_ = 0;
        return tuple;
    }

  private:
    PyObject *values_[SIZE];
    Py_ssize_t count_ = 0;
};

// Decodes one event. `loads` reads JSON.
class Decoding {
  public:
    Decoding(Text payload, PyTypeObject *id_class, PyObject *loads)
        : from_(payload), id_class_(id_class), loads_(loads) {}

    PyObject *made(PyTypeObject *event_class) {
        if (from_.security_level > 2 || (from_.has_text_id && from_.has_producer_id)) throw Unknown{};
        values_.text(from_.domain).text(from_.type);
        values_.own(json(from_.attributes.empty() ? Text("{}") : from_.attributes));
        id();
        values_.text(from_.source).text(from_.name).text(from_.version);
        if (from_.body.empty() && from_.content_type.empty()) values_.none();
        else values_.own(bytes_of(from_.body));
        values_.text(from_.content_type).text(from_.node).texts(from_.application);
        if (from_.environment.empty()) values_.none();
        else values_.own(json(from_.environment));
        values_.own(PyLong_FromUnsignedLongLong(from_.mask)).number(from_.priority);
        values_.number(from_.expires_at_us).number(from_.time_us);
        values_.text(from_.key).text(from_.bundle).texts(from_.depends).text(from_.correlation);
        values_.text(from_.cause).text(from_.traceparent);
        values_.texts(from_.destinations).texts(from_.audience);
        values_.own(Py_NewRef(LEVELS[from_.security_level])).text(from_.summary);
        values_.number(from_.bundle_number).number(from_.time_constraint_ms);
        values_.text(from_.merge_scheme).truth(from_.tombstone).text(from_.order);
        return values_.truth(from_.filterable_data).made(event_class);
    }

  private:
    void id() {
        if (from_.has_text_id) {
            values_.text(from_.text_id);
        } else if (from_.has_producer_id) {
            Values<4> id;
            id.text(from_.client).number(from_.id_time_us);
            id.number(from_.id_sequence).number(from_.id_incarnation);
            values_.own(id.made(id_class_));
        } else {
            values_.none();
        }
    }

    PyObject *json(Text text) const {
        PyObject *bytes = bytes_of(text);
        if (!bytes) throw Failed{};
        PyObject *found = PyObject_CallOneArg(loads_, bytes);
        Py_DECREF(bytes);
        return found;
    }

    Event from_;
    PyTypeObject *id_class_;
    PyObject *loads_;
    Values<COUNT> values_;
};

bool is_named_tuple(PyObject *one) {
    return PyType_Check(one) && PyType_IsSubtype(reinterpret_cast<PyTypeObject *>(one), &PyTuple_Type);
}

// (payload, Event, EventId, loads) to an Event, or None.
PyObject *decode(PyObject *, PyObject *const *args, Py_ssize_t count) {
    if (count != 4 || !is_named_tuple(args[1]) || !is_named_tuple(args[2])) {
        PyErr_SetString(PyExc_TypeError, "decode takes bytes, two named tuples and a callable.");
        return nullptr;
    }
    Py_buffer payload;
    if (PyObject_GetBuffer(args[0], &payload, PyBUF_SIMPLE)) return nullptr;
    PyObject *found = nullptr;
    try {
        Decoding decoding({static_cast<const char *>(payload.buf), size_t(payload.len)},
                          reinterpret_cast<PyTypeObject *>(args[2]), args[3]);
        found = decoding.made(reinterpret_cast<PyTypeObject *>(args[1]));
    } catch (const Unknown &) {
        found = Py_NewRef(Py_None);
    } catch (const Failed &) {
    }
    PyBuffer_Release(&payload);
    return found;
}

PyMethodDef FUNCTIONS[] = {
    {"decode", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(decode)), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "decoder", nullptr, 0, FUNCTIONS, nullptr, nullptr,
                      nullptr, nullptr};

}  // namespace

bool are_constants_made() {
    const char *const levels[] = {"med", "low", "high"};
    for (int number = 0; number < 3; ++number)
        if (!(LEVELS[number] = PyUnicode_InternFromString(levels[number]))) return false;
    return (EMPTY_TEXT = PyUnicode_InternFromString("")) && (NO_TEXTS = PyTuple_New(0));
}

PyMODINIT_FUNC PyInit_decoder() {
    if (!are_constants_made()) return nullptr;
    PyObject *module = PyModule_Create(&MODULE);
    if (!module) return nullptr;
    Values<COUNT> names;
    try {
        for (const char *name : FIELDS) names.text(name);
        if (!PyModule_AddObject(module, "FIELDS", names.made(&PyTuple_Type))) return module;
    } catch (const Failed &) {
    }
    Py_DECREF(module);
    return nullptr;
}
