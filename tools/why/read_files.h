// SPDX-License-Identifier: Apache-2.0
// What people have lying about (traces, logs, dumps, sweeps) as the parts that `dynamiccl why` looks at.
#pragma once

#include <optional>
#include <string>
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
  // What the file does not tell, and what was left out of it.
  std::vector<UnfilledField> unfilled;
  std::vector<std::string> notes;
};

// All files of one question. The traces are those of one job and are merged; sweeps stay apart.
struct WhyInput {
  std::vector<WhyFile> files;
  std::optional<Trace> trace;
  std::vector<MeasurementFile> measurements;
  // By file that shows it.
  std::vector<DeviceTime> devices;
  // Some file is another tool's, so that commands which take traces need it imported first.
  bool imported = false;
};

// Reads all files: traces of ours in any form, .measurements, and everything that an importer recognises.
// Each kind is told by content. An error names the file; a trace of a second job beside the first is one too.
Result<WhyInput> ReadWhyFiles(const std::vector<std::string>& paths);

}  // namespace dynamiccl
