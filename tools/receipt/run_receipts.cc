// SPDX-License-Identifier: Apache-2.0
#include "tools/receipt/run_receipts.h"

#include <fmt/ranges.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include "src/base/settings.h"
#include "tools/launch/written_files.h"
#include "tools/receipt/receipt_text.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// Limit on the bytes of all files that are read at the end of a run. Reading a log of 64 MiB takes about a
// second.
constexpr uintmax_t kMaxOutputBytes = 64 << 20;
// The most lines about settings. A longer block would push the program's own last lines off the screen.
constexpr size_t kMaxLines = 12;
constexpr const char* kMetricsPlace = "the job's counts";

// Settings that only tools and set-up scripts read, not jobs.
constexpr Setting kNotOfJobs[] = {Setting::kData, Setting::kWithoutTorch, Setting::kJobs, Setting::kHome};

bool IsOfJob(const std::string& name) {
  if (name.starts_with("NCCL_")) return true;
  return name.starts_with("DYNAMICCL_") &&
         std::ranges::none_of(kNotOfJobs, [&](Setting one) { return name == Row(one).name; });
}

// Returns the settings of the job by name: those of the launcher and those that the job inherited.
EnvironmentChanges SettingsOf(const FinishedRun& run) {
  EnvironmentChanges settings = run.environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos) settings.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  std::erase_if(settings, [](const auto& one) { return one.second.empty() || !IsOfJob(one.first); });
  return settings;
}

// Reads the files that a job wrote. ReceiptsOfRun owns it on its stack.
class RunReader {
 public:
  RunReader(const FinishedRun& run, const EnvironmentChanges& settings, RunReceipts& receipts)
      : run_(run), settings_(settings), receipts_(receipts) {}

  Evidence Read() {
    evidence_.knows_nodes = true;
    evidence_.over_hostccl = run_.hostccl;
    for (const auto& [name, value] : settings_)
      evidence_.asked.push_back({name, value, {"the environment", 0, name}});
    for (const std::string& text : run_.metrics) AddMetrics(kMetricsPlace, text, evidence_);
    for (const Setting setting : {Setting::kMetrics, Setting::kTrace, Setting::kDecisionLog})
      AddFirstWritten(setting);
    if (IsLogged()) AddNcclLogs();
    if (const std::string rules = ValueOf(Row(Setting::kRules).name); !rules.empty()) Add(rules);
    return std::move(evidence_);
  }

 private:
  std::string ValueOf(const std::string& name) const {
    const auto found = settings_.find(name);
    return found == settings_.end() ? "" : found->second;
  }

  // True if NCCL writes a log file: it does so at the level INFO and above.
  bool IsLogged() const {
    const std::string level = ValueOf("NCCL_DEBUG");
    return ::strcasecmp(level.c_str(), "INFO") == 0 || ::strcasecmp(level.c_str(), "TRACE") == 0;
  }

  void AddNcclLogs() {
    const std::vector<std::string> logs = FilesWrittenSince(ValueOf("NCCL_DEBUG_FILE"), run_.begun);
    if (!logs.empty())
      evidence_.nccl_log_file = LogLine{logs.front(), 0, fmt::format("files written: {}", logs.size())};
    AddAll(logs);
  }

  // Reads the first of the files that the job's processes wrote for this setting. All ranks decide alike, so
  // the file of one process is enough.
  void AddFirstWritten(Setting setting) {
    const std::string pattern = ValueOf(Row(setting).name);
    if (pattern.empty()) return;
    const std::vector<std::string> paths = FilesWrittenSince(pattern, run_.begun);
    if (paths.empty()) receipts_.unwritten.emplace_back(Row(setting).name);
    if (!paths.empty()) Add(paths.front());
  }

  void AddAll(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) Add(path);
  }

  void Add(const std::string& path) {
    std::error_code failed;
    read_ += fs::file_size(path, failed);
    if (!failed && read_ > kMaxOutputBytes) {
      receipts_.left_out.push_back(
          fmt::format("{} is too large to be read after a run: dynamiccl receipt {}", path, path));
      return;
    }
    if (const Status added = AddEvidence(path, evidence_); !added)
      receipts_.left_out.push_back(added.error().message);
  }

  const FinishedRun& run_;
  const EnvironmentChanges& settings_;
  RunReceipts& receipts_;
  Evidence evidence_;
  uintmax_t read_ = 0;  // bytes of all files
};

size_t CountOf(const RunReceipts& run, Standing standing) {
  return static_cast<size_t>(std::ranges::count(run.receipts, standing, &Receipt::standing));
}

// Adds one line for each setting whose receipt has this standing.
void AddLines(const RunReceipts& run, Standing standing, const char* mark, std::vector<std::string>& lines) {
  for (const Receipt& receipt : run.receipts) {
    if (receipt.standing == standing) lines.push_back(fmt::format("  {}  {}", mark, ReceiptLine(receipt)));
  }
}

// Adds a line for each file that was not written, one line with all other settings that cannot be proved, and
// one that says which files would prove them.
void AddUnproved(const RunReceipts& run, std::vector<std::string>& lines) {
  std::vector<std::string> names;
  bool of_nccl = false;
  for (const Receipt& receipt : run.receipts) {
    if (receipt.standing != Standing::kNotProvable) continue;
    if (std::ranges::count(run.unwritten, receipt.asked.name) > 0) {
      lines.push_back(
          fmt::format("  ?    {}: the job wrote no such file on this machine", SettingText(receipt)));
      continue;
    }
    names.push_back(SettingText(receipt));
    of_nccl |= receipt.asked.name.starts_with("NCCL_");
  }
  if (names.empty()) return;
  lines.push_back(fmt::format("  ?    {}: not provable from what is here", fmt::join(names, ", ")));
  lines.emplace_back(of_nccl
                         ? "       more is proved by NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,"
                           "GRAPH,TUNING,NET,P2P NCCL_DEBUG_FILE=nccl.%h.%p.log"
                         : "       more is proved by --trace job.%r.ctrace");
}

}  // namespace

RunReceipts ReceiptsOfRun(const FinishedRun& run) {
  RunReceipts receipts;
  const EnvironmentChanges settings = SettingsOf(run);
  if (settings.empty()) return receipts;
  // The job has ended, and the caller must get its exit code even if a file of the job cannot be read.
  try {
    receipts.receipts = WriteReceipts(RunReader(run, settings, receipts).Read());
  } catch (const std::exception& error) {
    receipts.left_out.push_back(fmt::format("the job's files: {}", error.what()));
  }
  return receipts;
}

std::vector<std::string> RunReceiptLines(const RunReceipts& run) {
  std::vector<std::string> lines;
  if (run.receipts.empty() && run.left_out.empty()) return lines;
  lines.push_back(fmt::format("settings asked for: {} in effect, {} not, {} not provable",
                              CountOf(run, Standing::kInEffect), CountOf(run, Standing::kNotInEffect),
                              CountOf(run, Standing::kNotProvable)));
  AddLines(run, Standing::kNotInEffect, "NO ", lines);
  AddLines(run, Standing::kInEffect, "yes", lines);
  if (lines.size() > kMaxLines + 1) {
    const size_t more = lines.size() - kMaxLines - 1;
    lines.resize(kMaxLines + 1);
    lines.push_back(fmt::format("  and {} more, which `dynamiccl receipt` shows", more));
  }
  AddUnproved(run, lines);
  for (const std::string& sentence : run.left_out) lines.push_back("  not read: " + sentence);
  return lines;
}

}  // namespace dynamiccl
