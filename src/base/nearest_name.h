// SPDX-License-Identifier: Apache-2.0
// Finds the known name that a user most likely meant by a mistyped one, for hints in error messages.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace dynamiccl {

// Returns the Levenshtein distance: the smallest number of inserted, removed or replaced characters that
// turns `a` into `b`.
size_t EditDistance(std::string_view a, std::string_view b);

// Returns the known name with the smallest distance, the first one among equals; empty if `known` is empty.
std::string NearestName(std::string_view name, std::span<const std::string_view> known);

// Returns NearestName, or an empty text if it differs in more than half of the letters of `name`: as a hint
// it would mislead.
std::string SimilarName(std::string_view name, std::span<const std::string_view> known);

}  // namespace dynamiccl
