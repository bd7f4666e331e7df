// SPDX-License-Identifier: Apache-2.0
// Reads files that a user has at hand (traces, logs, dumps, sweeps) and sorts them into the parts that
// `dynamiccl why` examines.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "traces/format/measurement.h"
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
};

// All files of one question. The traces must be of one job and are merged; sweeps are kept separately.
struct WhyInput {
  std::vector<WhyFile> files;
  std::optional<Trace> trace;
  std::vector<MeasurementFile> measurements;
  // One entry for each profile that shows what its device did.
  std::vector<DeviceTime> devices;
  // Some file is another tool's, so that commands which take traces need it imported first.
  bool imported = false;
  // Filled by ReadWhyFiles alone. For each known fault of the logged release of which a log holds the
  // message, a sentence with the line.
  std::vector<std::string> known_faults = {};
  // Filled by ReadWhyFiles alone. For each setting that a log shows not to be in effect, a sentence with the
  // line that proves it.
  std::vector<std::string> refuted_settings = {};
};

// The backend of torch.distributed whose calls a profile shows where it is not nccl: "gloo". Empty otherwise.
std::string OtherBackend(const WhyInput& input);
// True where the files are profiles that show no call of a collective, so that they show a device's time at
// most. Kernels of NCCL may be in them: then they lack the field "calls".
bool IsProfileAlone(const WhyInput& input);
// True if some file does not contain the field, a name that importers use: "algorithm", "bytes".
bool Lacks(const WhyInput& input, std::string_view field);
// True if the files do not say how many ranks the job has: an importer then takes one rank.
bool HidesRanks(const WhyInput& input);

// Reads all files, and all files of folders: traces of ours in any form, .measurements, and everything that
// an importer recognises. The kind of a file follows from its content. An error names the file. It is also an
// error when the traces are of two jobs. A log without calls is no error: it adds to `files` alone.
Result<WhyInput> ReadJobFiles(const std::vector<std::string>& paths);

// Reads the files as above, and also works out what NCCL's logs show beside calls: known faults, and a
// receipt for each setting. Logs are read a second time for it. A log without calls is an error if nothing
// else says anything of the job.
Result<WhyInput> ReadWhyFiles(const std::vector<std::string>& paths);

}  // namespace dynamiccl
