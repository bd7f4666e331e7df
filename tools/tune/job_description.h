// SPDX-License-Identifier: Apache-2.0
// Describes the watched job for the screen of a tune: the settings that decide its communication.
#pragma once

#include <optional>
#include <string>

#include "tools/tune/watched_run.h"

namespace dynamiccl {

// Returns what is recognised of the job, separated by commas: ZeRO stage, buckets or wrapped modules,
// prefetch, the ranks over which states are divided if these are not all, and the type in which gradients are
// summed. Each part is left out if it is not recognised. `exposed_share` is the share of a step that waits
// for communication, as simulated; nothing: not known.
std::string DescribeJob(const WatchedRun& base, std::optional<double> exposed_share);

// Returns the collectives of a step, in a text such as "3 AllReduces of 1.1M together, 4 AllGathers of 2M
// together".
std::string CallsOfStep(const RecordedStep& step);

}  // namespace dynamiccl
