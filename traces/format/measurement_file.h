// SPDX-License-Identifier: Apache-2.0
// Reads and writes measurement files (.measurements): one JSON object per line, with an end line that carries
// a count and a hash. Grammar: docs/formats/measurements.md.
#pragma once

#include <string>
#include <string_view>

#include "src/base/status.h"
#include "traces/format/measurement.h"

namespace dynamiccl {

// Returns the text of a file. Every number survives writing and reading bit for bit. A number that is not
// finite, or a row whose topology has no context, is an error, so no file is written that the reader would
// refuse.
Result<std::string> FormatMeasurements(const MeasurementFile& file);
Status WriteMeasurementFile(const std::string& path, const MeasurementFile& file);

// Reads a text that FormatMeasurements has written. Errors read "<name>:<line>: <what>". Anything unknown,
// missing, doubled or after the end line is an error, because half a sweep must not train an agent.
Result<MeasurementFile> ParseMeasurements(std::string_view text, const std::string& name);
Result<MeasurementFile> ReadMeasurementFile(const std::string& path);

}  // namespace dynamiccl
