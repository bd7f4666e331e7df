// SPDX-License-Identifier: Apache-2.0
// Reads the demo's journal of finished runs at the start. Writes it anew from the first run on that is not
// skipped.
#include "tools/demo/demo_journal.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// First word of the journal's header line. It distinguishes a journal from other files of hashed lines.
constexpr const char* kJournalMagic = "dynamiccl-demo-journal";
// Version of the journal's grammar. If a file has another version, the demo ignores it and begins anew.
constexpr int kJournalVersion = 1;

// The header names the demo's plan, so that the journal of a quick demo is not used for a whole one.
std::string HeaderLine(const std::string& plan) {
  return nlohmann::ordered_json{{"magic", kJournalMagic}, {"version", kJournalVersion}, {"plan", plan}}
      .dump();
}

// Returns the keys of the finished runs. There are none if the file belongs to another plan or version, or is
// damaged. A demo that begins anew loses minutes; a demo that trusted a damaged file would show wrong
// results.
std::vector<std::string> KeysIn(const std::string& path, const std::string& plan) {
  const auto lines = ReadHashedLines(path);
  if (!lines || lines->texts.front() != HeaderLine(plan)) return {};
  std::vector<std::string> keys;
  for (size_t i = 1; i < lines->texts.size(); ++i) {
    const auto json = nlohmann::json::parse(lines->texts[i], nullptr, false);
    if (!json.is_object() || !json.contains("finished") || !json["finished"].is_string()) return {};
    keys.push_back(json["finished"]);
  }
  return keys;
}

std::string RecordLine(const std::string& key) {
  return nlohmann::ordered_json{{"finished", key}}.dump();
}

}  // namespace

Result<DemoJournal> DemoJournal::Open(const std::string& path, const std::string& plan) {
  DemoJournal journal(path, plan);
  journal.finished_ = KeysIn(path, plan);
  if (journal.finished_.empty()) DYNAMICCL_CHECK_OK(journal.Begin({}));
  return journal;
}

Status DemoJournal::Begin(const std::vector<std::string>& keys) {
  DYNAMICCL_TRY(lines_, HashedLineWriter::Create(path_));
  DYNAMICCL_CHECK_OK(lines_->Write(HeaderLine(plan_)));
  for (const std::string& key : keys) DYNAMICCL_CHECK_OK(lines_->Write(RecordLine(key)));
  return {};
}

Result<bool> DemoJournal::SkipFinished(const std::string& key, const std::vector<std::string>& outputs) {
  const auto exists = [](const std::string& output) {
    std::error_code failed;
    return fs::exists(output, failed);
  };
  if (next_ < finished_.size() && finished_[next_] == key &&
      std::all_of(outputs.begin(), outputs.end(), exists)) {
    ++next_;
    return true;
  }
  finished_.resize(next_);
  if (!lines_) DYNAMICCL_CHECK_OK(Begin(finished_));
  return false;
}

Status DemoJournal::Finish(const std::string& key) {
  return lines_->Write(RecordLine(key));
}

void DemoJournal::Remove() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

}  // namespace dynamiccl
