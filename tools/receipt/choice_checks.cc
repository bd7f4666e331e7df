// SPDX-License-Identifier: Apache-2.0
// Judges NCCL_ALGO and NCCL_PROTO by what NCCL chose, and the settings that send calls to symmetric kernels
// or to the copy engine by whether such calls ran.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <map>

#include "src/collective/algorithm.h"
#include "src/collective/protocol.h"
#include "tools/receipt/setting_check.h"
#include "traces/import/nccl_kernel_name.h"
#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

using real_nccl::NcclRelease;

// First release in which a value of NCCL_ALGO or NCCL_PROTO may name collectives. From it on, an unknown word
// in the value makes the initialisation fail, and the log names the collective of each choice.
constexpr NcclRelease kNamesCollectives{2, 24, 0};

// The functions in which the checks of NCCL_ALGO and of NCCL_PROTO differ.
struct ChoiceVariable {
  std::optional<int> (*parse)(std::string_view word);
  int (*of)(const CollectiveConfig& config);
  std::string_view (*name)(int element);
  const char* what;
};

template <typename T, std::optional<T> (*Parse)(std::string_view)>
std::optional<int> NumberOf(std::string_view word) {
  const auto parsed = Parse(word);
  if (!parsed) return std::nullopt;
  return static_cast<int>(*parsed);
}

const ChoiceVariable kAlgorithm = {
    NumberOf<Algorithm, ParseAlgorithm>,
    [](const CollectiveConfig& config) { return static_cast<int>(config.algorithm); },
    [](int element) { return Name(static_cast<Algorithm>(element)); }, "algorithm"};
const ChoiceVariable kProtocol = {
    NumberOf<Protocol, ParseProtocol>,
    [](const CollectiveConfig& config) { return static_cast<int>(config.protocol); },
    [](int element) { return Name(static_cast<Protocol>(element)); }, "protocol"};

// The algorithms or protocols that a value allows. Bit i stands for the enumerator with value i.
struct Selection {
  std::optional<uint32_t> all;  // of collectives that are not named
  std::map<Collective, uint32_t> named;
  std::string unknown;  // the first word that means nothing

  std::optional<uint32_t> Of(const std::optional<Collective>& collective) const {
    if (collective && named.contains(*collective)) return named.at(*collective);
    return all;
  }
};

// Converts a list such as "^LL128,LL" into bits. `unknown` receives the first word that names no algorithm or
// protocol.
uint32_t ElementsOf(std::string_view list, const ChoiceVariable& variable, std::string& unknown) {
  const bool inverted = list.starts_with('^');
  if (inverted) list.remove_prefix(1);
  uint32_t bits = 0;
  for (const std::string_view word : CommaFields(list)) {
    const auto element = variable.parse(word);
    if (element && *element >= 0)
      bits |= 1u << *element;
    else if (unknown.empty())
      unknown = word;
  }
  return inverted ? ~bits : bits;
}

// Parses a value of NCCL_ALGO or NCCL_PROTO. From NCCL 2.24 on it may have entries for single collectives,
// such as "ring;allreduce:tree". In earlier releases it is one list.
Selection ParseSelection(std::string_view value, const ChoiceVariable& variable, bool names_collectives) {
  Selection selection;
  if (!names_collectives) {
    selection.all = ElementsOf(value, variable, selection.unknown);
    return selection;
  }
  while (!value.empty()) {
    const size_t end = value.find(';');
    const std::string_view entry = value.substr(0, end);
    value.remove_prefix(end == std::string_view::npos ? value.size() : end + 1);
    const size_t colon = entry.find(':');
    const uint32_t bits = ElementsOf(colon == std::string_view::npos ? entry : entry.substr(colon + 1),
                                     variable, selection.unknown);
    if (colon == std::string_view::npos) {
      selection.all = bits;
      continue;
    }
    if (const auto collective = ParseCollective(entry.substr(0, colon)))
      selection.named[*collective] = bits;
    else if (selection.unknown.empty())
      selection.unknown = entry.substr(0, colon);
  }
  return selection;
}

std::string FunctionName(const ChosenCalls& calls) {
  return calls.collective ? std::string(Name(*calls.collective)) : "calls";
}

// Returns a text such as "AllReduce: Tree (3 calls); AllGather: Ring (2 calls)".
std::string Summary(const std::vector<const ChosenCalls*>& all, const ChoiceVariable& variable) {
  std::map<std::pair<std::string, int>, uint64_t> counts;
  for (const ChosenCalls* calls : all)
    counts[{FunctionName(*calls), variable.of(calls->config)}] += calls->calls;
  std::vector<std::string> texts;
  for (const auto& [key, count] : counts)
    texts.push_back(fmt::format("{}: {} ({} call{})", key.first, variable.name(key.second), count,
                                count == 1 ? "" : "s"));
  return fmt::format("{}", fmt::join(texts, "; "));
}

// Returns the line in which NCCL rejects a word of the value; null without one. A value from a file with the
// line ends of Windows ends in a carriage return in this line.
const LogLine* UnknownWord(const Judged& judged) {
  for (const char end : {'"', '\r'}) {
    const LogLine* const line = judged.log().Find(
        "Unrecognized element token", fmt::format("when parsing \"{}{}", judged.asked.value, end));
    if (line != nullptr) return line;
  }
  return nullptr;
}

// Says why NCCL does not know the word that the line names.
std::string ReasonOfUnknownWord(const LogLine& line) {
  if (line.text.find('\r') != std::string::npos)
    return "the value ends in a carriage return, from a file with the line ends of Windows";
  if (line.text.find("token \" ") != std::string::npos)
    return "NCCL takes the space before a word of the value for a part of it";
  return "NCCL does not know a word of the value";
}

// Returns a refutation if the value made the job fail: NCCL rejected it, or it left a collective no algorithm
// or protocol.
std::optional<Receipt> JudgeFailure(const Judged& judged, const Selection& selection) {
  const NcclLog& log = judged.log();
  if (const LogLine* const line = UnknownWord(judged))
    return NotInEffect(judged, "the communicator was not made", ReasonOfUnknownWord(*line), line);
  for (const LogLine& line : log.notes) {
    // The text is "Error : no algorithm/protocol available" or, in newer releases, "No algorithm/protocol nor
    // symKernelId available".
    if (line.text.find("o algorithm/protocol") == std::string::npos) continue;
    // From 2.24 on, NCCL's line about this failure names the variables that caused it.
    const bool blamed = line.text.find(judged.asked.name + " was set to") != std::string::npos;
    const bool names_none = line.text.find(" was set to") == std::string::npos;
    if (blamed || (names_none && selection.all == 0u))
      return NotInEffect(judged, "a collective failed", "the value leaves it nothing to choose from", &line);
  }
  return std::nullopt;
}

// Returns a refutation if NCCL ignored a value without a known word. Some releases before 2.24 do so, which
// the log shows by calls that ran. Later releases fail instead.
std::optional<Receipt> JudgeIgnoredWord(const Judged& judged, const Selection& selection,
                                        const ChoiceVariable& variable) {
  const auto* const release = judged.release();
  if (release == nullptr || *release >= kNamesCollectives || selection.unknown.empty() ||
      selection.all != 0u || judged.log().choices.empty())
    return std::nullopt;
  std::vector<const ChosenCalls*> all;
  for (const ChosenCalls& calls : judged.log().choices) all.push_back(&calls);
  const bool names = judged.asked.value.find(':') != std::string::npos;
  return NotInEffect(judged, Summary(all, variable),
                     fmt::format("NCCL {} ignores '{}', which is no {}{}", release->text(), selection.unknown,
                                 variable.what, names ? "; collectives can be named from 2.24 on" : ""),
                     &all.front()->line);
}

constexpr const char* kOutsideTable =
    "such calls run no algorithm of NCCL's table; NCCL_WIN_ENABLE=0 ends that";

// Returns a refutation if calls that the value is about ran as symmetric kernels or on the copy engine. Such
// calls use no algorithm of NCCL's table.
std::optional<Receipt> JudgeUntuned(const Judged& judged, const Selection& selection) {
  for (const UntunedCalls& calls : judged.log().untuned) {
    const auto collective = ParseCollective(calls.function);
    if (!collective || static_cast<int>(*collective) >= kTunableCollectives || !selection.Of(collective))
      continue;
    const std::string by = calls.kernel.empty() ? "the copy engine" : "symmetric kernel " + calls.kernel;
    return NotInEffect(
        judged,
        fmt::format("{}: {} call{} by {}", calls.function, calls.calls, calls.calls == 1 ? "" : "s", by),
        kOutsideTable, &calls.line);
  }
  return std::nullopt;
}

// Returns a refutation if a profiler trace has symmetric kernels of collectives that the value is about.
std::optional<Receipt> JudgeSymmetricKernels(const Judged& judged, const Selection& selection) {
  for (const SeenKernels& kernel : judged.evidence.kernels) {
    const auto collective = ParseCollective(FunctionOfKernel(kernel.name));
    if (IsSymmetricKernel(kernel.name) && collective && selection.Of(collective))
      return NotInEffect(judged, fmt::format("{}: symmetric kernels", Name(*collective)), kOutsideTable,
                         &kernel.line);
  }
  return std::nullopt;
}

// Judges the value by the kernels of a profiler trace. The names of general kernels show only whether an
// AllReduce used Tree.
std::optional<Receipt> JudgeTreeKernels(const Judged& judged, const Selection& selection) {
  const auto admitted = selection.Of(Collective::kAllReduce);
  if (!admitted) return std::nullopt;
  constexpr uint32_t kTree = 1u << static_cast<int>(Algorithm::kTree);
  for (const SeenKernels& kernel : judged.evidence.kernels) {
    if (!kernel.name.starts_with("ncclDevKernel_AllReduce")) continue;
    const bool tree = kernel.name.find("_TREE") != std::string::npos;
    if (tree && (*admitted & kTree) == 0)
      return NotInEffect(judged, "AllReduce: Tree", "the kernel is Tree's", &kernel.line);
    if (!tree && *admitted == kTree)
      return NotInEffect(judged, "AllReduce: not Tree", "Tree has kernels of its own, and this is none",
                         &kernel.line);
  }
  return std::nullopt;
}

// True if the metrics show that NCCL_ALGO or NCCL_PROTO was set for every call for which NCCL could otherwise
// choose.
bool AllPinned(const Evidence& evidence) {
  return evidence.counted && evidence.counted->CallsOf(Coverage::kPinned) > 0 &&
         evidence.counted->CallsOf(Coverage::kTunable) == 0;
}

// Returns a refutation if DynamICCL counted calls whose choice was free. In a process with NCCL_ALGO or
// NCCL_PROTO it counts every call as pinned.
std::optional<Receipt> JudgeFreeCalls(const Judged& judged) {
  const auto& counted = judged.evidence.counted;
  if (!counted || judged.was_read() || judged.asked.value.empty()) return std::nullopt;
  const uint64_t free = counted->CallsOf(Coverage::kTunable);
  if (free == 0) return std::nullopt;
  return NotInEffect(judged, fmt::format("{} calls were free to choose for", free),
                     "the process does not have the variable; does the launcher pass it on?", &counted->line);
}

// Judges calls that were pinned but not timed. Over hostccl they prove the setting, since hostccl fails at a
// value that it does not obey. Over NCCL they prove nothing, since the metrics do not hold what NCCL chose.
std::optional<Receipt> JudgePinnedCalls(const Judged& judged) {
  if (!AllPinned(judged.evidence)) return std::nullopt;
  const CountedCalls& counted = *judged.evidence.counted;
  const std::string calls = fmt::format("{} calls were pinned", counted.CallsOf(Coverage::kPinned));
  if (judged.evidence.over_hostccl)
    return InEffect(judged, calls + ", and hostccl fails at a value that it does not obey", counted.line);
  Receipt receipt = NotProvable(judged, "DynamICCL saw it and counted; what NCCL chose shows in its log");
  receipt.effect = calls;
  receipt.proof = counted.line;
  return receipt;
}

Receipt JudgeChoices(const Judged& judged, const Selection& selection, const ChoiceVariable& variable) {
  std::vector<const ChosenCalls*> as_asked, others;
  for (const ChosenCalls& calls : judged.evidence.Choices()) {
    const auto admitted = selection.Of(calls.collective);
    if (!admitted) continue;
    const bool fits = (*admitted >> variable.of(calls.config) & 1u) != 0;
    (fits ? as_asked : others).push_back(&calls);
  }
  if (!others.empty()) {
    std::vector<const ChosenCalls*> all = as_asked;
    all.insert(all.end(), others.begin(), others.end());
    return NotInEffect(
        judged, Summary(all, variable),
        as_asked.empty()
            ? fmt::format("calls ran another {}", variable.what)
            : fmt::format("in effect for some calls only: a collective without the {} gets another",
                          variable.what),
        &others.front()->line);
  }
  if (auto receipt = JudgeUntuned(judged, selection)) return *receipt;
  if (as_asked.empty()) return NotProvable(judged, "the log shows no call that the value is about");
  if (!judged.was_read() && !AllPinned(judged.evidence)) {
    Receipt receipt =
        NotProvable(judged, "calls ran as asked, but nothing shows that NCCL read the variable");
    receipt.effect = Summary(as_asked, variable);
    return receipt;
  }
  return InEffect(judged, Summary(as_asked, variable), as_asked.front()->line);
}

std::optional<Receipt> CheckChoice(const Judged& judged, const ChoiceVariable& variable) {
  const auto* const release = judged.release();
  const Selection selection =
      ParseSelection(judged.asked.value, variable, release == nullptr || *release >= kNamesCollectives);
  if (auto receipt = JudgeFailure(judged, selection)) return receipt;
  if (auto receipt = JudgeIgnoredWord(judged, selection, variable)) return receipt;
  if (&variable == &kAlgorithm) {
    if (auto receipt = JudgeTreeKernels(judged, selection)) return receipt;
  }
  if (auto receipt = JudgeSymmetricKernels(judged, selection)) return receipt;
  if (auto receipt = JudgeFreeCalls(judged)) return *receipt;
  // Files that show no choice may still show that the variable never reached a process.
  if (judged.evidence.Choices().empty() && judged.log().untuned.empty()) {
    if (auto receipt = JudgePinnedCalls(judged)) return *receipt;
    if (!judged.was_read()) return std::nullopt;
    Receipt receipt =
        NotProvable(judged, "NCCL read it, but the log shows no choice, which lines of TUNING would");
    receipt.proof = judged.reads.front()->line;
    return receipt;
  }
  if (!judged.was_read() && judged.WholeInit() != nullptr) return std::nullopt;
  return JudgeChoices(judged, selection, variable);
}

// Returns the line of a symmetric kernel, which runs on windows of registered memory; null without one.
const LogLine* SymmetricKernel(const Evidence& evidence) {
  for (const UntunedCalls& calls : evidence.log.untuned) {
    if (!calls.kernel.empty()) return &calls.line;
  }
  for (const SeenKernels& kernel : evidence.kernels) {
    if (IsSymmetricKernel(kernel.name)) return &kernel.line;
  }
  return nullptr;
}

}  // namespace

std::optional<Receipt> CheckAlgorithm(const Judged& judged) {
  return CheckChoice(judged, kAlgorithm);
}

std::optional<Receipt> CheckProtocol(const Judged& judged) {
  return CheckChoice(judged, kProtocol);
}

// Judges NCCL_CTA_POLICY. With its value ZERO, NCCL sends calls to the copy engine where the communicator and
// the buffers allow this.
std::optional<Receipt> CheckCtaPolicy(const Judged& judged) {
  const std::string& value = judged.asked.value;
  if (value != "2" && !EqualIgnoringCase(value, "ZERO")) return std::nullopt;
  for (const UntunedCalls& calls : judged.log().untuned) {
    if (calls.kernel.empty()) return InEffect(judged, calls.function + " by the copy engine", calls.line);
  }
  if (const LogLine* const line = SymmetricKernel(judged.evidence))
    return NotInEffect(
        judged, "a symmetric kernel, which takes processors of the GPU",
        "NCCL falls back to a kernel without a warning: buffers or communicator do not fit the copy engine",
        line);
  return std::nullopt;
}

std::optional<Receipt> CheckWindows(const Judged& judged) {
  const LogLine* const kernel = SymmetricKernel(judged.evidence);
  if (NumberAsNcclReads(judged.asked.value) == 0) {
    if (kernel == nullptr) return std::nullopt;
    return NotInEffect(judged, "symmetric kernels run", "they need windows, so windows are on", kernel);
  }
  if (kernel != nullptr) return InEffect(judged, "symmetric kernels run", *kernel);
  if (const LogLine* const line = judged.log().Find("does not support symmetric memory"))
    return NotInEffect(judged, "no windows", "the communicator does not support them", line);
  return std::nullopt;
}

}  // namespace dynamiccl
