// SPDX-License-Identifier: Apache-2.0
// The known name that a mistyped one was most likely meant to be.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace dynamiccl {

// Levenshtein distance in characters.
size_t EditDistance(std::string_view a, std::string_view b);

// The first of the nearest; empty when `known` is empty.
std::string NearestName(std::string_view name, std::span<const std::string_view> known);

}  // namespace dynamiccl
