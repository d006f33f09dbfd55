// XXH64, per its specification (xxhash.com); for little-endian machines only, like the index.

#pragma once

#include <cstdint>
#include <cstring>

inline std::uint64_t xxh64(const char *data, std::size_t size, std::uint64_t seed) {
    using u64 = std::uint64_t;
    constexpr u64 P1 = 11400714785074694791ULL, P2 = 14029467366897019727ULL,
                  P3 = 1609587929392839161ULL, P4 = 9650029242287828579ULL,
                  P5 = 2870177450012600261ULL;
    auto rotate = [](u64 word, int by) { return word << by | word >> (64 - by); };
    auto read64 = [](const char *at) { u64 word; std::memcpy(&word, at, 8); return word; };
    auto read32 = [](const char *at) { std::uint32_t word; std::memcpy(&word, at, 4); return word; };
    auto round = [&](u64 lane, u64 word) { return rotate(lane + word * P2, 31) * P1; };
    const char *end = data + size;
    u64 hash;
    if (size >= 32) {
        u64 a = seed + P1 + P2, b = seed + P2, c = seed, d = seed - P1;
        do {
            a = round(a, read64(data)), b = round(b, read64(data + 8));
            c = round(c, read64(data + 16)), d = round(d, read64(data + 24));
            data += 32;
        } while (end - data >= 32);
        hash = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
        for (u64 lane : {a, b, c, d}) hash = (hash ^ round(0, lane)) * P1 + P4;
    } else {
        hash = seed + P5;
    }
    hash += size;
    for (; end - data >= 8; data += 8) hash = rotate(hash ^ round(0, read64(data)), 27) * P1 + P4;
    if (end - data >= 4) {
        hash = rotate(hash ^ read32(data) * P1, 23) * P2 + P3;
        data += 4;
    }
    for (; data < end; ++data) hash = rotate(hash ^ (unsigned char)*data * P5, 11) * P1;
    hash = (hash ^ hash >> 33) * P2;
    hash = (hash ^ hash >> 29) * P3;
    return hash ^ hash >> 32;
}
