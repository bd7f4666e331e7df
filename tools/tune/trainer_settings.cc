// SPDX-License-Identifier: Apache-2.0
// The calls of a trainer with given options are known from its generator (traces/generators), so a receipt
// compares them with the recorded ones.
#include "tools/tune/trainer_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "src/collective/size_class.h"
#include "tools/advise/possible_changes.h"
#include "tools/advise/recognised_job.h"
#include "tools/advise/trainer_options.h"

namespace dynamiccl {
namespace {

constexpr const char* kTrainerPrefix = "zero.";
// The share of the recorded calls that a trainer with the asked options would make too.
constexpr double kAllCalls = 0.999;
// Settings of AdvisedJob that a tune tries. The others change memory, rounding or the user's plan.
constexpr std::string_view kTried[] = {"bucket_bytes", "overlap", "prefetch"};

// Index of the first option of the trainer in the command; nothing if the command does not start it.
std::optional<size_t> FirstOption(const CommandWords& command) {
  for (size_t i = 0; i + 1 < command.size(); ++i) {
    const std::string name = std::filesystem::path(command[i]).filename();
    if (name == "dynamiccl-zero" && command[i + 1] == "train") return i + 2;
    if (name == "dynamiccl" && command[i + 1] == "zero") return i + 2;
  }
  return std::nullopt;
}

// Returns the setting of a change that a tune tries, as a value of a settings file; nothing for other
// changes.
std::optional<std::pair<std::string, Json>> TriedValue(const AdvisedJob& base, const AdvisedJob& changed) {
  if (base.world.shard != changed.world.shard) return std::nullopt;
  for (const auto& [name, text] : changed.settings) {
    if (SettingOf(base, name) == text) continue;
    if (std::ranges::find(kTried, name) == std::end(kTried)) return std::nullopt;
    if (name != "bucket_bytes") return std::pair(kTrainerPrefix + name, Json(text == "true"));
    const int64_t bytes = std::stoll(text);
    return std::pair(kTrainerPrefix + name, bytes >= kBytesOfOneBucket ? Json("all") : Json(bytes));
  }
  return std::nullopt;
}

std::string MemoryRemark(double bytes) {
  if (std::abs(bytes) < 1024) return {};
  return fmt::format("needs {} {} on each rank", FormatBytes(static_cast<uint64_t>(std::abs(bytes))),
                     bytes > 0 ? "more" : "less");
}

SettingReceipt NotInEffect(const std::string& setting, const Json& asked, std::string why) {
  return {setting, asked, SettingStanding::kNotInEffect, std::move(why)};
}

// Says why the trainer ignores a setting in this job; empty if it does not.
std::string WhyIgnored(const std::string& setting, const AdvisedJob& job) {
  if (setting == "zero.bucket_bytes" && SettingOf(job, "unit") != "block")
    return "with --unit parameter there are no buckets";
  if (setting == "zero.prefetch" && StageOf(job) != 3)
    return fmt::format("stage {} gathers no parameters ahead", StageOf(job));
  return {};
}

SettingReceipt Judge(const std::string& setting, const Json& asked, const CommandWords& command,
                     const WatchedRun& run) {
  const auto options = TrainerOptionsIn(command);
  if (!options) return NotInEffect(setting, asked, "the command does not start `dynamiccl-zero train`");
  SettingReceipt receipt{setting, asked, SettingStanding::kNotProvable, run.why_no_step};
  if (!run.step) return receipt;
  const auto job = TrainerJobOf(*options, run.step->ranks);
  const auto share = job ? ShareOfCalls(*job, *run.step) : Result<double>(tl::unexpected(job.error()));
  if (!share) {
    receipt.how = share.error().message;
    return receipt;
  }
  if (const std::string why = WhyIgnored(setting, *job); !why.empty())
    return NotInEffect(setting, asked, why);
  receipt.how = "the trainer has it; it changes no call";
  if (setting == "zero.overlap") return receipt;
  receipt.standing = *share >= kAllCalls ? SettingStanding::kInEffect : SettingStanding::kNotInEffect;
  receipt.how = fmt::format("{:.0f} % of the {} calls of a step are those that the trainer makes with it",
                            std::floor(100 * *share), run.step->operations.size());
  return receipt;
}

}  // namespace

std::optional<CommandWords> TrainerOptionsIn(const CommandWords& command) {
  const auto first = FirstOption(command);
  if (!first) return std::nullopt;
  return CommandWords(command.begin() + static_cast<std::ptrdiff_t>(*first), command.end());
}

CommandWords WithTrainerValues(const CommandWords& command, const FrameworkValues& values) {
  const auto first = FirstOption(command);
  if (!first) return command;
  CommandWords changed(command.begin(), command.begin() + static_cast<std::ptrdiff_t>(*first));
  const CommandWords options = Replaced(*TrainerOptionsIn(command), TrainerOptionsOf(values));
  changed.insert(changed.end(), options.begin(), options.end());
  return changed;
}

std::vector<Candidate> TrainerCandidates(const AdvisedJob& job) {
  std::vector<Candidate> candidates;
  // The nodes matter only for changes of hybrid sharding, which are not tried.
  for (const PossibleChange& change : PossibleChanges(job, 1)) {
    const auto value = TriedValue(job, change.job);
    if (value)
      candidates.push_back(
          {.values = {{value->first, value->second}}, .remark = MemoryRemark(change.memory_bytes)});
  }
  return candidates;
}

std::vector<SettingReceipt> ReceiptsOfWatched(const FrameworkValues& asked, const CommandWords& command,
                                              const WatchedRun& run) {
  FrameworkValues others;
  std::vector<SettingReceipt> of_trainer;
  for (const auto& [setting, value] : asked) {
    if (setting.starts_with(kTrainerPrefix))
      of_trainer.push_back(Judge(setting, value, command, run));
    else
      others[setting] = value;
  }
  std::vector<SettingReceipt> receipts = ReceiptsOf(others, run.reports, run.step ? &*run.step : nullptr);
  std::ranges::move(of_trainer, std::back_inserter(receipts));
  return receipts;
}

}  // namespace dynamiccl
