// Stored bytes of events as JSON and in binary frames, and these as websocket messages, without Python
// objects in between. It writes what json_codec.py, frames.py and websocket.py write, byte for byte.
// Where it cannot, it returns None, and Python does it: for a field that it does not know, a time
// outside of the years 1 to 9999, or damaged bytes.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "stored_event.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

// Writes JSON as orjson does.
class Writer {
  public:
    std::string out;

    void raw(Text text) { out.append(text); }

    template <typename Number>
    void number(Number value) {
        char digits[24];
        out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    }

    void text(Text value) {
        static const char *const HEX = "0123456789abcdef";
        out += '"';
        const char *begin = value.data(), *end = begin + value.size();
        for (const char *at = begin; at != end; ++at) {
            unsigned char byte = static_cast<unsigned char>(*at);
            if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
            out.append(begin, at);
            begin = at + 1;
            out += '\\';
            switch (byte) {
                case '"': case '\\': out += char(byte); break;
                case '\b': out += 'b'; break;
                case '\t': out += 't'; break;
                case '\n': out += 'n'; break;
                case '\f': out += 'f'; break;
                case '\r': out += 'r'; break;
                default: out += "u00", out += HEX[byte >> 4], out += HEX[byte & 15];
            }
        }
        out.append(begin, end);
        out += '"';
    }

    void given(Text member, Text value) {
        if (!value.empty()) raw(member), text(value);
    }

    void given(Text member, int64_t value) {
        if (value) raw(member), number(value);
    }

    void given(Text member, const Texts &values) {
        if (values.empty()) return;
        raw(member);
        char before = '[';
        for (Text value : values) out += before, text(value), before = ',';
        out += ']';
    }

    void base64(Text bytes) {
        static const char *const DIGITS =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        out += '"';
        for (size_t at = 0; at < bytes.size(); at += 3) {
            uint32_t group = 0;
            size_t size = std::min<size_t>(3, bytes.size() - at);
            for (size_t byte = 0; byte < 3; ++byte)
                group = group << 8 | (byte < size ? static_cast<unsigned char>(bytes[at + byte]) : 0);
            for (size_t digit = 0; digit < 4; ++digit)
                out += digit <= size ? DIGITS[group >> (18 - 6 * digit) & 63] : '=';
        }
        out += '"';
    }

    // Microseconds since 1970 as RFC 3339 in UTC.
    void time(int64_t time_us) {
        if (time_us < -62'135'596'800'000'000 || time_us > 253'402'300'799'999'999) throw Unknown{};
        const int64_t DAY_US = 86'400'000'000;
        int64_t days = time_us / DAY_US, rest = time_us % DAY_US;
        if (rest < 0) rest += DAY_US, --days;
        days += 719'468;  // since 0000-03-01: a year that begins in March ends with its leap day
        int64_t era = days / 146'097, day = days % 146'097;
        int64_t year = (day - day / 1'460 + day / 36'524 - day / 146'096) / 365;
        int64_t of_year = day - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
        int64_t of_month = of_year - (153 * month + 2) / 5 + 1;
        month += month < 10 ? 3 : -9;
        year += era * 400 + (month <= 2);
        out += '"';
        padded(year, 4), out += '-', padded(month, 2), out += '-', padded(of_month, 2), out += 'T';
        int64_t seconds = rest / 1'000'000;
        padded(seconds / 3'600, 2), out += ':', padded(seconds / 60 % 60, 2), out += ':';
        padded(seconds % 60, 2), out += '.', padded(rest % 1'000'000, 6);
        out += "Z\"";
    }

  private:
    void padded(int64_t value, int digits) {
        char text[8];
        for (int at = digits; at-- > 0; value /= 10) text[at] = char('0' + value % 10);
        out.append(text, size_t(digits));
    }
};

void write_id(Writer &to, const Event &event) {
    if (event.has_text_id && event.has_producer_id) throw Unknown{};
    if (event.has_text_id) to.raw(",\"id\":"), to.text(event.text_id);
    if (!event.has_producer_id) return;
    to.raw(",\"id\":{\"client\":"), to.text(event.client);
    to.raw(",\"timestamp\":"), to.number(event.id_time_us);
    to.raw(",\"sequence\":"), to.number(event.id_sequence);
    to.raw(",\"incarnation\":"), to.number(event.id_incarnation), to.raw("}");
}

// A JSON body as it came, on one line: line breaks can only be between its tokens.
void write_body(Writer &to, const Event &event) {
    if (event.body.empty() && event.content_type.empty()) return;
    to.raw(",\"content_type\":"), to.text(event.content_type);
    if (event.content_type != "application/json") {
        to.raw(",\"body_base64\":"), to.base64(event.body);
        return;
    }
    to.raw(",\"body\":");
    size_t begin = to.out.size();
    to.raw(event.body);
    if (event.body.find('\n') == Text::npos && event.body.find('\r') == Text::npos) return;
    for (size_t at = begin; at < to.out.size(); ++at)
        if (to.out[at] == '\n' || to.out[at] == '\r') to.out[at] = ' ';
}

void write_optional(Writer &to, const Event &event) {
    to.given(",\"application\":", event.application);
    if (!event.environment.empty() && event.environment != "{}")
        to.raw(",\"environment\":"), to.raw(event.environment);
    to.given(",\"depends\":", event.depends);
    to.given(",\"destinations\":", event.destinations);
    to.given(",\"audience\":", event.audience);
    if (event.security_level > 2) throw Unknown{};
    if (event.security_level)
        to.raw(event.security_level == 1 ? ",\"security_level\":\"low\"" : ",\"security_level\":\"high\"");
    to.given(",\"priority\":", event.priority);
    to.given(",\"bundle_number\":", event.bundle_number);
    to.given(",\"time_constraint_ms\":", event.time_constraint_ms);
    if (event.tombstone) to.raw(",\"tombstone\":true");
    if (event.expires_at_us) to.raw(",\"expires_at\":"), to.time(event.expires_at_us);
    if (event.time_us) to.raw(",\"time\":"), to.time(event.time_us);
}

void write_event(Writer &to, Text payload) {
    Event event(payload);
    to.out.reserve(to.out.size() + payload.size() * 5 / 4 + 320);
    to.raw("{\"domain\":"), to.text(event.domain);
    to.raw(",\"type\":"), to.text(event.type);
    write_id(to, event);
    to.given(",\"source\":", event.source), to.given(",\"name\":", event.name);
    to.given(",\"version\":", event.version), to.given(",\"node\":", event.node);
    to.given(",\"key\":", event.key), to.given(",\"bundle\":", event.bundle);
    to.given(",\"correlation\":", event.correlation), to.given(",\"cause\":", event.cause);
    to.given(",\"traceparent\":", event.traceparent), to.given(",\"summary\":", event.summary);
    to.given(",\"merge_scheme\":", event.merge_scheme), to.given(",\"order\":", event.order);
    to.raw(",\"attributes\":"), to.raw(event.attributes);
    write_body(to, event);
    to.raw(",\"mask\":\""), to.number(event.mask), to.raw("\"");
    write_optional(to, event);
    to.raw("}");
}

void write_shared(Writer &to, Text segment, int64_t sequence, int64_t appended_at_us, Text payload) {
    to.raw("\"segment\":\""), to.raw(segment);
    to.raw("\",\"sequence\":"), to.number(sequence);
    to.raw(",\"appended_at\":"), to.time(appended_at_us), to.raw(",\"event\":");
    write_event(to, payload);
}

// frames.shared_json of an event: (segment, sequence, appended_at_us, payload) to a text or None.
PyObject *shared_json(PyObject *, PyObject *args) {
    const char *segment, *payload;
    long long sequence, appended_at_us;
    Py_ssize_t segment_size, size;
    if (!PyArg_ParseTuple(args, "s#LLy#", &segment, &segment_size, &sequence, &appended_at_us,
                          &payload, &size))
        return nullptr;
    Writer to;
    try {
        write_shared(to, {segment, size_t(segment_size)}, sequence, appended_at_us,
                     {payload, size_t(size)});
    } catch (const Unknown &) {
        Py_RETURN_NONE;
    }
    PyObject *text = PyUnicode_DecodeUTF8(to.out.data(), Py_ssize_t(to.out.size()), nullptr);
    if (text || !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) return text;
    PyErr_Clear();  // damaged bytes
    Py_RETURN_NONE;
}

char *put_varint(char *to, uint64_t value) {
    for (; value > 0x7F; value >>= 7) *to++ = char((value & 0x7F) | 0x80);
    *to++ = char(value);
    return to;
}

char *put_number(char *to, int field, int64_t value) {
    if (!value) return to;
    *to++ = char(field << 3 | VARINT);
    return put_varint(to, uint64_t(value));
}

// ServerFrame.event of an event that is nothing but new to its listener. `before`: the fields 1 and 2
// of the EventFrame, which are equal for all events of a segment. `delimited`: after its length.
PyObject *binary_frame(Text before, int64_t sequence, int64_t prev, int liveness,
                       int64_t appended_at_us, Text payload, bool delimited = false) {
    char numbers[64], *end = numbers;
    end = put_number(end, 3, sequence), end = put_number(end, 4, prev);
    end = put_number(end, 5, liveness), end = put_number(end, 6, appended_at_us);
    *end++ = char(15 << 3 | LENGTH_DELIMITED), end = put_varint(end, uint64_t(payload.size()));
    size_t inside = before.size() + size_t(end - numbers) + payload.size();
    char head[16] = {1 << 3 | LENGTH_DELIMITED}, *after = put_varint(head + 1, inside);
    size_t size = size_t(after - head) + inside;
    char length[16], *length_end = delimited ? put_varint(length, size) : length;
    PyObject *frame = PyBytes_FromStringAndSize(nullptr, length_end - length + Py_ssize_t(size));
    if (!frame) return nullptr;
    char *to = PyBytes_AS_STRING(frame);
    for (Text part : {Text(length, size_t(length_end - length)), Text(head, size_t(after - head)),
                      before, Text(numbers, size_t(end - numbers)), payload})
        to = static_cast<char *>(std::memcpy(to, part.data(), part.size())) + part.size();
    return frame;
}

// binary_frame: (before, sequence, prev, liveness, appended_at_us, payload) to bytes.
PyObject *event_frame(PyObject *, PyObject *args) {
    const char *before, *payload;
    long long sequence, prev, appended_at_us;
    int liveness;
    Py_ssize_t before_size, size;
    if (!PyArg_ParseTuple(args, "y#LLiLy#", &before, &before_size, &sequence, &prev, &liveness,
                          &appended_at_us, &payload, &size))
        return nullptr;
    return binary_frame({before, size_t(before_size)}, sequence, prev, liveness, appended_at_us,
                        {payload, size_t(size)});
}

// Whether the fields of an event's stored bytes are those of restricted.py, or not readable.
bool is_restricted(Text payload) {
    try {
        for (Reader reader(payload); reader.more();) {
            uint64_t tag = reader.varint(), field = tag >> 3;
            if (field == 16 || field == 24 || field == 31) return true;
            switch (tag & 7) {
                case VARINT: reader.varint(); break;
                case LENGTH_DELIMITED: reader.text(); break;
                case FIXED64: reader.bytes(8); break;
                case FIXED32: reader.bytes(4); break;
                default: return true;
            }
        }
    } catch (const Unknown &) {
        return true;
    }
    return false;
}

PyObject *may_be_restricted(PyObject *, PyObject *payload) {
    char *at;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(payload, &at, &size)) return nullptr;
    return PyBool_FromLong(is_restricted({at, size_t(size)}));
}

// How frames.py frames the events of a run: CompiledForm.
enum Form { TEXT, BYTES, BINARY, DELIMITED };
const char *const LIVENESS[] = {"live", "recovery", "playback"};  // by its number in event.proto
enum Name { SEGMENT, SEQUENCE, MASK, APPENDED_AT_US, PAYLOAD };  // of a StoredEvent's attributes
PyObject *NAMES[] = {nullptr, nullptr, nullptr, nullptr, nullptr};

// An attribute of an event; the event must outlive its use.
class Attribute {
  public:
    Attribute(PyObject *event, Name name) : value_(PyObject_GetAttr(event, NAMES[name])) {
        if (!value_) throw Failed{};
    }
    ~Attribute() { Py_DECREF(value_); }
    Attribute(const Attribute &) = delete;

    struct Failed {};  // a Python error is set

    int64_t number() const {
        long long number = PyLong_AsLongLong(value_);
        if (number == -1 && PyErr_Occurred()) throw Failed{};
        return number;
    }

    uint64_t bits() const {
        uint64_t bits = PyLong_AsUnsignedLongLongMask(value_);
        if (bits == uint64_t(-1) && PyErr_Occurred()) throw Failed{};
        return bits;
    }

    Text bytes() const {
        char *at;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(value_, &at, &size)) throw Failed{};
        return {at, size_t(size)};
    }

    Text text() const {
        Py_ssize_t size;
        const char *at = PyUnicode_AsUTF8AndSize(value_, &size);
        if (!at) throw Failed{};
        return {at, size_t(size)};
    }

  private:
    PyObject *value_;
};

// Whether bytes are UTF-8; most are ASCII.
bool is_utf8(Text text) {
    unsigned char bits = 0;
    for (char each : text) bits |= static_cast<unsigned char>(each);
    if (bits < 0x80) return true;
    PyObject *decoded = PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), nullptr);
    Py_XDECREF(decoded);
    return decoded != nullptr;
}

// What is around the stored bytes of an event.
struct Stored {
    int64_t sequence, appended_at_us;
    uint64_t mask;
    Text segment, payload;
};

// The frames of consecutive events that nothing but a mask selects.
struct Run {
    PyObject *frames;  // a list
    Py_ssize_t frames_max, bytes_max, written = 0;
    int form, missed;  // the number of the liveness of events up to `head`
    Text segment, before, after;
    uint64_t mask;
    int64_t prev, head;
    Writer to;

    // Reads (form, (segment, before, after), (mask, prev, head, missed), (frames_max, bytes_max)).
    bool parse(PyObject *options) {
        const char *segment_at, *before_at, *after_at;
        Py_ssize_t segment_size, before_size, after_size;
        unsigned long long bits;
        long long last, started;
        if (!PyArg_ParseTuple(options, "i(s#y#y#)(KLLi)(nn)", &form, &segment_at, &segment_size, &before_at,
                              &before_size, &after_at, &after_size, &bits, &last, &started, &missed,
                              &frames_max, &bytes_max))
            return false;
        segment = {segment_at, size_t(segment_size)}, before = {before_at, size_t(before_size)};
        after = {after_at, size_t(after_size)}, mask = bits, prev = last, head = started;
        if (missed >= 0 && missed <= 2) return true;
        PyErr_SetString(PyExc_ValueError, "no liveness");
        return false;
    }

    bool full() const { return PyList_GET_SIZE(frames) >= frames_max || written > bytes_max; }

    // Appends the frame of an event that the mask selects; false if Python is to decide or to write it,
    // or with an error.
    bool append(const Stored &stored) {
        if (is_restricted(stored.payload)) return false;
        PyObject *frame = nullptr;
        try {
            frame = framed(stored);
        } catch (const Unknown &) {
            return false;
        }
        if (!frame) {
            if (PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) PyErr_Clear();  // damaged bytes
            return false;
        }
        bool appended = !PyList_Append(frames, frame);
        Py_DECREF(frame);
        prev = stored.sequence, written += Py_ssize_t(stored.payload.size());
        return appended;
    }

  private:
    PyObject *framed(const Stored &stored) {
        int liveness = stored.sequence > head ? 0 : missed;
        if (form >= BINARY) {
            if (stored.segment != segment) throw Unknown{};
            return binary_frame(before, stored.sequence, prev, liveness, stored.appended_at_us,
                                stored.payload, form == DELIMITED);
        }
        to.out.clear();
        to.raw(before), to.raw("\"prev\":"), to.number(prev);
        to.raw(",\"liveness\":\""), to.raw(LIVENESS[liveness]), to.raw("\",");
        write_shared(to, stored.segment, stored.sequence, stored.appended_at_us, stored.payload);
        to.raw(after);
        if (form == TEXT)
            return PyUnicode_DecodeUTF8(to.out.data(), Py_ssize_t(to.out.size()), nullptr);
        if (!is_utf8(to.out)) return nullptr;
        return PyBytes_FromStringAndSize(to.out.data(), Py_ssize_t(to.out.size()));
    }
};

// Appends the frames of a run of events that nothing but a mask selects: (frames, events, at, options),
// with the options of `Run`, to the position after the last event evaluated, the last sequence sent, and
// the stored bytes framed. It ends before an event that Python is to evaluate or to frame.
PyObject *plain_frames(PyObject *, PyObject *args) {
    PyObject *events, *options;
    Py_ssize_t at;
    Run run;
    if (!PyArg_ParseTuple(args, "O!O!nO!", &PyList_Type, &run.frames, &PyList_Type, &events, &at,
                          &PyTuple_Type, &options) ||
        !run.parse(options))
        return nullptr;
    try {
        for (; at < PyList_GET_SIZE(events) && !run.full(); ++at) {
            PyObject *event = PyList_GET_ITEM(events, at);
            uint64_t mask = Attribute(event, MASK).bits();
            if (!(mask & run.mask)) continue;
            Attribute segment(event, SEGMENT), payload(event, PAYLOAD);
            Stored stored{Attribute(event, SEQUENCE).number(), Attribute(event, APPENDED_AT_US).number(),
                          mask, segment.text(), payload.bytes()};
            if (!run.append(stored)) break;
        }
    } catch (const Attribute::Failed &) {
    }
    if (PyErr_Occurred()) return nullptr;
    return Py_BuildValue("(nLn)", at, (long long)run.prev, run.written);
}

// Reads the events of a page that the database packed (`packed_events` in read.sql): of each its
// sequence, its mask and its time in microseconds since 2000, as 64-bit numbers, and the stored bytes after
// their length in 32 bits.
class PackedEvents {
  public:
    explicit PackedEvents(Text bytes) : begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()) {}

    static constexpr uint64_t FROM_1970_US = 946'684'800'000'000;  // to 2000

    // Reads the next event; false at the end, or if it is not complete.
    bool next(Stored &stored) {
        if (end_ - at_ < 28) return false;
        stored.sequence = int64_t(number(at_, 8)), stored.mask = number(at_ + 8, 8);
        stored.appended_at_us = int64_t(number(at_ + 16, 8) + FROM_1970_US);
        uint64_t size = number(at_ + 24, 4);
        if (size > uint64_t(end_ - at_ - 28)) return false;
        stored.payload = {at_ + 28, size_t(size)};
        at_ += 28 + size;
        return true;
    }

    void back(const Stored &stored) { at_ -= 28 + stored.payload.size(); }

    Py_ssize_t offset() const { return at_ - begin_; }

  private:
    static uint64_t number(const char *at, int bytes) {
        uint64_t value = 0;
        for (int byte = 0; byte < bytes; ++byte) value = value << 8 | static_cast<unsigned char>(at[byte]);
        return value;
    }

    const char *begin_, *at_, *end_;
};

// What follows a sequence without a hole in packed events: (packed, after) to the number of events, the
// bytes that they take there, and the size of the largest.
PyObject *packed_run(PyObject *, PyObject *args) {
    const char *packed;
    Py_ssize_t size, offset = 0, count = 0;
    long long after;
    if (!PyArg_ParseTuple(args, "y#L", &packed, &size, &after)) return nullptr;
    PackedEvents events({packed, size_t(size)});
    size_t largest = 0;
    for (Stored stored; events.next(stored) && uint64_t(stored.sequence) == uint64_t(after) + 1; ++count) {
        after = stored.sequence, offset = events.offset();
        largest = std::max(largest, stored.payload.size());
    }
    return Py_BuildValue("(nnn)", count, offset, Py_ssize_t(largest));
}

// Does what plain_frames does for packed events of the segment: (frames, packed, segment, (offset, count),
// options) to the number of events evaluated, the offset after them, the last sequence sent, and the
// stored bytes framed.
PyObject *packed_frames(PyObject *, PyObject *args) {
    PyObject *options;
    const char *packed, *segment;
    Py_ssize_t size, segment_size, offset, count, done = 0;
    Run run;
    if (!PyArg_ParseTuple(args, "O!y#s#(nn)O!", &PyList_Type, &run.frames, &packed, &size, &segment,
                          &segment_size, &offset, &count, &PyTuple_Type, &options) ||
        !run.parse(options))
        return nullptr;
    if (offset < 0 || offset > size) return PyErr_Format(PyExc_ValueError, "no offset");
    PackedEvents events({packed + offset, size_t(size - offset)});
    Stored stored;
    stored.segment = {segment, size_t(segment_size)};
    for (; done < count && !run.full() && events.next(stored); ++done) {
        if ((stored.mask & run.mask) && !run.append(stored)) {
            events.back(stored);
            break;
        }
    }
    if (PyErr_Occurred()) return nullptr;
    return Py_BuildValue("(nnLn)", done, offset + events.offset(), (long long)run.prev, run.written);
}

// Messages of a websocket with their headers (RFC 6455, 5.2), unmasked: a list of texts and bytes to
// bytes.
PyObject *websocket_messages(PyObject *, PyObject *messages) {
    if (!PyList_Check(messages)) return PyErr_Format(PyExc_TypeError, "expected a list");
    struct Message {
        unsigned char first;
        Text text;
    };
    std::vector<Message> found;
    size_t whole = 0;
    found.reserve(size_t(PyList_GET_SIZE(messages)));
    for (Py_ssize_t index = 0; index < PyList_GET_SIZE(messages); ++index) {
        PyObject *message = PyList_GET_ITEM(messages, index);
        Py_ssize_t size;
        const char *at;
        bool is_text = PyUnicode_Check(message);
        if (is_text) {
            if (!(at = PyUnicode_AsUTF8AndSize(message, &size))) return nullptr;
        } else {
            char *bytes;
            if (PyBytes_AsStringAndSize(message, &bytes, &size)) return nullptr;
            at = bytes;
        }
        found.push_back({static_cast<unsigned char>(is_text ? 0x81 : 0x82), {at, size_t(size)}});
        whole += size_t(size) + (size < 126 ? 2 : size < 0x10000 ? 4 : 10);
    }
    PyObject *joined = PyBytes_FromStringAndSize(nullptr, Py_ssize_t(whole));
    if (!joined) return nullptr;
    char *to = PyBytes_AS_STRING(joined);
    for (const Message &message : found) {
        uint64_t size = message.text.size();
        int bytes = size < 126 ? 0 : size < 0x10000 ? 2 : 8;  // of the length, after its mark
        *to++ = char(message.first);
        *to++ = char(bytes == 0 ? size : bytes == 2 ? 126 : 127);
        for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) *to++ = char(size >> shift & 0xFF);
        to = static_cast<char *>(std::memcpy(to, message.text.data(), size)) + size;
    }
    return joined;
}

PyMethodDef FUNCTIONS[] = {{"shared_json", shared_json, METH_VARARGS, nullptr},
                           {"event_frame", event_frame, METH_VARARGS, nullptr},
                           {"plain_frames", plain_frames, METH_VARARGS, nullptr},
                           {"packed_run", packed_run, METH_VARARGS, nullptr},
                           {"packed_frames", packed_frames, METH_VARARGS, nullptr},
                           {"may_be_restricted", may_be_restricted, METH_O, nullptr},
                           {"websocket_messages", websocket_messages, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "transcoder", nullptr, 0, FUNCTIONS, nullptr, nullptr,
                      nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_transcoder() {
    const char *const names[] = {"segment", "sequence", "mask", "appended_at_us", "payload"};
    for (int name = SEGMENT; name <= PAYLOAD; ++name)
        if (!(NAMES[name] = PyUnicode_InternFromString(names[name]))) return nullptr;
    return PyModule_Create(&MODULE);
}
