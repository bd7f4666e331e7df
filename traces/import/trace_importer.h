// SPDX-License-Identifier: Apache-2.0
// Imports files of other tools as traces or measurements: one interface, and one file for each format.
// docs/adding_a_trace_importer.md describes how to add one.
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
#include "traces/import/framework_marks.h"

namespace dynamiccl {

// A field that the file does not contain, for `count` of the calls or rows. `instead` describes the value
// that is used in its place.
struct UnfilledField {
  std::string field;
  uint64_t count = 0;
  std::string instead;

  friend bool operator==(const UnfilledField&, const UnfilledField&) = default;
};

// The text that stands for the size of a group of which the file names only some ranks.
inline constexpr std::string_view kHighestRank = "the highest rank named here, and 1";

// Decompressed bytes by which a file is recognised. A launcher's output comes before a log's own, and takes
// 230 KB for 1,024 ranks (srun -l --cpu-bind=verbose): this is enough for 16,000.
inline constexpr size_t kHeadBytes = 4 << 20;

// Begins the hint of ImportFile's error about a file of no known format. Commands without the option --from
// replace the hint.
inline constexpr std::string_view kNameFormat = "name it with --from, one of: ";

// The activity of one device between its first and its last event, in nanoseconds. Computation includes
// copies and fills. A collective counts as communication even while it waits for other ranks.
struct DeviceTime {
  int64_t computing_ns = 0;
  int64_t hidden_ns = 0;   // part of the communication that ran while the device computed
  int64_t exposed_ns = 0;  // a collective ran and nothing computed
  int64_t idle_ns = 0;

  int64_t total_ns() const { return computing_ns + exposed_ns + idle_ns; }
};

// The result of an import: either a trace or measurements. It has neither if calls were not required and the
// file has none.
struct Imported {
  // The name and sentence of the importer. ImportFile fills it, unless the importer has a nearer name.
  std::string format;
  std::optional<Trace> trace;
  std::optional<MeasurementFile> measurements;
  // Set if the file shows everything that one device did, and no other device.
  std::optional<DeviceTime> device;
  std::vector<UnfilledField> unfilled;
  // The training frameworks that the file shows; empty if it shows none.
  std::vector<FrameworkMark> frameworks;
  std::vector<std::string> notes;  // what was left out, and why
};

// Facts that the user states about a file that does not contain them.
struct ImportOptions {
  // The collective of results whose test is not named in the file. It has precedence over the file's name.
  std::optional<Collective> collective;
  // Number of ranks of each group whose size the file does not state; 0: not stated.
  int32_t group_size = 0;
  // If false, a profile without collectives is no error.
  bool needs_calls = true;
};

// One format. Importers have no state, so any thread may use them.
class TraceImporter {
 public:
  virtual ~TraceImporter() = default;
  // The name as `dynamiccl trace import --from` spells it: "kineto".
  virtual std::string_view name() const = 0;
  // Description of the format in one line, for the help.
  virtual std::string_view sentence() const = 0;
  // True if a file that begins with `head` (up to kHeadBytes, decompressed) looks like this format.
  virtual bool Recognises(std::string_view head) const = 0;
  // Reads a plain or gzipped file. Errors name the file and the byte or line. A field that is missing is no
  // error: it is reported in Imported::unfilled.
  virtual Result<Imported> Import(const std::string& path, const ImportOptions& options) const = 0;
};

// True for a file that needs no import, because readers of traces take it as it is: binary, archived, or JSON
// lines. `head` is its beginning.
bool IsTraceOfOurs(std::string_view head);

// Every importer, in the order in which they are asked whether they recognise a file.
std::span<const TraceImporter* const> AllImporters();

// The error for a file that begins with `head`, which no importer recognises. It names what the file is if
// that is known, and the hint says what to do with it.
Error NotRecognised(const std::string& path, const std::string& head);

// Imports a file with the importer named `format`. If `format` is empty, the first importer that recognises
// the file is used.
Result<Imported> ImportFile(const std::string& path, const std::string& format,
                            const ImportOptions& options = {});

// The importers, each in a file of its own.
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
const TraceImporter& TurnComparisonImporter();

}  // namespace dynamiccl
