// SPDX-License-Identifier: Apache-2.0
// Files of other tools as traces or measurements: one interface, one file a format. How to add one:
// docs/adding_a_trace_importer.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "traces/format/measurement.h"
#include "traces/format/trace.h"

namespace dynamiccl {

// A field that the file does not tell, for `count` of the calls or rows; `instead` says what stands there
// now.
struct UnfilledField {
  std::string field;
  uint64_t count = 0;
  std::string instead;

  friend bool operator==(const UnfilledField&, const UnfilledField&) = default;
};

// Exactly one of trace and measurements is set.
struct Imported {
  std::optional<Trace> trace;
  std::optional<MeasurementFile> measurements;
  std::vector<UnfilledField> unfilled;
  std::vector<std::string> notes;  // what was left out, and why
};

class TraceImporter {
 public:
  virtual ~TraceImporter() = default;
  // As `dynamiccl trace import --from` spells it: "kineto".
  virtual std::string_view name() const = 0;
  // One line for the help.
  virtual std::string_view sentence() const = 0;
  // Whether a file that begins with `head` (up to 64 KiB, decompressed) looks like this format.
  virtual bool Recognises(std::string_view head) const = 0;
  // Reads plain or gzipped files. Errors name the file and the byte or line.
  virtual Result<Imported> Import(const std::string& path) const = 0;
};

// Every importer, in the order in which they are asked whether they recognise a file.
std::span<const TraceImporter* const> AllImporters();

// With the importer of that name, or with the first that recognises the file when `format` is empty.
Result<Imported> ImportFile(const std::string& path, const std::string& format);

// The rows of AllImporters.
const TraceImporter& KinetoImporter();
const TraceImporter& NcclTestsImporter();
const TraceImporter& ConfigTableImporter();
const TraceImporter& FlightRecorderImporter();
const TraceImporter& PyTorchEtImporter();
const TraceImporter& InspectorImporter();
const TraceImporter& NcclProfilerImporter();
const TraceImporter& AicbImporter();
const TraceImporter& SimAiImporter();
const TraceImporter& ChakraImporter();
const TraceImporter& DeepSpeedCommsImporter();
const TraceImporter& NcclDebugImporter();

}  // namespace dynamiccl
