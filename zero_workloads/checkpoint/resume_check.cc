// SPDX-License-Identifier: Apache-2.0
// Comparison of two sets of named values, and the checks of --checkpoint options.
#include "zero_workloads/checkpoint/resume_check.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "zero_workloads/checkpoint/checkpoint_settings.h"

namespace dynamiccl::zero {
namespace {

using Values = std::map<std::string, std::string>;

// A different value of one of these settings means another model or another order of the data. The batch and
// the number of micro-steps may change if their product stays the same: the check of data.next_row covers
// that.
constexpr const char* kMustAgree[] = {"layers", "hidden", "heads", "sequence", "seed"};

// Splits the value "settings" into its name=value words.
Values Words(const Values& values) {
  Values words;
  const auto settings = values.find("settings");
  if (settings == values.end()) return words;
  std::istringstream text(settings->second);
  for (std::string word; text >> word;) {
    const size_t equal = word.find('=');
    if (equal != std::string::npos) words[word.substr(0, equal)] = word.substr(equal + 1);
  }
  return words;
}

// True if both sets have the value `name` and the two values differ.
bool Differ(const Values& saved, const Values& own, const std::string& name) {
  const auto before = saved.find(name), now = own.find(name);
  return before != saved.end() && now != own.end() && before->second != now->second;
}

bool IsCount(const std::string& text) {
  int64_t number = -1;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end && number >= 0;
}

bool IsScale(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size() && std::isfinite(number) && number > 0.0;
}

}  // namespace

Status CheckEngineValues(const Values& values) {
  const bool scaled = values.contains("loss_scale.value");
  for (const char* name :
       {"optimizer.steps", "loss_scale.value", "loss_scale.clean_steps", "loss_scale.overflows_left"}) {
    const auto found = values.find(name);
    const bool wanted = scaled && std::string_view(name).starts_with("loss_scale.");
    if (found == values.end() && !wanted) continue;
    const std::string text = found == values.end() ? "" : found->second;
    if (std::string_view(name) == "loss_scale.value" ? IsScale(text) : IsCount(text)) continue;
    return MakeError(ErrorKind::kCorrupt, "value {}=\"{}\" is not a number in its range", name, text);
  }
  return {};
}

void DropFixedLossScale(Values& values) {
  const Values words = Words(values);
  const auto scale = words.find("loss_scale");
  if (scale == words.end() || scale->second == "dynamic") return;
  const auto type = words.find("dtype");
  if (scale->second == "default" && type != words.end() && type->second == "fp16") return;
  std::erase_if(values, [](const auto& value) { return value.first.starts_with("loss_scale."); });
}

Result<std::vector<std::string>> CheckResumable(const Values& saved, const Values& own) {
  const Values before = Words(saved), now = Words(own);
  for (const char* name : kMustAgree) {
    if (!Differ(before, now, name)) continue;
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "the checkpoint was saved with --{} {}, this run has {}", name,
                  before.at(name), now.at(name)),
        fmt::format("give --{} {}, or start without --resume in another --checkpoint-dir", name,
                    before.at(name)));
  }
  if (Differ(saved, own, "text.xxh3")) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "the checkpoint was saved in a run on another text"),
        "give the same --data and --held-out, or export the weights and import them for a new run");
  }
  if (Differ(saved, own, "data.next_row")) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument,
                  "the checkpoint's next sequence is number {}, with this --batch and --micro-steps it is {}",
                  saved.at("data.next_row"), own.at("data.next_row")),
        "the product of --batch and --micro-steps must be what it was");
  }
  std::vector<std::string> changed;
  for (const auto& [name, value] : before) {
    if (Differ(before, now, name)) changed.push_back(name + " " + value + " -> " + now.at(name));
  }
  return changed;
}

std::string CheckpointSettings::Canonical() const {
  return fmt::format(" checkpoints: {} {} {} {} {}", directory, every, keep, async, resume);
}

Status Validate(const CheckpointSettings& settings) {
  const bool latest = settings.resume.empty() || settings.resume == "latest";
  const bool number = std::all_of(settings.resume.begin(), settings.resume.end(),
                                  [](char letter) { return letter >= '0' && letter <= '9'; });
  if (!latest && (!number || settings.resume.size() > 18)) {
    return MakeError(ErrorKind::kInvalidArgument, "--resume {}: latest, or a number of steps",
                     settings.resume);
  }
  if (settings.every < 0) {
    return MakeError(ErrorKind::kInvalidArgument, "--checkpoint-every {}: at least 0", settings.every);
  }
  if (settings.keep < 1) {
    return MakeError(ErrorKind::kInvalidArgument, "--keep-checkpoints {}: at least 1", settings.keep);
  }
  const bool used = settings.every > 0 || settings.async || !settings.resume.empty();
  if (used && settings.directory.empty()) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "checkpoints need a folder"),
                    "give --checkpoint-dir");
  }
  return {};
}

}  // namespace dynamiccl::zero
