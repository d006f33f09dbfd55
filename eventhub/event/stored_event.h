// The stored bytes of an event, which event.proto describes, as they are read without Python objects.

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace {

using Text = std::string_view;
using Texts = std::vector<Text>;

struct Unknown {};  // to be written by Python

// Reads protobuf fields.
class Reader {
  public:
    explicit Reader(Text bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

    bool more() const { return at_ != end_; }

    uint64_t varint() {
        uint64_t value = 0;
        for (int shift = 0; shift < 70 && at_ != end_; shift += 7) {
            unsigned char byte = static_cast<unsigned char>(*at_++);
            value |= uint64_t(byte & 0x7F) << shift;
            if (byte < 0x80) return value;
        }
        throw Unknown{};
    }

    uint64_t fixed64() {
        if (end_ - at_ < 8) throw Unknown{};
        uint64_t value = 0;
        for (int byte = 7; byte >= 0; --byte) value = value << 8 | static_cast<unsigned char>(at_[byte]);
        at_ += 8;
        return value;
    }

    Text text() { return bytes(varint()); }

    Text bytes(uint64_t size) {
        if (size > uint64_t(end_ - at_)) throw Unknown{};
        at_ += size;
        return {at_ - size, size_t(size)};
    }

  private:
    const char *at_, *end_;
};

enum Wire { VARINT = 0, FIXED64 = 1, LENGTH_DELIMITED = 2, FIXED32 = 5 };

// The fields of event.proto, by number.
struct Event {
    bool has_producer_id = false, has_text_id = false;
    Text client, text_id, source, domain, type, name, version, attributes = "{}", body, content_type,
        node, environment, key, bundle, correlation, cause, traceparent, summary, merge_scheme, order;
    int64_t id_time_us = 0, id_sequence = 0, id_incarnation = 0;
    uint64_t mask = 0, security_level = 0;
    int64_t priority = 0, expires_at_us = 0, time_us = 0, bundle_number = 0, time_constraint_ms = 0;
    bool tombstone = false, filterable_data = false;
    Texts application, depends, destinations, audience;

    explicit Event(Text bytes) {
        for (Reader reader(bytes); reader.more();) {
            uint64_t tag = reader.varint();
            switch (tag & 7) {
                case VARINT: number(tag >> 3, reader.varint()); break;
                case LENGTH_DELIMITED: text(tag >> 3, reader.text()); break;
                case FIXED64:
                    if (tag >> 3 != 14) throw Unknown{};
                    mask = reader.fixed64();
                    break;
                default: throw Unknown{};
            }
        }
    }

  private:
    void number(uint64_t field, uint64_t value) {
        switch (field) {
            case 15: priority = int32_t(uint32_t(value) >> 1 ^ (~(uint32_t(value) & 1) + 1)); break;
            case 16: expires_at_us = int64_t(value); break;
            case 17: time_us = int64_t(value); break;
            case 25: security_level = value; break;
            case 27: bundle_number = int64_t(value); break;
            case 28: time_constraint_ms = int64_t(value); break;
            case 30: tombstone = value != 0; break;
            case 33: filterable_data = value != 0; break;
            default: throw Unknown{};
        }
    }

    void text(uint64_t field, Text value) {
        switch (field) {
            case 1: producer_id(value); break;
            case 2: text_id = value, has_text_id = true; break;
            case 3: source = value; break;
            case 4: domain = value; break;
            case 5: type = value; break;
            case 6: name = value; break;
            case 7: version = value; break;
            case 8: attributes = value; break;
            case 9: body = value; break;
            case 10: content_type = value; break;
            case 11: node = value; break;
            case 12: application.push_back(value); break;
            case 13: environment = value; break;
            case 18: key = value; break;
            case 19: bundle = value; break;
            case 20: depends.push_back(value); break;
            case 21: correlation = value; break;
            case 22: cause = value; break;
            case 23: traceparent = value; break;
            case 24: destinations.push_back(value); break;
            case 26: summary = value; break;
            case 29: merge_scheme = value; break;
            case 31: audience.push_back(value); break;
            case 32: order = value; break;
            default: throw Unknown{};
        }
    }

    void producer_id(Text bytes) {
        if (has_producer_id) throw Unknown{};  // protobuf merges repeated messages
        has_producer_id = true;
        for (Reader reader(bytes); reader.more();) {
            switch (reader.varint()) {
                case 1 << 3 | LENGTH_DELIMITED: client = reader.text(); break;
                case 2 << 3 | VARINT: id_time_us = int64_t(reader.varint()); break;
                case 3 << 3 | VARINT: id_sequence = int64_t(reader.varint()); break;
                case 4 << 3 | VARINT: id_incarnation = int64_t(reader.varint()); break;
                default: throw Unknown{};
            }
        }
    }
};

}  // namespace
