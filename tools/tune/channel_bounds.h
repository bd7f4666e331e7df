// SPDX-License-Identifier: Apache-2.0
// Proves a candidate's bounds on the channels ("min_ctas=32"). NCCL takes them when a communicator is
// initialised, and recorded calls do not show them, so the job's own output has to.
#pragma once

#include <string>
#include <string_view>

namespace dynamiccl {

// Returns in a few words why the bounds had no effect in a job with this output; empty if they had. The job
// ran with DYNAMICCL_LOG=info.
std::string WhyBoundsStay(std::string_view output);

}  // namespace dynamiccl
