// SPDX-License-Identifier: Apache-2.0
// Parses the formats with one JSON object per line. FUZZED_TEXT_FORMAT selects the format. Input: the lines.
// The entry adds the end line with count and hash if it is missing.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "tests/fuzz/fuzz_input.h"
#include "traces/format/measurement_file.h"
#include "traces/format/nccl_choices_file.h"
#include "traces/format/trace_json.h"

#define FUZZED_MEASUREMENTS 1
#define FUZZED_NCCL_CHOICES 2
#define FUZZED_TRACE_JSON 3

namespace {

using namespace dynamiccl;

#if FUZZED_TEXT_FORMAT == FUZZED_MEASUREMENTS
constexpr auto kParse = ParseMeasurements;
constexpr auto kFormat = FormatMeasurements;
constexpr const char* kCount = "rows";
constexpr std::string_view kUncounted[] = {"\"magic\"", "\"kind\":\"context\""};
#elif FUZZED_TEXT_FORMAT == FUZZED_NCCL_CHOICES
constexpr auto kParse = ParseNcclChoices;
constexpr auto kFormat = FormatNcclChoices;
constexpr const char* kCount = "lines";
constexpr std::string_view kUncounted[] = {"\"magic\"", "\"kind\":\"machine\"", "\"kind\":\"release\""};
#else
constexpr auto kParse = ParseTraceJson;
constexpr auto kFormat = FormatTraceJson;
constexpr const char* kCount = "records";
constexpr std::string_view kUncounted[] = {"\"magic\"", "\"kind\":\"section\""};
#endif

// Counts the lines that contain no text of kUncounted.
size_t CountedLines(std::string_view text) {
  size_t counted = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    bool counts = true;
    for (const std::string_view part : kUncounted) counts = counts && line.find(part) == line.npos;
    counted += counts ? 1 : 0;
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return counted;
}

std::string WithEnd(std::string text) {
  if (text.find("\"kind\":\"end\"") != std::string::npos) return text;
  if (!text.empty() && text.back() != '\n') text += '\n';
  const uint64_t hash = XXH3_64bits(text.data(), text.size());
  return text + fmt::format("{{\"kind\":\"end\",\"{}\":{},\"xxh3\":\"{:016x}\"}}\n", kCount,
                            CountedLines(text), hash);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text = WithEnd(std::string(fuzz::TextOf(fuzz::BytesOf(data, size))));
  const auto parsed = kParse(text, "fuzz");
  if (!parsed) return 0;
  const auto written = kFormat(*parsed);
  fuzz::Require(written.has_value(), "what was read can be written");
  const auto again = kParse(*written, "again");
  fuzz::Require(again.has_value(), "what was written can be read");
  fuzz::Require(*kFormat(*again) == *written, "reading and writing change nothing");
  return 0;
}
