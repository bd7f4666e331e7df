// SPDX-License-Identifier: Apache-2.0
// The free parts of a range of bytes, such as a file or a stretch of addresses.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace cuda_standin {

// At first nothing is free. Takes are first-fit. Not thread-safe.
class FreeRanges {
 public:
  // Takes a range that starts at a multiple of `alignment`, and returns its start. Returns nothing if no free
  // range is large enough.
  std::optional<size_t> Take(size_t bytes, size_t alignment);
  // Makes a range free that is not free yet: a new one, a taken one or a part of it.
  void Return(size_t begin, size_t bytes);

 private:
  std::map<size_t, size_t> free_;  // bytes of each free range, by its start; ranges are never adjacent
};

}  // namespace cuda_standin
