// SPDX-License-Identifier: Apache-2.0
// Megatron-LM closes a bucket of gradients as soon as it has at least --ddp-bucket-size elements, and has one
// bucket for all gradients without --overlap-grad-reduce.
#include "tools/tune/megatron_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "src/collective/role.h"

namespace dynamiccl {
namespace {

constexpr std::string_view kPrefix = "megatron.";
constexpr const char* kBucketSize = "megatron.ddp_bucket_size";
constexpr const char* kOverlapReduce = "megatron.overlap_grad_reduce";
constexpr const char* kOverlapGather = "megatron.overlap_param_gather";
// The bucket sizes to try, in elements.
constexpr int64_t kBucketSizes[] = {10000000, 40000000, 200000000};
// Megatron-LM's default bucket size: kDefaultBucket, or kElementsOfRank for each data rank if that is more.
constexpr int64_t kDefaultBucket = 40000000, kElementsOfRank = 1000000;

bool HasFlag(const CommandWords& command, std::string_view flag) {
  return std::ranges::any_of(command, [&](const std::string& word) {
    return word == flag || word.starts_with(std::string(flag) + "=");
  });
}

// Returns the number that follows a flag or its equals sign, or nothing if the flag is absent.
std::optional<int64_t> NumberOf(const CommandWords& command, const std::string& flag) {
  std::optional<int64_t> number;
  for (size_t i = 0; i < command.size(); ++i) {
    std::string text;
    if (command[i] == flag && i + 1 < command.size()) text = command[i + 1];
    if (command[i].starts_with(flag + "=")) text = command[i].substr(flag.size() + 1);
    int64_t value = 0;
    if (!text.empty() && std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc())
      number = value;
  }
  return number;
}

// Removes a flag, and the word that follows it if the flag has a value.
void Remove(const std::string& flag, bool has_value, CommandWords& command) {
  for (size_t i = 0; i < command.size();) {
    const bool apart = command[i] == flag, joined = has_value && command[i].starts_with(flag + "=");
    if (!apart && !joined) {
      ++i;
      continue;
    }
    const size_t words = apart && has_value && i + 1 < command.size() ? 2 : 1;
    command.erase(command.begin() + static_cast<std::ptrdiff_t>(i),
                  command.begin() + static_cast<std::ptrdiff_t>(i + words));
  }
}

CommandWords WithMegatronValues(CommandWords command, const FrameworkValues& values) {
  if (!StartsMegatron(command)) return command;
  if (values.contains(kBucketSize)) {
    Remove("--ddp-bucket-size", true, command);
    // Megatron-LM refuses both flags together.
    Remove("--ddp-num-buckets", true, command);
  }
  if (values.contains(kOverlapReduce)) Remove("--overlap-grad-reduce", false, command);
  if (values.contains(kOverlapGather)) Remove("--overlap-param-gather", false, command);
  for (const std::string& flag : MegatronFlagsOf(values)) command.push_back(flag);
  return command;
}

// The bucket size that is in effect.
int64_t BucketSizeOf(const CommandWords& command, int ranks) {
  if (const auto given = NumberOf(command, "--ddp-bucket-size")) return *given;
  int64_t model_ranks = 1;
  for (const char* const flag : {"--tensor-model-parallel-size", "--pipeline-model-parallel-size"})
    model_ranks *= std::max<int64_t>(1, NumberOf(command, flag).value_or(1));
  return std::max(kDefaultBucket, kElementsOfRank * (ranks / model_ranks));
}

// Returns the elements of each call that sums gradients in a step: its ReduceScatters, or if it has none, its
// AllReduces except scalars.
std::vector<int64_t> GradientCalls(const RecordedStep& step) {
  const auto kind =
      CountOf(step, Collective::kReduceScatter) > 0 ? Collective::kReduceScatter : Collective::kAllReduce;
  std::vector<int64_t> elements;
  for (const WireOperation& operation : step.operations)
    if (operation.collective == kind && operation.Bytes() > kTinyBytes)
      elements.push_back(operation.elements);
  return elements;
}

// Judges by the sums of gradients whether there are buckets of at least `size` elements.
SettingReceipt JudgeBuckets(SettingReceipt receipt, const CommandWords& command, int64_t size,
                            const RecordedStep& step) {
  if (!HasFlag(command, "--overlap-grad-reduce")) {
    receipt.standing = SettingStanding::kNotInEffect;
    receipt.how = "without --overlap-grad-reduce Megatron-LM has one bucket for all gradients";
    return receipt;
  }
  const std::vector<int64_t> calls = GradientCalls(step);
  const auto whole = static_cast<size_t>(std::ranges::count_if(calls, [&](int64_t n) { return n >= size; }));
  receipt.how =
      fmt::format("{} of {} sums of gradients in a step have {} elements or more", whole, calls.size(), size);
  // A step with buckets of this size has several sums, of which only the last may be smaller.
  if (whole > 0 && calls.size() > 1 && calls.size() - whole <= 1)
    receipt.standing = SettingStanding::kInEffect;
  return receipt;
}

SettingReceipt Judge(const std::string& setting, const Json& asked, const CommandWords& command,
                     const WatchedRun& run) {
  SettingReceipt receipt{setting, asked, SettingStanding::kNotProvable, run.why_no_step};
  if (!StartsMegatron(command)) {
    receipt.standing = SettingStanding::kNotInEffect;
    receipt.how = "the command does not start a script of Megatron-LM";
  } else if (run.step && setting == kBucketSize) {
    receipt = JudgeBuckets(receipt, command, asked.get<int64_t>(), *run.step);
  } else if (run.step && setting == kOverlapReduce && asked.get<bool>()) {
    receipt = JudgeBuckets(receipt, command, BucketSizeOf(command, run.step->ranks), *run.step);
  } else if (run.step) {
    receipt.how = "Megatron-LM has the flag; it changes when calls are issued, not which";
  }
  return receipt;
}

}  // namespace

bool StartsMegatron(const CommandWords& command) {
  const bool script = std::ranges::any_of(command, [](const std::string& word) {
    const std::string name = std::filesystem::path(word).filename();
    return name.starts_with("pretrain_") && name.ends_with(".py");
  });
  return script || (HasFlag(command, "--micro-batch-size") && HasFlag(command, "--num-layers"));
}

CommandWords WithValues(const CommandWords& command, const FrameworkValues& values) {
  return WithMegatronValues(WithTrainerValues(command, values), values);
}

void AddMegatronCandidates(const CommandWords& command, int ranks, CandidateList& list) {
  if (HasFlag(command, "--use-megatron-fsdp") || HasFlag(command, "--yaml-cfg")) {
    list.left_out.emplace_back(
        "Megatron-LM's own settings are not tried: with --use-megatron-fsdp its buckets are others, and with "
        "--yaml-cfg it reads no flags");
    return;
  }
  const bool reduces = HasFlag(command, "--overlap-grad-reduce");
  const bool gathers = HasFlag(command, "--use-distributed-optimizer");
  if (!reduces) list.framework.push_back({.values = {{kOverlapReduce, true}}});
  if (gathers && !HasFlag(command, "--overlap-param-gather")) {
    Candidate candidate{.values = {{kOverlapGather, true}}};
    // Megatron-LM refuses the one without the other.
    if (!reduces) candidate.values[kOverlapReduce] = true;
    list.framework.push_back(std::move(candidate));
  }
  for (const int64_t size : kBucketSizes)
    if (reduces && size != BucketSizeOf(command, ranks))
      list.framework.push_back({.values = {{kBucketSize, size}}});
}

std::vector<SettingReceipt> ReceiptsOfCommand(const FrameworkValues& asked, const CommandWords& command,
                                              const WatchedRun& run) {
  FrameworkValues others;
  std::vector<SettingReceipt> of_megatron;
  for (const auto& [setting, value] : asked) {
    if (setting.starts_with(kPrefix))
      of_megatron.push_back(Judge(setting, value, command, run));
    else
      others[setting] = value;
  }
  std::vector<SettingReceipt> receipts = ReceiptsOfWatched(others, command, run);
  std::ranges::move(of_megatron, std::back_inserter(receipts));
  return receipts;
}

}  // namespace dynamiccl
