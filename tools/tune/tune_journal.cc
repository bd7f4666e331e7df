// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/tune_journal.h"

#include <filesystem>

#include "src/base/sha256.h"

namespace dynamiccl {

namespace {

constexpr const char* kJournalMagic = "dynamiccl-tune-journal";
constexpr int kJournalVersion = 2;

// Bytes that are not UTF-8, such as those of a file's name, become replacement characters.
std::string LineOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Returns the plan as a line of the journal can hold it. If the plan has bytes that are not UTF-8, a checksum
// distinguishes it from plans in which these bytes differ.
std::string Storable(const std::string& plan) {
  const auto text = Json::parse(LineOf(Json(plan))).get<std::string>();
  return text == plan ? plan : fmt::format("{} (sha256 {})", text, HexDigestOf(plan));
}

// Names the part in which two plans (tune_plan.h) differ, because digests tell a user nothing.
std::string DifferenceOf(const std::string& one, const std::string& other) {
  const auto until = [](const std::string& plan, const char* mark) {
    return plan.substr(0, plan.rfind(mark));
  };
  if (until(one, "files ") != until(other, "files ")) return "the options or the command";
  return until(one, ", environment ") != until(other, ", environment ") ? "the script or another file"
                                                                        : "variables such as NCCL_ALGO";
}

}  // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(JobStart, turn, candidate, step_ms, failure, seen, buckets,
                                                seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Forecast, setting, ratio, not_tried)

namespace {

std::string HeaderLine(const std::string& plan, const SearchShape& shape) {
  const Json header = {{"magic", kJournalMagic},
                       {"version", kJournalVersion},
                       {"plan", plan},
                       {"most", shape.most},
                       {"level_rounds", shape.level_rounds},
                       {"forecasts", Json(nlohmann::json(shape.forecasts))}};
  return LineOf(header);
}

// Returns the shape of the search from the first line of a journal; nothing for another version of it.
std::optional<SearchShape> ShapeIn(const std::string& line, const std::string& plan) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  SearchShape shape{json.value("most", size_t{0}), json.value("level_rounds", 0)};
  try {
    shape.forecasts = json.value("forecasts", std::vector<Forecast>());
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  if (shape.level_rounds < 1 || line != HeaderLine(plan, shape)) return std::nullopt;
  return shape;
}

// Returns the results of the job's starts, which follow the first line of the journal. Returns none if one of
// them is damaged: to start the job again costs minutes, but a wrong time would mislead the search.
std::vector<JobStart> StartsIn(const std::vector<std::string>& lines) {
  std::vector<JobStart> starts;
  for (size_t i = 1; i < lines.size(); ++i) {
    const auto json = nlohmann::json::parse(lines[i], nullptr, false);
    if (!json.is_object()) return {};
    try {
      starts.push_back(json.get<JobStart>());
    } catch (const nlohmann::json::exception&) {
      return {};
    }
  }
  return starts;
}

// Returns an error for the journal of an unfinished tune of another job, which this tune would replace.
Status CheckIsOfPlan(const std::string& path, const std::string& header, const std::string& plan) {
  auto json = nlohmann::json::parse(header, nullptr, false);
  if (!json.is_object() || json["magic"] != kJournalMagic || json["version"] != kJournalVersion) return {};
  if (!json["plan"].is_string() || json["plan"].get<std::string>() == plan) return {};
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "{} is of another unfinished tune: {}", path,
                            json["plan"].get<std::string>()),
                  fmt::format("{} changed since then: undo that to go on, give another folder with -o, or "
                              "remove the file to give the unfinished tune up",
                              DifferenceOf(json["plan"].get<std::string>(), plan)));
}

}  // namespace

Result<TuneJournal> TuneJournal::Open(const std::string& path, const std::string& given_plan) {
  const std::string plan = Storable(given_plan);
  TuneJournal journal(path, plan);
  const auto lines = ReadHashedLines(path);
  if (!lines) return journal;
  DYNAMICCL_CHECK_OK(CheckIsOfPlan(path, lines->texts.front(), plan));
  const auto shape = ShapeIn(lines->texts.front(), plan);
  if (!shape) return journal;
  journal.shape_ = *shape;
  journal.found_ = StartsIn(lines->texts);
  return journal;
}

std::optional<SearchShape> TuneJournal::FoundShape() const {
  return found_.empty() ? std::nullopt : std::optional(shape_);
}

std::optional<JobStart> TuneJournal::Next(int turn, const std::string& candidate) {
  if (next_ < found_.size() && found_[next_].turn == turn && found_[next_].candidate == candidate)
    return found_[next_++];
  found_.resize(next_);
  return std::nullopt;
}

Status TuneJournal::Add(const JobStart& start) {
  if (!lines_) DYNAMICCL_CHECK_OK(Begin());
  return lines_->Write(LineOf(Json(nlohmann::json(start))));
}

// Writes the records of earlier processes to a second file and then replaces the journal with it, so that a
// tune that is killed meanwhile loses nothing.
Status TuneJournal::Begin() {
  const std::string beside = path_ + ".new";
  DYNAMICCL_TRY(HashedLineWriter made, HashedLineWriter::Create(beside));
  DYNAMICCL_CHECK_OK(made.Write(HeaderLine(plan_, shape_)));
  for (const JobStart& earlier : found_)
    DYNAMICCL_CHECK_OK(made.Write(LineOf(Json(nlohmann::json(earlier)))));
  std::error_code failed;
  std::filesystem::rename(beside, path_, failed);
  if (failed) return MakeError(ErrorKind::kUnavailable, "cannot write '{}': {}", path_, failed.message());
  lines_.emplace(std::move(made));
  return {};
}

void TuneJournal::Remove() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace dynamiccl
