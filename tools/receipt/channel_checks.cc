// SPDX-License-Identifier: Apache-2.0
// Judges settings that bound the number of channels, by the channels that communicators have and calls used.
#include <fmt/format.h>

#include <algorithm>

#include "tools/receipt/setting_check.h"

namespace dynamiccl {
namespace {

using real_nccl::NcclRelease;

// The most channels that a communicator can have (MAXCHANNELS).
int MostOf(const NcclRelease& release) {
  return release >= NcclRelease{2, 25, 0} ? 64 : 32;
}

const InitialisedChannels& Fewest(const NcclLog& log) {
  return *std::min_element(log.channels.begin(), log.channels.end(), [](const auto& a, const auto& b) {
    return a.channels.collective < b.channels.collective;
  });
}

const InitialisedChannels& Most(const NcclLog& log) {
  return *std::max_element(log.channels.begin(), log.channels.end(), [](const auto& a, const auto& b) {
    return a.channels.collective < b.channels.collective;
  });
}

// Returns the first of the variables `names` whose value, as NCCL read it, wins over the judged setting
// according to `wins`: "NCCL_MIN_CTAS=16". Empty if none wins.
template <typename Wins>
std::string Stronger(const Judged& judged, std::initializer_list<const char*> names, Wins wins) {
  for (const char* const name : names) {
    const std::string value = judged.ReadValueOf(name);
    if (name != judged.asked.name && !value.empty() && wins(NumberAsNcclReads(value)))
      return fmt::format("{}={}", name, value);
  }
  return "";
}

// Returns a refutation if calls of NVLS used more than `most` channels. NVLS has channels of its own, which
// the judged setting does not bound.
std::optional<Receipt> JudgeNvlsCalls(const Judged& judged, int64_t most) {
  for (const ChosenCalls& calls : judged.evidence.Choices()) {
    const bool nvls =
        calls.config.algorithm == Algorithm::kNvls || calls.config.algorithm == Algorithm::kNvlsTree;
    if (nvls && calls.config.channels > most)
      return NotInEffect(judged, fmt::format("NVLS calls have {} channels", calls.config.channels),
                         "it does not bound NVLS; NCCL_NVLS_NCHANNELS does", &calls.line);
  }
  return std::nullopt;
}

Receipt Unread(const Judged& judged, int channels) {
  Receipt receipt = NotProvable(judged, "the channels fit, but nothing shows that NCCL read the variable");
  receipt.effect = fmt::format("{} channels", channels);
  return receipt;
}

// True if the log of a process shows that the variable never reached it. Such a log says more than the number
// of channels.
bool NeverArrived(const Judged& judged) {
  return !judged.was_read() && judged.WholeInit() != nullptr;
}

// Returns the timed calls with the most channels. Calls of NVLS do not count, because the settings do not
// bound them. Null if no other call was timed.
const ChosenCalls* MostUsed(const CountedCalls& counted) {
  const ChosenCalls* most = nullptr;
  for (const ChosenCalls& calls : counted.timed) {
    const bool bounded =
        calls.config.algorithm != Algorithm::kNvls && calls.config.algorithm != Algorithm::kNvlsTree;
    if (bounded && (most == nullptr || calls.config.channels > most->config.channels)) most = &calls;
  }
  return most;
}

// Judges a bound by the channels that timed calls used. Only over hostccl do calls that keep the bound prove
// that it is in effect, because hostccl obeys every bound that it accepts.
std::optional<Receipt> JudgeUsedChannels(const Judged& judged, bool upper) {
  if (!judged.evidence.counted) return std::nullopt;
  const CountedCalls& counted = *judged.evidence.counted;
  const int64_t asked = NumberAsNcclReads(judged.asked.value);
  const ChosenCalls* const most = MostUsed(counted);
  if (most == nullptr || asked < 1) return std::nullopt;
  const std::string used = fmt::format("{} channels at most in a call", most->config.channels);
  if (upper && most->config.channels > asked)
    return NotInEffect(judged, used, "a call used more", &counted.line);
  const bool fits = upper || most->config.channels >= asked;
  if (fits && judged.evidence.over_hostccl) return InEffect(judged, used, counted.line);
  Receipt receipt = NotProvable(judged, fits ? "calls fit, which they might without it"
                                             : "calls may use fewer channels than there are");
  receipt.effect = used;
  receipt.proof = counted.line;
  return receipt;
}

}  // namespace

std::optional<Receipt> CheckMostChannels(const Judged& judged) {
  const int64_t asked = NumberAsNcclReads(judged.asked.value);
  if (judged.log().channels.empty()) return JudgeUsedChannels(judged, true);
  if (asked < 1 || NeverArrived(judged)) return std::nullopt;
  const InitialisedChannels& found = Most(judged.log());
  if (found.channels.collective > asked) {
    const std::string stronger = Stronger(judged, {"NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS", "NCCL_MIN_NRINGS"},
                                          [&](int64_t least) { return least > asked; });
    return NotInEffect(judged, fmt::format("{} channels", found.channels.collective),
                       stronger.empty() ? "the communicator has more" : stronger + " asks for more, and wins",
                       &found.line);
  }
  if (auto receipt = JudgeNvlsCalls(judged, asked)) return receipt;
  if (!judged.was_read()) return Unread(judged, found.channels.collective);
  return InEffect(judged, fmt::format("{} channels", found.channels.collective), found.line);
}

std::optional<Receipt> CheckLeastChannels(const Judged& judged) {
  const int64_t asked = NumberAsNcclReads(judged.asked.value);
  if (judged.log().channels.empty()) return JudgeUsedChannels(judged, false);
  if (asked < 1 || NeverArrived(judged)) return std::nullopt;
  const InitialisedChannels& most = Most(judged.log());
  const InitialisedChannels& fewest = Fewest(judged.log());
  if (most.channels.collective < asked) {
    const std::string stronger = Stronger(judged, {"NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_MAX_NRINGS"},
                                          [&](int64_t limit) { return limit < asked; });
    const auto* const release = judged.release();
    std::string reason = "the communicator has fewer";
    if (!stronger.empty()) reason = stronger + " limits it";
    if (release != nullptr && most.channels.collective == MostOf(*release))
      reason = fmt::format("NCCL {} has at most {} channels", release->text(), MostOf(*release));
    return NotInEffect(judged, fmt::format("{} channels", most.channels.collective), reason, &most.line);
  }
  if (fewest.channels.collective < asked) {
    Receipt receipt = NotProvable(
        judged, "some communicators have as many and some fewer, and the log does not tell them apart");
    receipt.effect = fmt::format("{} to {} channels", fewest.channels.collective, most.channels.collective);
    return receipt;
  }
  if (!judged.was_read()) return Unread(judged, fewest.channels.collective);
  return InEffect(judged, fmt::format("{} channels", fewest.channels.collective), fewest.line);
}

std::optional<Receipt> CheckNvlsChannels(const Judged& judged) {
  const int64_t asked = NumberAsNcclReads(judged.asked.value);
  if (judged.log().channels.empty() || asked < 1 || NeverArrived(judged)) return std::nullopt;
  const auto same = std::find_if(judged.log().channels.begin(), judged.log().channels.end(),
                                 [&](const InitialisedChannels& one) { return one.channels.nvls == asked; });
  if (same != judged.log().channels.end()) {
    if (!judged.was_read()) return Unread(judged, same->channels.nvls);
    return InEffect(judged, fmt::format("{} NVLS channels", asked), same->line);
  }
  const InitialisedChannels& found = judged.log().channels.front();
  return NotInEffect(
      judged, fmt::format("{} NVLS channels", found.channels.nvls),
      found.channels.nvls == 0 ? "the communicator does not use NVLS" : "NCCL made another number",
      &found.line);
}

}  // namespace dynamiccl
