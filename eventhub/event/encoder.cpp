// Emitted JSON as stored bytes, without Python objects in between: it checks and writes what inbound.py
// does, byte for byte. It knows plain events, of a few fields, whose JSON needs no more than its blanks
// removed. For all others, and for any error, it returns None, and Python does it.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Text = std::string_view;

struct Unknown {};  // to be read by Python

struct Limits {
    Py_ssize_t events, text, attributes, attribute_names, attribute_values, event;
};

const int DEPTH_MAX = 16;  // half of limits.JSON_DEPTH_MAX

// Reads JSON, and writes it without blanks.
class Reader {
  public:
    std::string out;
    Py_ssize_t values = 0;  // within objects and lists since it was set

    explicit Reader(Text text) : at_(text.data()), end_(text.data() + text.size()) {}

    char peek() {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
        return at_ == end_ ? '\0' : *at_;
    }

    bool take(char expected) {
        if (peek() != expected || at_ == end_) return false;
        ++at_;
        return true;
    }

    void need(char expected) {
        if (!take(expected)) throw Unknown{};
    }

    void need_end() {
        if (peek(), at_ != end_) throw Unknown{};
    }

    // The bytes of a text, between its quotes. Its escapes are those that JSON is written with.
    Text text(bool escapes) {
        need('"');
        const char *begin = at_;
        for (; at_ != end_; ++at_) {
            unsigned char byte = static_cast<unsigned char>(*at_);
            if (byte == '"') return {begin, size_t(at_++ - begin)};
            if (byte < 0x20) break;
            if (byte >= 0x80) {
                character(byte);
            } else if (byte == '\\') {
                if (!escapes || ++at_ == end_ || !std::memchr("\"\\bfnrt", *at_, 7)) break;
            }
        }
        throw Unknown{};
    }

    void value(int depth) {
        switch (peek()) {
            case '{': object(depth); break;
            case '[': list(depth); break;
            case '"': quoted(); break;
            case 't': word("true"); break;
            case 'f': word("false"); break;
            case 'n': word("null"); break;
            default: number();
        }
    }

    // Returns the number of its members.
    size_t object(int depth) {
        std::vector<Text> names;
        if (depth > DEPTH_MAX) throw Unknown{};
        need('{'), out += '{';
        for (bool first = true; !take('}'); first = false) {
            if (!first) need(','), out += ',';
            Text name = quoted();
            // a reference, or a name that looks like one
            if (name.size() >= 4 && name.substr(name.size() - 4) == "$ref") throw Unknown{};
            names.push_back(name);
            need(':'), out += ':', ++values;
            value(depth + 1);
        }
        out += '}';
        size_t count = names.size();
        std::sort(names.begin(), names.end());
        if (std::adjacent_find(names.begin(), names.end()) != names.end()) throw Unknown{};
        return count;
    }

  private:
    const char *at_, *end_;

    Text quoted() {
        Text found = text(true);
        out += '"', out.append(found), out += '"';
        return found;
    }

    void list(int depth) {
        if (depth > DEPTH_MAX) throw Unknown{};
        need('['), out += '[';
        for (bool first = true; !take(']'); first = false) {
            if (!first) need(','), out += ',';
            ++values;
            value(depth + 1);
        }
        out += ']';
    }

    void word(Text expected) {
        if (Text(at_, size_t(end_ - at_)).substr(0, expected.size()) != expected) throw Unknown{};
        at_ += expected.size(), out.append(expected);
    }

    // A number that Python writes as it is, but for zeros at its end: an integer of 18 digits, or one
    // of 15 with a fraction and no exponent, which a double represents exactly enough.
    void number() {
        const char *begin = at_;
        if (at_ != end_ && *at_ == '-') ++at_;
        const char *whole = at_;
        digits();
        size_t before = size_t(at_ - whole);
        if (!before || before > 18 || (before > 1 && *whole == '0')) throw Unknown{};
        if (at_ == end_ || (*at_ != '.' && *at_ != 'e' && *at_ != 'E')) {
            if (*begin == '-' && *whole == '0') throw Unknown{};
            out.append(begin, at_);
            return;
        }
        const char *point = at_++;
        digits();
        const char *last = at_;
        if (*point != '.' || last == point + 1) throw Unknown{};
        if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) throw Unknown{};
        while (last > point + 2 && last[-1] == '0') --last;
        // 0.0001 is the least that is written so; the sign of a zero is left to Python
        if (before + size_t(last - point - 1) > 15) throw Unknown{};
        if (*whole == '0' && Text(point + 1, size_t(last - point - 1)).substr(0, 4) == "0000") throw Unknown{};
        if (*whole == '0' && *begin == '-' && Text(point + 1, size_t(last - point - 1)) == "0") throw Unknown{};
        out.append(begin, last);
    }

    void digits() {
        while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    }

    // One character beyond ASCII, well-formed (RFC 3629); leaves `at_` at its last byte.
    void character(unsigned char first) {
        int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
        if (first < 0xC2 || first > 0xF4 || end_ - at_ <= more) throw Unknown{};
        unsigned char second = static_cast<unsigned char>(at_[1]);
        if (first == 0xE0 && second < 0xA0) throw Unknown{};
        if (first == 0xED && second > 0x9F) throw Unknown{};  // a surrogate
        if (first == 0xF0 && second < 0x90) throw Unknown{};
        if (first == 0xF4 && second > 0x8F) throw Unknown{};
        for (int byte = 1; byte <= more; ++byte)
            if ((static_cast<unsigned char>(at_[byte]) & 0xC0) != 0x80) throw Unknown{};
        at_ += more;
    }
};

// The fields of a plain event that are texts, by number, in that order.
enum Field { DOMAIN_, TYPE, NAME, VERSION, NODE, CORRELATION, CAUSE, TRACEPARENT, SUMMARY, FIELDS };
const Text NAMES[] = {"domain", "type", "name", "version", "node",
                      "correlation", "cause", "traceparent", "summary"};
const int NUMBERS[] = {4, 5, 6, 7, 11, 21, 22, 23, 26};

struct Event {
    bool given[FIELDS] = {}, has_attributes = false, has_body = false;
    Text texts[FIELDS];
    std::string attributes = "{}", body;

    Event(Reader &reader, const Limits &limits) {
        reader.need('{');
        for (bool first = true; !reader.take('}'); first = false) {
            if (!first) reader.need(',');
            Text name = reader.text(false);
            reader.need(':');
            if (name == "attributes")
                read_attributes(reader, limits);
            else if (name == "body")
                read_body(reader);
            else
                read_text(reader, name, limits);
        }
        if (texts[DOMAIN_].empty() || texts[TYPE].empty()) throw Unknown{};
    }

  private:
    void read_attributes(Reader &reader, const Limits &limits) {
        if (has_attributes) throw Unknown{};
        has_attributes = true;
        reader.out.clear(), reader.values = 0;
        size_t count = reader.object(1);
        if (Py_ssize_t(reader.out.size()) > limits.attributes) throw Unknown{};
        if (Py_ssize_t(count) > limits.attribute_names) throw Unknown{};
        if (reader.values > limits.attribute_values) throw Unknown{};
        attributes.swap(reader.out);
    }

    void read_body(Reader &reader) {
        if (has_body) throw Unknown{};
        has_body = true;
        reader.out.clear();
        reader.value(1);
        body.swap(reader.out);
    }

    void read_text(Reader &reader, Text name, const Limits &limits) {
        size_t field = size_t(std::find(NAMES, NAMES + FIELDS, name) - NAMES);
        if (field == FIELDS || given[field]) throw Unknown{};
        given[field] = true;
        texts[field] = reader.text(false);
        if (Py_ssize_t(texts[field].size()) > limits.text) throw Unknown{};
    }
};

void put_varint(std::string &to, uint64_t value) {
    for (; value > 0x7F; value >>= 7) to += char((value & 0x7F) | 0x80);
    to += char(value);
}

void put(std::string &to, int number, Text text) {
    if (text.empty()) return;
    put_varint(to, uint64_t(number) << 3 | 2);
    put_varint(to, text.size());
    to.append(text);
}

// The stored bytes, with the fields in the order of their numbers, as protobuf writes them.
void write(std::string &to, const Event &event, Text client, uint64_t mask) {
    put(to, 3, client);
    for (int field = DOMAIN_; field < NODE; ++field) put(to, NUMBERS[field], event.texts[field]);
    put(to, 8, event.attributes);
    put(to, 9, event.body);
    if (event.has_body) put(to, 10, "application/json");
    put(to, 11, event.texts[NODE].empty() ? client : event.texts[NODE]);
    to += char(14 << 3 | 1);
    for (int byte = 0; byte < 8; ++byte) to += char(mask >> (8 * byte) & 0xFF);
    for (int field = CORRELATION; field < FIELDS; ++field) put(to, NUMBERS[field], event.texts[field]);
}

// (body, client, mask, limits) to a list of the stored bytes of each event, or None.
PyObject *plain_events(PyObject *, PyObject *args) {
    const char *body, *client;
    Py_ssize_t body_size, client_size;
    unsigned long long mask;
    Limits limits;
    if (!PyArg_ParseTuple(args, "y#s#K(nnnnnn)", &body, &body_size, &client, &client_size, &mask,
                          &limits.events, &limits.text, &limits.attributes, &limits.attribute_names,
                          &limits.attribute_values, &limits.event))
        return nullptr;
    PyObject *found = PyList_New(0);
    if (!found) return nullptr;
    std::string bytes;
    try {
        Reader reader({body, size_t(body_size)});
        bool many = reader.take('[');
        do {
            if (PyList_GET_SIZE(found) == limits.events) throw Unknown{};
            bytes.clear();
            write(bytes, Event(reader, limits), {client, size_t(client_size)}, mask);
            if (Py_ssize_t(bytes.size()) > limits.event) throw Unknown{};
            PyObject *one = PyBytes_FromStringAndSize(bytes.data(), Py_ssize_t(bytes.size()));
            int failed = one ? PyList_Append(found, one) : -1;
            Py_XDECREF(one);
            if (failed) {
                Py_DECREF(found);
                return nullptr;
            }
        } while (many && reader.take(','));
        if (many) reader.need(']');
        reader.need_end();
    } catch (const Unknown &) {
        Py_DECREF(found);
        Py_RETURN_NONE;
    }
    return found;
}

PyMethodDef FUNCTIONS[] = {{"plain_events", plain_events, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "encoder", nullptr, 0, FUNCTIONS, nullptr, nullptr,
                      nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_encoder() { return PyModule_Create(&MODULE); }
