// SPDX-License-Identifier: Apache-2.0
// Reads fields of other tools' JSON. A field may be missing or have an unusual type, which is no error by
// itself, because releases of those tools differ. Private to traces/import, because it exposes nlohmann's
// types.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "traces/import/json_members.h"

namespace dynamiccl {

using Json = nlohmann::json;

// The value of a key; null without one, or where `json` is no object.
inline const Json& FieldOf(const Json& json, const char* key) {
  static const Json null;
  if (!json.is_object()) return null;
  const auto place = json.find(key);
  return place == json.end() ? null : *place;
}

// The text of a key; empty where it is missing or no text.
inline std::string TextOf(const Json& json, const char* key) {
  const Json& value = FieldOf(json, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

// An integer, also one written as text or with decimals of zero; nothing beyond 64 bits.
inline std::optional<int64_t> IntegerIn(const Json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return std::nullopt;
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_string()) return JsonInteger(value.get<std::string>());
  if (!value.is_number_float() || std::abs(value.get<double>()) > 9e15) return std::nullopt;
  return static_cast<int64_t>(value.get<double>());
}
// The integer of a key, or `otherwise`.
inline int64_t IntegerOf(const Json& json, const char* key, int64_t otherwise) {
  return IntegerIn(FieldOf(json, key)).value_or(otherwise);
}

// Microseconds or other units with decimals; nothing where the value is no finite number within `limit`.
inline std::optional<double> NumberOf(const Json& json, const char* key, double limit) {
  const Json& value = FieldOf(json, key);
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  return std::abs(number) <= limit ? std::optional(number) : std::nullopt;
}

// The product of dimensions, the sum over tensors: [[3,4],[5]] -> 17, [[]] -> 1 (a scalar). Nested lists of
// tensors count too. Nothing for no tensors, for values that are no shape, and beyond 2^62.
inline std::optional<int64_t> ElementsOfShapes(const Json& shapes) {
  if (!shapes.is_array() || shapes.empty()) return std::nullopt;
  int64_t sum = 0;
  for (const Json& shape : shapes) {
    if (!shape.is_array()) return std::nullopt;
    if (!shape.empty() && shape[0].is_array()) {
      const auto nested = ElementsOfShapes(shape);
      if (!nested || __builtin_add_overflow(sum, *nested, &sum)) return std::nullopt;
      continue;
    }
    int64_t elements = 1;
    for (const Json& dimension : shape) {
      const int64_t size = IntegerIn(dimension).value_or(-1);
      if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, elements, &sum)) return std::nullopt;
  }
  return sum > (int64_t{1} << 62) ? std::nullopt : std::optional(sum);
}

}  // namespace dynamiccl
