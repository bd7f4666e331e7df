// SPDX-License-Identifier: Apache-2.0
// Judges a variable by the lines that NCCL logged about it: that the variable does not exist, that its value
// is wrong, that NCCL read another value, or that NCCL read it.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "tools/receipt/nccl_variables.h"
#include "tools/receipt/setting_check.h"

namespace dynamiccl {
namespace {

// Words by which NCCL rejects or limits a value. They stand in the same line as the variable's name.
constexpr std::string_view kComplaints[] = {
    "Invalid ",     "has invalid",   "is too low",   "is too big",        "is greater than",
    "is less than", "being ignored", "is not valid", "is not a power of", "Unable to recognize"};

// Variables whose values must be equal on all ranks. NCCL does not check this.
constexpr std::string_view kSameOnAllRanks[] = {"NCCL_ALGO",           "NCCL_PROTO",
                                                "NCCL_MIN_NCHANNELS",  "NCCL_MAX_NCHANNELS",
                                                "NCCL_MIN_CTAS",       "NCCL_MAX_CTAS",
                                                "NCCL_NTHREADS",       "NCCL_LL128_NTHREADS",
                                                "NCCL_BUFFSIZE",       "NCCL_LL_BUFFSIZE",
                                                "NCCL_LL128_BUFFSIZE", "NCCL_NVLS_ENABLE",
                                                "NCCL_COLLNET_ENABLE", "NCCL_THREAD_THRESHOLDS"};

// True if the text contains the name, and not only as the beginning of a longer name.
bool Mentions(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == std::string_view::npos) return false;
  const size_t end = at + name.size();
  return end == text.size() || (std::isalnum(static_cast<unsigned char>(text[end])) == 0 && text[end] != '_');
}

// A complaint of NCCL that does not contain the variable's name. It contains the name of the member of
// ncclConfig_t that the variable sets (`member`), or the text `words`.
struct UnnamedComplaint {
  std::string_view variable;
  std::string_view member;
  std::string_view words;
};
constexpr UnnamedComplaint kUnnamedComplaints[] = {{"NCCL_MIN_CTAS", "minCTAs", ""},
                                                   {"NCCL_MAX_CTAS", "maxCTAs", ""},
                                                   {"NCCL_NVLS_NCHANNELS", "nvlsCTAs", ""},
                                                   {"NCCL_COLLNET_ENABLE", "collnetEnable", ""},
                                                   {"NCCL_CTA_POLICY", "CTAPolicy", "Unknown CTA policy"},
                                                   {"NCCL_SHM_LOCALITY", "", "Ignoring SHM locality"}};

// Returns NCCL's complaint about the value, such as "CTAPolicy 7 is not a valid value" or "Env var for
// nvlsCTAs=128 is ignored". Null without one.
const LogLine* UnnamedComplaintAbout(const NcclLog& log, const AskedSetting& asked) {
  for (const UnnamedComplaint& one : kUnnamedComplaints) {
    if (one.variable != asked.name) continue;
    const LogLine* line = one.words.empty() ? nullptr : log.Find(one.words);
    if (line == nullptr && !one.member.empty())
      line = log.Find(fmt::format("{} {} is not a valid value", one.member, asked.value));
    if (line == nullptr && !one.member.empty())
      line = log.Find(fmt::format("Env var for {}={} is ignored", one.member, asked.value));
    return line;
  }
  return nullptr;
}

const LogLine* ComplaintAbout(const NcclLog& log, const AskedSetting& asked) {
  const std::string& name = asked.name;
  for (const LogLine& line : log.notes) {
    if (!Mentions(line.text, name)) continue;
    for (const std::string_view words : kComplaints) {
      if (line.text.find(words) != std::string::npos) return &line;
    }
  }
  return UnnamedComplaintAbout(log, asked);
}

bool IsSameValue(const std::string& asked, const std::string& read) {
  if (asked == read) return true;
  return IsWholeNumber(asked) && IsWholeNumber(read) && NumberAsNcclReads(asked) == NumberAsNcclReads(read);
}

// A variable that only releases before those of the table had, and what does its work since then. Scripts
// still set such variables.
struct FormerVariable {
  std::string_view name;
  std::string_view since_then;
};
constexpr FormerVariable kFormerVariables[] = {
    {"NCCL_TREE_THRESHOLD", "NCCL_ALGO leaves out algorithms"},
    {"NCCL_LL_THRESHOLD", "NCCL_PROTO leaves out protocols"},
    {"NCCL_IB_CUDA_SUPPORT", "NCCL_NET_GDR_LEVEL says where GPUDirect RDMA is used"}};

// Returns a refutation if only releases before those of the table had the variable.
std::optional<Receipt> JudgeFormer(const Judged& judged) {
  for (const FormerVariable& former : kFormerVariables) {
    if (former.name == judged.asked.name)
      return NotInEffect(
          judged, "", fmt::format("NCCL {} does not have it any more: {}", ReachOfTable(), former.since_then),
          judged.asked.from.file.empty() ? nullptr : &judged.asked.from);
  }
  return std::nullopt;
}

// True if the text has the value in quotes after `before`.
bool HasInQuotes(const std::string& text, const char* before, const std::string& value) {
  return text.find(fmt::format("{0}\"{1}\"", before, value)) != std::string::npos ||
         text.find(fmt::format("{0}'{1}'", before, value)) != std::string::npos;
}

// Says why NCCL read another value than the one that was asked for. `docker run --env-file` and similar tools
// pass on the quotes around a value in a file. A shell would remove these quotes.
const char* ReasonOfOther(const AskedSetting& asked, const std::string& read) {
  if (HasInQuotes(read, "", asked.value))
    return "the quotes are a part of the value: leave them out where no shell takes them away";
  if (read == "0" && HasInQuotes(asked.from.text, "=", asked.value))
    return "NCCL reads a number in quotes as 0: leave them out where no shell takes them away";
  const bool suffix = !IsWholeNumber(asked.value) && IsWholeNumber(read) &&
                      NumberAsNcclReads(asked.value) == NumberAsNcclReads(read);
  return suffix ? "NCCL reads a plain number: it stops at the first other letter"
                : "another value reached the process";
}

// Returns a refutation if the release has no variable of this name. For a mistyped name such as
// NCCL_MAX_CHANNELS it suggests the right one, NCCL_MAX_NCHANNELS.
std::optional<Receipt> JudgeName(const Judged& judged) {
  const std::string& name = judged.asked.name;
  const auto variable = FindNcclVariable(name);
  const auto* const release = judged.release();
  if (judged.was_read() || (release != nullptr && !TableReaches(*release))) return std::nullopt;
  if (!variable) {
    if (auto receipt = JudgeFormer(judged)) return receipt;
    const std::string nearest = NearestNcclVariable(name);
    if (!nearest.empty())
      return NotInEffect(
          judged, "", fmt::format("NCCL {} has no such variable; did you mean {}?", ReachOfTable(), nearest),
          judged.asked.from.file.empty() ? nullptr : &judged.asked.from);
    return NotProvable(
        judged,
        fmt::format(
            "NCCL {} has no such variable, and none of a like name: a plugin or the program may read it",
            ReachOfTable()),
        "the manual of the plugin or program that reads it");
  }
  if (release == nullptr || variable->In(*release)) return std::nullopt;
  const bool newer = variable->since && *release < *variable->since;
  return NotInEffect(judged, "",
                     newer ? fmt::format("NCCL {} does not have it: it came with {}", release->text(),
                                         variable->since->text())
                           : fmt::format("NCCL {} does not have it any more: {} was the last",
                                         release->text(), variable->until->text()),
                     &judged.evidence.release()->line);
}

// Judges a variable of which processes read different values.
std::optional<Receipt> JudgeDisagreement(const Judged& judged, const ReadVariable& other) {
  const bool must_agree = std::find(std::begin(kSameOnAllRanks), std::end(kSameOnAllRanks),
                                    judged.asked.name) != std::end(kSameOnAllRanks);
  if (!must_agree) return std::nullopt;
  return NotInEffect(judged, fmt::format("process {} read {}", other.process, other.value),
                     "processes read different values, and all ranks need the same", &other.line);
}

}  // namespace

std::optional<Receipt> JudgeRefusal(const Judged& judged, bool read_as_asked) {
  if (auto receipt = JudgeName(judged)) return receipt;
  const std::string& asked = judged.asked.value;
  if (const LogLine* const complaint = ComplaintAbout(judged.log(), judged.asked))
    return NotInEffect(judged, "", "NCCL refuses or limits the value", complaint);
  if (!read_as_asked) return std::nullopt;
  const auto is_other = [&](const ReadVariable* read) { return !IsSameValue(asked, read->value); };
  const auto other = std::find_if(judged.reads.begin(), judged.reads.end(), is_other);
  if (other == judged.reads.end()) return std::nullopt;
  if (!std::all_of(judged.reads.begin(), judged.reads.end(), is_other))
    return JudgeDisagreement(judged, **other);
  return NotInEffect(judged, fmt::format("NCCL read {}", (*other)->value),
                     ReasonOfOther(judged.asked, (*other)->value), &(*other)->line);
}

Receipt JudgeReading(const Judged& judged) {
  const auto* const release = judged.release();
  if (judged.was_read()) {
    Receipt receipt = NotProvable(judged, "NCCL read it, and no line here shows what came of it",
                                  judged.evidence.log.choices.empty() ? kBringLog : "");
    receipt.proof = judged.reads.front()->line;
    return receipt;
  }
  const LogLine* const whole = judged.WholeInit();
  if (release != nullptr && whole != nullptr && !judged.asked.value.empty() &&
      IsReadAtInit(judged.asked.name, *release))
    return NotInEffect(judged, "",
                       "NCCL made a communicator without reading it: the process does not have the variable; "
                       "does the launcher pass it on?",
                       whole);
  if (judged.log().empty()) return NotProvable(judged, "none of the files is a log of NCCL");
  const bool shows = std::any_of(judged.log().processes.begin(), judged.log().processes.end(),
                                 [](const auto& one) { return one.second.shows_environment; });
  return NotProvable(
      judged, shows
                  ? "NCCL did not log that it read it, which it does for some variables only when they matter"
                  : "the log does not show which variables NCCL read");
}

}  // namespace dynamiccl
