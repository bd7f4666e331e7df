// SPDX-License-Identifier: Apache-2.0
// The hash of a record is checked before the record is parsed. A wrong hash on the last line means a torn
// write, on any other line damage. A right hash with wrong content is an error of the writer.
#include "traces/format/sweep_journal.h"

#include <algorithm>
#include <utility>

#include "traces/format/measurement_json.h"

namespace dynamiccl {
namespace {

constexpr const char* kMagic = "dynamiccl-sweep-journal";
constexpr int kVersion = 1;

// Reads record by record; which records are allowed depends on the records before.
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

  // Returns the content so far. An unfinished slice has no total yet, so its visits' seconds are added up.
  SweepJournal Journal() && {
    journal_.seconds += visits_s_;
    return std::move(journal_);
  }

 private:
  // Each slice repeats its topology's context; the last one counts.
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

  // The seconds of the whole slice replace the sum of its visits' seconds.
  void ReadSlice(const Json& json) {
    const auto topology = json.at("topology").get<std::string>();
    journal_.promises[topology] = NumberField(json, "promise");
    journal_.complete[topology] = json.at("complete").get<bool>();
    journal_.seconds += NumberField(json, "seconds");
    visits_s_ = 0;
  }

  SweepJournal journal_;
  double visits_s_ = 0;  // seconds of the visits of an unfinished slice
};

// Parses a line whose hash is right. Its content may still be wrong.
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
  DYNAMICCL_TRY(const HashedLines lines, ReadHashedLines(path));
  Reader reader;
  for (size_t i = 0; i < lines.texts.size(); ++i)
    DYNAMICCL_CHECK_OK(ReadLine(reader, lines.texts[i], i == 0, fmt::format("{}:{}", path, i + 1)));
  SweepJournal journal = std::move(reader).Journal();
  journal.whole_bytes = lines.whole_bytes;
  journal.torn = lines.torn;
  return journal;
}

Result<SweepJournalWriter> SweepJournalWriter::Create(const std::string& path, const std::string& plan) {
  DYNAMICCL_TRY(HashedLineWriter lines, HashedLineWriter::Create(path));
  DYNAMICCL_CHECK_OK(lines.Write(Json{{"magic", kMagic}, {"version", kVersion}, {"plan", plan}}.dump()));
  return SweepJournalWriter(std::move(lines));
}

Result<SweepJournalWriter> SweepJournalWriter::Continue(const std::string& path,
                                                        const SweepJournal& journal) {
  DYNAMICCL_TRY(HashedLineWriter lines, HashedLineWriter::Continue(path, journal.whole_bytes));
  return SweepJournalWriter(std::move(lines));
}

Status SweepJournalWriter::AddContext(const std::string& library, const std::string& machine,
                                      const MeasurementContext& context) {
  Json json = ContextToJson(context);
  json["library"] = library;
  json["machine"] = machine;
  return lines_.Write(json.dump());
}

Status SweepJournalWriter::AddVisit(const Measurement& row, double seconds) {
  Json json = RowToJson(row);
  json["seconds"] = seconds;
  return lines_.Write(json.dump());
}

Status SweepJournalWriter::EndSlice(const std::string& topology, double seconds, double promise,
                                    bool complete) {
  return lines_.Write(Json{
      {"kind", "slice"},
      {"topology", topology},
      {"seconds", seconds},
      {"promise", promise},
      {"complete",
       complete}}.dump());
}

}  // namespace dynamiccl
