// The names of gates and values in the index, as byte strings; mirrors names.py.

#pragma once

#include <cmath>
#include <cstring>

#include "parts.h"

inline void add_part(std::string &name, PyObject *text) {
    Utf8 part(text);
    name += std::to_string(part.view.size());
    name += ':';
    name += part.view;
}

inline void add_integer(std::string &name, PyObject *value) {
    int overflow = 0;
    long long small = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (!overflow) {
        name += 'i';
        name += std::to_string(small);
        return;
    }
    nb::object text = nb::steal(PyNumber_ToBase(value, 16));
    if (!text.is_valid()) nb::raise_python_error();
    std::string digits(Utf8(text.ptr()).view);
    name += 'I';
    name += digits.erase(digits.find("0x"), 2);
}

inline bool add_float(std::string &name, double value) {
    if (std::isnan(value)) return false;
    if (std::isfinite(value) && value == std::floor(value)) {
        if (value >= -9223372036854775808.0 && value < 9223372036854775808.0) {
            name += 'i';
            name += std::to_string((long long)value);
            return true;
        }
        nb::object whole = nb::steal(PyLong_FromDouble(value));
        if (!whole.is_valid()) nb::raise_python_error();
        add_integer(name, whole.ptr());
        return true;
    }
    u64 bits;
    std::memcpy(&bits, &value, 8);
    name += 'd';
    for (int shift = 60; shift >= 0; shift -= 4) name += "0123456789abcdef"[bits >> shift & 15];
    return true;
}

// As names.value_tail; false for a value that equals nothing.
inline bool add_tail(std::string &name, PyObject *value) {
    if (PyUnicode_Check(value)) {
        name += 's';
        name += Utf8(value).view;
    } else if (value == Py_None) {
        name += 'n';
    } else if (PyBool_Check(value)) {
        name += value == Py_True ? 't' : 'f';
    } else if (PyLong_Check(value)) {
        add_integer(name, value);
    } else if (PyFloat_Check(value)) {
        return add_float(name, PyFloat_AS_DOUBLE(value));
    } else {
        return false;
    }
    return true;
}
