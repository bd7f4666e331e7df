// SPDX-License-Identifier: Apache-2.0
// Parses NCCL_ALGO, NCCL_PROTO and the limits on channels, with NCCL's error messages.
#include "src/hostccl/pinned_choice.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "src/hostccl/debug_log.h"

namespace dynamiccl::hostccl {
namespace {

// Splits the text at the separator. Empty parts are kept, because they are errors in NCCL's grammar.
std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// For each collective one bit for each algorithm, or for each protocol.
using Bits = std::array<unsigned, kTunableCollectives>;

// A function that parses a name, like ParseAlgorithm or ParseProtocol, and returns its number or nothing.
using ParseElement = std::optional<int> (*)(std::string_view);

std::optional<int> AlgorithmIndex(std::string_view name) {
  const auto algorithm = ParseAlgorithm(name);
  return algorithm ? std::optional<int>(static_cast<int>(*algorithm)) : std::nullopt;
}

std::optional<int> ProtocolIndex(std::string_view name) {
  const auto protocol = ParseProtocol(name);
  return protocol ? std::optional<int>(static_cast<int>(*protocol)) : std::nullopt;
}

// Parses one list. Returns the bits of the list's names, or all other bits after a leading ^.
Result<unsigned> ParseList(std::string list, ParseElement parse, const std::string& whole) {
  const bool exclude = !list.empty() && list[0] == '^';
  if (exclude) list.erase(0, 1);
  unsigned bits = 0;
  for (const std::string& token : Split(list, ',')) {
    const auto index = parse(token);
    if (!index) {
      return MakeError(ErrorKind::kInvalidArgument, "Unrecognized element token \"{}\" when parsing \"{}\"",
                       token, whole);
    }
    bits |= 1u << *index;
  }
  return exclude ? ~bits : bits;
}

// Parses a whole variable. If the first entry names no function, it applies to all collectives. Later entries
// replace it for one collective each.
Result<Bits> ParseVariable(const std::string& text, ParseElement parse) {
  Bits bits;
  bits.fill(~0u);
  if (text.empty()) return bits;
  const std::vector<std::string> entries = Split(text, ';');
  for (size_t i = 0; i < entries.size(); ++i) {
    const size_t colon = entries[i].find(':');
    if (colon == std::string::npos && i > 0) {
      return MakeError(ErrorKind::kInvalidArgument, "All entries except the first must have a prefix: \"{}\"",
                       text);
    }
    const std::string list = colon == std::string::npos ? entries[i] : entries[i].substr(colon + 1);
    DYNAMICCL_TRY(const unsigned parsed, ParseList(list, parse, text));
    if (colon == std::string::npos) {
      bits.fill(parsed);
      continue;
    }
    const std::string prefix = entries[i].substr(0, colon);
    const auto collective = ParseCollective(prefix);
    if (!collective || static_cast<int>(*collective) >= kTunableCollectives) {
      return MakeError(ErrorKind::kInvalidArgument, "Unrecognized prefix token \"{}\" when parsing \"{}\"",
                       prefix, text);
    }
    bits[static_cast<size_t>(*collective)] = parsed;
  }
  return bits;
}

// Returns the variable's text. If the variable is set, it is logged as in NCCL.
std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return {};
  Info(NCCL_SUBSYS_ENV, "{} set by environment to {}", name, value);
  return value;
}

// Returns the variable's number; 0 if the variable is not set or is not a number from 1 to 1024.
int PositiveVariable(const char* name) {
  const std::string text = Variable(name);
  if (text.empty()) return 0;
  errno = 0;
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 0);
  if (errno == 0 && *end == '\0' && value > 0 && value <= 1024) return static_cast<int>(value);
  Warn("Invalid value {} for {}, using default {}.", text, name, -2);
  return 0;
}

// Returns the stricter of two limits. A limit of 0 means that there is none.
int Stricter(int a, int b, bool larger_is_stricter) {
  if (a == 0 || b == 0) return a + b;
  return larger_is_stricter ? std::max(a, b) : std::min(a, b);
}

}  // namespace

PinnedNames PinnedFromEnvironment() {
  return {Variable("NCCL_ALGO"), Variable("NCCL_PROTO")};
}

Result<PinnedMasks> MasksOf(const PinnedNames& names) {
  DYNAMICCL_TRY(const Bits algorithms, ParseVariable(names.algorithms, AlgorithmIndex));
  DYNAMICCL_TRY(const Bits protocols, ParseVariable(names.protocols, ProtocolIndex));
  PinnedMasks masks;
  for (size_t c = 0; c < masks.size(); ++c) {
    for (int a = 0; a < kAlgorithms; ++a) {
      for (int p = 0; p < kProtocols; ++p) {
        const bool allowed = (algorithms[c] >> a & 1u) != 0 && (protocols[c] >> p & 1u) != 0;
        masks[c].set(ConfigIndex(static_cast<Algorithm>(a), static_cast<Protocol>(p)), allowed);
      }
    }
  }
  return masks;
}

ChannelLimits LimitsFromEnvironment(ChannelLimits config) {
  if (const int min = PositiveVariable("NCCL_MIN_CTAS")) config.min = min;
  if (const int max = PositiveVariable("NCCL_MAX_CTAS")) config.max = max;
  config.min = Stricter(config.min, PositiveVariable("NCCL_MIN_NCHANNELS"), true);
  config.max = Stricter(config.max, PositiveVariable("NCCL_MAX_NCHANNELS"), false);
  return config;
}

}  // namespace dynamiccl::hostccl
