// SPDX-License-Identifier: Apache-2.0
// Finds the releases that bring a fault and end it, among those that are on this machine.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "src/base/status.h"
#include "tests/real_nccl/nccl_release.h"

namespace dynamiccl {

// kHidden: the release does not come far enough to show whether it has the fault.
enum class FaultState { kPresent, kAbsent, kHidden };

struct Bisection {
  // The last release before the fault and the first with it, among those that ran.
  real_nccl::NcclRelease last_without;
  real_nccl::NcclRelease first_with;
  // The last release with the fault and the first without it again, among those that ran. Both are empty if
  // the newest release that ran has the fault.
  std::optional<real_nccl::NcclRelease> last_with;
  std::optional<real_nccl::NcclRelease> free_again;
  // Published releases between the two of a pair above. Any of them may be the one that brings or ends the
  // fault, and none of them ran.
  std::vector<real_nccl::NcclRelease> not_looked_at;
  std::vector<real_nccl::NcclRelease> hidden;  // those that ran and were FaultState::kHidden
};

// Halves the range of releases between `without`, which is free of the fault, and `with`, a newer one that
// has it, and then the range of releases from `with` to the newest. `here` are the releases that can run, in
// any order. `state` runs one of them. The fault is taken to be one period of releases.
Result<Bisection> BisectFault(const real_nccl::NcclRelease& without, const real_nccl::NcclRelease& with,
                              const std::vector<real_nccl::NcclRelease>& here,
                              const std::function<Result<FaultState>(const real_nccl::NcclRelease&)>& state);

// The releases from 2.18 to 2.32.3 that PyPI has as nvidia-nccl-cu12, the oldest first (2026-11-28).
const std::vector<real_nccl::NcclRelease>& PublishedReleases();

}  // namespace dynamiccl
