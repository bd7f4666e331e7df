// SPDX-License-Identifier: Apache-2.0
#include "traces/import/trace_importer.h"

#include <algorithm>

#include "traces/import/gzip_stream.h"

namespace dynamiccl {
namespace {

constexpr size_t kHeadBytes = 64 * 1024;

std::string KnownFormats() {
  std::string names;
  for (const TraceImporter* importer : AllImporters()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", importer->name());
  }
  return names;
}

}  // namespace

std::span<const TraceImporter* const> AllImporters() {
  static const TraceImporter* const importers[] = {
      &KinetoImporter(),    &NcclTestsImporter(), &ConfigTableImporter(),    &FlightRecorderImporter(),
      &PyTorchEtImporter(), &InspectorImporter(), &NcclProfilerImporter(),   &AicbImporter(),
      &SimAiImporter(),     &ChakraImporter(),    &DeepSpeedCommsImporter(), &NcclDebugImporter()};
  return importers;
}

Result<Imported> ImportFile(const std::string& path, const std::string& format) {
  std::string head;
  if (format.empty()) {
    DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
    head = stream.Head(kHeadBytes);
  }
  for (const TraceImporter* importer : AllImporters()) {
    if (format.empty() ? importer->Recognises(head) : importer->name() == format)
      return importer->Import(path);
  }
  if (!format.empty()) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "no importer for '{}'", format),
                    "one of: " + KnownFormats());
  }
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: no known format", path),
                  "name it with --from, one of: " + KnownFormats());
}

}  // namespace dynamiccl
