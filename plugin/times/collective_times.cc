// SPDX-License-Identifier: Apache-2.0
#include "plugin/times/collective_times.h"

#include <fmt/format.h>

#include <algorithm>

namespace dynamiccl {

std::string CollectiveTimes::Summary() const {
  const uint64_t calls = calls_.load();
  const double share =
      100.0 * static_cast<double>(kernels_.begun()) / static_cast<double>(std::max<uint64_t>(1, calls));
  return fmt::format("timed {} of {} calls ({:.2f} %), {} to their end: {} callbacks, {:.1f} us",
                     kernels_.begun(), calls, share, kernels_.finished(), callbacks_.load(),
                     static_cast<double>(callback_ns_.load()) / 1000);
}

}  // namespace dynamiccl
