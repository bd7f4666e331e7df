// SPDX-License-Identifier: Apache-2.0
// Reads files that a user has at hand (traces, logs, dumps, sweeps) and sorts them into the parts that
// `dynamiccl why` examines.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "traces/format/measurement.h"
#include "traces/format/record_source.h"
#include "traces/format/trace.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {

// One file and what kind it turned out to be.
struct WhyFile {
  std::string path;
  // "a trace of DynamICCL", or "kineto: PyTorch profiler trace (Chrome JSON, plain or gzipped)".
  std::string kind;
  // Fields that the file does not contain, and notes on what was left out of it.
  std::vector<UnfilledField> unfilled;
  std::vector<std::string> notes;
  // The training frameworks that the file shows.
  std::vector<FrameworkMark> frameworks = {};
};

// Holds what all files about one job contain. Their traces are merged into one; sweeps are kept separately.
struct WhyInput {
  std::vector<WhyFile> files;
  std::optional<Trace> trace;
  std::vector<MeasurementFile> measurements;
  // One entry for each profile that shows what its device did.
  std::vector<DeviceTime> devices;
  // Some file comes from another tool, so the user must import it before other commands can read it as a
  // trace.
  bool imported = false;
  // Filled only by ReadWhyFiles. The calls of `trace` come from logs of NCCL.
  bool calls_are_logged = false;
  // Filled only by ReadWhyFiles. For each known fault of the logged release whose message a log contains, a
  // sentence that names the line.
  std::vector<std::string> known_faults = {};
  // Filled only by ReadWhyFiles. For each setting that a log shows not to be in effect, a sentence with the
  // line that proves it.
  std::vector<std::string> refuted_settings = {};
  // Filled only by ReadWhyFiles. Reads the records of `trace` from its files; the sections of `trace` then
  // have no calls. Null if the records are in memory. Shared, because RecordsOf hands it out.
  std::shared_ptr<const RecordSource> streamed = {};
};

// The records of the input's trace, which it must have. The input must outlive the result.
std::shared_ptr<const RecordSource> RecordsOf(const WhyInput& input);

// Returns the torch.distributed backend of the calls in a profile if it is not nccl, for example "gloo".
// Empty otherwise.
std::string OtherBackend(const WhyInput& input);
// True if the files show that the job's tensors were in host memory (TraceSection::on_host), and no activity
// of a device.
bool RanOnCpus(const WhyInput& input);
// True if the files are profiles without a call of a collective. They then show at most the device's time. If
// they contain kernels of NCCL, they lack the field "calls".
bool IsProfileAlone(const WhyInput& input);
// True if some file does not contain the field. Fields have the names that importers use: "algorithm",
// "bytes".
bool Lacks(const WhyInput& input, std::string_view field);
// True if the files do not say how many ranks the job has. Importers then assume one rank.
bool HidesRanks(const WhyInput& input);
// True if the files show the number of ranks only by the highest rank that they mention: there may be more.
bool MayHaveMoreRanks(const WhyInput& input);

// The named files, and all files of named folders, sorted in each. Pages (.html) in a folder are left out,
// because `dynamiccl why` may have written them.
std::vector<std::string> FilesOf(const std::vector<std::string>& paths);

// Reads all files that FilesOf names: traces of DynamICCL in any form, .measurements, and every file
// that an importer recognises. The kind of a file follows from its content. An error names the file. A file
// of another kind is an error if it is named itself, and left out with a warning if only its folder is
// named. It is also an error when the traces belong to two jobs. A log without calls is no error; it only
// appears in `files`.
Result<WhyInput> ReadJobFiles(const std::vector<std::string>& paths);

// Does the same as ReadJobFiles, and also finds the known faults and the refuted settings in NCCL's logs, for
// which the logs are read a second time. A log without calls is an error if no other file says anything about
// the job.
Result<WhyInput> ReadWhyFiles(const std::vector<std::string>& paths);

}  // namespace dynamiccl
