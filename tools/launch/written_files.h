// SPDX-License-Identifier: Apache-2.0
// Finds the files that the processes of a launch wrote, by the pattern of their names and by their time.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dynamiccl {

// Returns the time to pass to FilesWrittenSince for a launch that begins now. It is slightly in the past,
// because file times may come from another machine's clock, or may be some milliseconds late.
std::filesystem::file_time_type LaunchTime();

// The files that match `pattern` and were written since `begun`, in order of their names. In the pattern %h,
// %p and %r stand for host, process and rank, and match any text. Files of earlier jobs are left out by their
// time.
std::vector<std::string> FilesWrittenSince(const std::string& pattern, std::filesystem::file_time_type begun);

}  // namespace dynamiccl
