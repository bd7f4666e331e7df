// SPDX-License-Identifier: Apache-2.0
// The list of importers, and the choice of one by name or by a file's first bytes.
#include "traces/import/trace_importer.h"

#include <algorithm>
#include <set>

#include "src/base/counted.h"
#include "traces/format/record_views.h"
#include "traces/format/trace_archive.h"
#include "traces/format/trace_header.h"
#include "traces/import/gzip_stream.h"

namespace dynamiccl {
namespace {

// The names of all formats, for messages.
std::string KnownFormats() {
  std::string names;
  for (const TraceImporter* importer : AllImporters()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", importer->name());
  }
  return names;
}

bool Holds(std::string_view head, std::string_view text) {
  return head.find(text) != head.npos;
}

// A dump of the Flight Recorder as PyTorch's watchdog writes it. The keys of its dictionary stand in it as
// text.
bool IsPickledDump(std::string_view head) {
  return head.starts_with('\x80') && Holds(head, "pg_config") && Holds(head, "entries");
}

// Counts the calls that took longer than a record can say. Their times are cut.
uint64_t CountCutTimes(const Trace& trace) {
  uint64_t cut = 0;
  for (const TraceSection& section : trace.sections)
    for (const TraceRecord& record : section.records)
      cut += record.duration_source != 0 && record.duration_ns == SaturatedDuration(INT64_MAX) ? 1 : 0;
  return cut;
}

// Refuses a size that the user stated for groups if the file names a higher rank of such a group. `section`
// has communicators before their calls.
Status CheckStatedSize(const std::string& path, const TraceSection& section, int32_t group_size) {
  std::set<uint32_t> stated;  // communicators that may have the stated size
  int32_t highest = -1;
  for (const TraceRecord& record : section.records) {
    const bool born = record.kind == static_cast<uint16_t>(RecordKind::kCommunicator);
    if (born && CommunicatorOf(record).n_ranks == group_size) stated.insert(record.communicator);
    const bool call = record.kind == static_cast<uint16_t>(RecordKind::kCollective) ||
                      record.kind == static_cast<uint16_t>(RecordKind::kPointToPoint);
    if ((born || call) && stated.contains(record.communicator))
      highest = std::max<int32_t>(highest, record.root_or_peer);
  }
  if (highest < group_size) return {};
  return WithHint(MakeError(ErrorKind::kInvalidArgument,
                            "{}: the file names rank {} of a group, so a group size of {} is too small", path,
                            highest, group_size),
                  fmt::format("give --group-size {} or more", highest + 1));
}

Result<Imported> ImportWith(const TraceImporter& importer, const std::string& path,
                            const ImportOptions& options) {
  Result<Imported> imported = importer.Import(path, options);
  if (imported && imported->format.empty())
    imported->format = fmt::format("{}: {}", importer.name(), importer.sentence());
  if (imported && imported->trace && options.group_size > 0)
    for (const TraceSection& section : imported->trace->sections)
      DYNAMICCL_CHECK_OK(CheckStatedSize(path, section, options.group_size));
  const uint64_t cut = imported && imported->trace ? CountCutTimes(*imported->trace) : 0;
  if (cut > 0)
    imported->notes.push_back(
        fmt::format("{} took 4.29 s or more: the trace has 4.29 s", Counted(cut, "call")));
  return imported;
}

}  // namespace

bool IsTraceOfOurs(std::string_view head) {
  return head.starts_with(std::string_view(kTraceMagic, sizeof(kTraceMagic))) ||
         IsTraceArchive(std::as_bytes(std::span(head))) || head.starts_with(R"({"magic":"dynamiccl-trace")");
}

std::span<const TraceImporter* const> AllImporters() {
  static const TraceImporter* const importers[] = {
      &KinetoImporter(),        &NcclTestsImporter(), &ConfigTableImporter(),    &FlightRecorderImporter(),
      &PyTorchEtImporter(),     &InspectorImporter(), &NcclProfilerImporter(),   &AicbImporter(),
      &SimAiImporter(),         &ChakraImporter(),    &DeepSpeedCommsImporter(), &NcclDebugImporter(),
      &TurnComparisonImporter()};
  return importers;
}

Error NotRecognised(const std::string& path, const std::string& head) {
  if (head.empty()) {
    return {ErrorKind::kInvalidArgument, path + ": the file is empty",
            "a process that was killed early, or still runs, may have written nothing yet"};
  }
  if (IsPickledDump(head)) {
    return {
        ErrorKind::kInvalidArgument, path + ": a pickled dump of PyTorch's Flight Recorder",
        fmt::format("make JSON of it first, with the script in traces/import of the sources or in "
                    "share/dynamiccl/traces/import of an installation: python3 flight_recorder_to_json.py "
                    "{0} > {0}.json",
                    path)};
  }
  if (Holds(head, "Watchdog caught collective operation timeout")) {
    return {
        ErrorKind::kInvalidArgument,
        path + ": a log of PyTorch in which a collective timed out, without NCCL's lines",
        "`dynamiccl hang` names the late rank from the Flight Recorder's dumps, or from traces of the ranks "
        "(docs/hang.md)"};
  }
  if (IsTraceOfOurs(head)) {
    return {ErrorKind::kInvalidArgument, path + ": not of another tool: a trace of ours",
            "every command reads it as it is; `dynamiccl trace merge " + path +
                " -o FILE` writes it as a .ctrace"};
  }
  return {ErrorKind::kInvalidArgument, path + ": no known format", std::string(kNameFormat) + KnownFormats()};
}

Result<Imported> ImportFile(const std::string& path, const std::string& format,
                            const ImportOptions& options) {
  std::string head;
  if (format.empty()) {
    DYNAMICCL_TRY(GzipStream stream, GzipStream::Open(path));
    head = stream.Head(kHeadBytes);
  }
  for (const TraceImporter* importer : AllImporters()) {
    if (format.empty() ? !importer->Recognises(head) : importer->name() != format) continue;
    Result<Imported> imported = ImportWith(*importer, path, options);
    if (!imported && imported.error().hint.empty())
      return WithHint(
          tl::unexpected(imported.error()),
          fmt::format("it was read as the format {}; if it was cut, copy it again or record fewer steps",
                      importer->name()));
    return imported;
  }
  if (!format.empty()) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "no importer for '{}'", format),
                    "one of: " + KnownFormats());
  }
  return tl::unexpected<Error>(NotRecognised(path, head));
}

}  // namespace dynamiccl
