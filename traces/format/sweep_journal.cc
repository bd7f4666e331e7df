// SPDX-License-Identifier: Apache-2.0
// Records are checked by hash before they are parsed: a wrong hash on the last line is a torn write, anywhere
// else it is damage, and a right hash with wrong content is an error of the writer.
#include "traces/format/sweep_journal.h"

#include <fcntl.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "traces/format/measurement_json.h"

namespace dynamiccl {
namespace {

constexpr const char* kMagic = "dynamiccl-sweep-journal";
constexpr int kVersion = 1;
// Hexadecimal digits of a hash.
constexpr size_t kHashLetters = 16;

// XXH3 (64 bits) in hexadecimal.
std::string HashOf(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

// Reads record by record; the records before decide what a record may be.
class Reader {
 public:
  void Read(const Json& json, bool first) {
    if (first) {
      CheckMagic(json, kMagic, kVersion, "sweep journal");
      journal_.plan = json.at("plan").get<std::string>();
      return;
    }
    const auto kind = json.at("kind").get<std::string>();
    if (kind == "context")
      ReadContext(json);
    else if (kind == "row")
      ReadVisit(json);
    else if (kind == "slice")
      ReadSlice(json);
    else
      throw LineError{fmt::format("unknown kind '{}'", kind)};
  }

  // The content so far; visits of a slice that did not end count with their own seconds.
  SweepJournal Journal() && {
    journal_.seconds += visits_s_;
    return std::move(journal_);
  }

 private:
  // Each slice gives its topology's context again; the last one counts.
  void ReadContext(const Json& json) {
    journal_.measured.library = json.at("library").get<std::string>();
    journal_.measured.machine = json.at("machine").get<std::string>();
    MeasurementContext context = ContextFromJson(json);
    std::vector<MeasurementContext>& all = journal_.measured.contexts;
    const auto known = std::find_if(all.begin(), all.end(),
                                    [&](const auto& other) { return other.topology == context.topology; });
    if (known == all.end())
      all.push_back(std::move(context));
    else
      *known = std::move(context);
  }

  // Adds the repeats to the row of their cell. NCCL's own choice is one cell, whatever config it used.
  void ReadVisit(const Json& json) {
    Measurement row = RowFromJson(json);
    visits_s_ += NumberField(json, "seconds");
    std::vector<Measurement>& rows = journal_.measured.rows;
    const auto same = [&](const Measurement& other) {
      return other.topology == row.topology && other.collective == row.collective &&
             other.bytes == row.bytes && other.is_default == row.is_default &&
             (row.is_default || other.config == row.config);
    };
    const auto known = std::find_if(rows.begin(), rows.end(), same);
    if (known == rows.end())
      rows.push_back(std::move(row));
    else
      known->microseconds.insert(known->microseconds.end(), row.microseconds.begin(), row.microseconds.end());
  }

  // The slice's seconds replace those of its visits.
  void ReadSlice(const Json& json) {
    const auto topology = json.at("topology").get<std::string>();
    journal_.promises[topology] = NumberField(json, "promise");
    journal_.complete[topology] = json.at("complete").get<bool>();
    journal_.seconds += NumberField(json, "seconds");
    visits_s_ = 0;
  }

  SweepJournal journal_;
  double visits_s_ = 0;  // seconds of a slice that has not ended
};

// The JSON of a record; empty if the line is damaged.
std::string_view TextOf(std::string_view line) {
  if (line.size() < kHashLetters + 1 || line[kHashLetters] != ' ') return {};
  const std::string_view text = line.substr(kHashLetters + 1);
  return HashOf(text) == line.substr(0, kHashLetters) ? text : std::string_view();
}

// A sweep wrote the lines whose hash is right, but their content may still be wrong.
Status ReadLine(Reader& reader, std::string_view text, bool first, const std::string& place) {
  try {
    reader.Read(Json::parse(text), first);
    return {};
  } catch (const LineError& error) {
    return MakeError(ErrorKind::kCorrupt, "{}: {}", place, error.what);
  } catch (const Json::exception& error) {
    return MakeError(ErrorKind::kCorrupt, "{}: {}", place, error.what());
  }
}

}  // namespace

Result<SweepJournal> ReadSweepJournal(const std::string& path) {
  DYNAMICCL_TRY(const std::string content, ReadWholeFile(path));
  Reader reader;
  size_t offset = 0;
  int line = 0;
  bool torn = false;
  while (offset < content.size()) {
    ++line;
    const std::string place = fmt::format("{}:{}", path, line);
    const size_t newline = content.find('\n', offset);
    const bool last = newline == std::string::npos || newline + 1 == content.size();
    const auto text = newline == std::string::npos
                          ? std::string_view()
                          : TextOf(std::string_view(content).substr(offset, newline - offset));
    torn = text.empty();
    if (torn && last && line > 1) break;
    if (torn) return MakeError(ErrorKind::kCorrupt, "{}: damaged: the hash is not the record's", place);
    DYNAMICCL_CHECK_OK(ReadLine(reader, text, line == 1, place));
    offset = newline + 1;
  }
  if (line == 0) return MakeError(ErrorKind::kCorrupt, "{}: empty", path);
  SweepJournal journal = std::move(reader).Journal();
  journal.whole_bytes = offset;
  journal.torn = torn;
  return journal;
}

Result<SweepJournalWriter> SweepJournalWriter::Create(const std::string& path, const std::string& plan) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return MakeError(ErrorKind::kUnavailable, "cannot write '{}': {}", path, ErrnoText(errno));
  SweepJournalWriter writer(file, path);
  DYNAMICCL_CHECK_OK(writer.Write(Json{{"magic", kMagic}, {"version", kVersion}, {"plan", plan}}.dump()));
  return writer;
}

Result<SweepJournalWriter> SweepJournalWriter::Continue(const std::string& path,
                                                        const SweepJournal& journal) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return MakeError(ErrorKind::kUnavailable, "cannot write '{}': {}", path, ErrnoText(errno));
  SweepJournalWriter writer(file, path);
  if (::ftruncate(file, static_cast<off_t>(journal.whole_bytes)) == 0) return writer;
  return MakeError(ErrorKind::kUnavailable, "cannot cut '{}': {}", path, ErrnoText(errno));
}

SweepJournalWriter::SweepJournalWriter(SweepJournalWriter&& other) noexcept
    : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)) {}

SweepJournalWriter::~SweepJournalWriter() {
  if (file_ >= 0) ::close(file_);
}

Status SweepJournalWriter::AddContext(const std::string& library, const std::string& machine,
                                      const MeasurementContext& context) {
  Json json = ContextToJson(context);
  json["library"] = library;
  json["machine"] = machine;
  return Write(json.dump());
}

Status SweepJournalWriter::AddVisit(const Measurement& row, double seconds) {
  Json json = RowToJson(row);
  json["seconds"] = seconds;
  return Write(json.dump());
}

Status SweepJournalWriter::EndSlice(const std::string& topology, double seconds, double promise,
                                    bool complete) {
  return Write(Json{
      {"kind", "slice"},
      {"topology", topology},
      {"seconds", seconds},
      {"promise", promise},
      {"complete",
       complete}}.dump());
}

Status SweepJournalWriter::Write(const std::string& json) {
  const std::string line = fmt::format("{} {}\n", HashOf(json), json);
  const ssize_t written = ::write(file_, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return {};
  return MakeError(ErrorKind::kUnavailable, "cannot write '{}': {}", path_,
                   written < 0 ? ErrnoText(errno) : "no space left");
}

}  // namespace dynamiccl
