// SPDX-License-Identifier: Apache-2.0
#include "tools/why/answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/report/html.h"
#include "tools/why/parts.h"

namespace dynamiccl {
namespace {

constexpr size_t kColumns = 100;

// The words of `line` in rows of at most kColumns; each after the first is indented further.
std::string Wrapped(const std::string& line) {
  std::string text = "  ", row;
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    const std::string word = line.substr(begin, end - begin);
    if (!row.empty() && 4 + row.size() + 1 + word.size() > kColumns) {
      text += row + "\n    ";
      row.clear();
    }
    row += (row.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return text + row + "\n";
}

}  // namespace

Result<std::vector<WhyPart>> AnswerWhy(const WhyInput& input, const Policy* policy) {
  DYNAMICCL_TRY(const WhyFacts facts, FactsOf(input, policy));
  DYNAMICCL_TRY(const Trouble trouble, TroubleOf(input));
  const std::vector<std::string> changes = ChangeLines(input, facts);
  std::vector<WhyPart> parts = {
      {"job", "The job", JobLines(input, facts)},
      {"trouble", "What is wrong", trouble.lines},
      {"faults", "Known faults of this release of NCCL", input.known_faults},
      {"settings", "Settings that are not in effect", input.refuted_settings},
      {"time", "Where its time goes", TimeLines(input, facts)},
      {"choices", "What the library chose", ChoiceLines(input, facts)},
      {"changes", "What to try", changes},
      {"missing", "What these files do not show, and what would", MissingLines(input, facts, trouble)},
      {"next", "Next", NextLines(input, !trouble.lines.empty(), changes.size() > 1)},
  };
  std::erase_if(parts, [](const WhyPart& part) { return part.lines.empty(); });
  return parts;
}

std::string WhyText(const std::vector<WhyPart>& parts) {
  std::string text;
  for (const WhyPart& part : parts) {
    text += (text.empty() ? "" : "\n") + part.title + "\n";
    for (const std::string& line : part.lines) text += part.id == "next" ? "  " + line + "\n" : Wrapped(line);
  }
  return text;
}

std::string WhyHtml(const std::vector<WhyPart>& parts) {
  std::vector<HtmlSection> sections;
  for (const WhyPart& part : parts) sections.push_back({part.id, part.title, HtmlList(part.lines)});
  return HtmlPage("Why this job takes its time", sections);
}

Json WhyJson(const WhyInput& input, const std::vector<WhyPart>& parts) {
  Json files = Json::array(), list = Json::array(), devices = Json::array();
  for (const WhyFile& file : input.files)
    files.push_back({{"path", file.path}, {"kind", file.kind}, {"notes", file.notes}});
  for (const WhyPart& part : parts)
    list.push_back({{"id", part.id}, {"title", part.title}, {"lines", part.lines}});
  for (const DeviceTime& device : input.devices)
    devices.push_back({{"computing_ns", device.computing_ns},
                       {"hidden_ns", device.hidden_ns},
                       {"exposed_ns", device.exposed_ns},
                       {"idle_ns", device.idle_ns}});
  return {{"schema", 1}, {"files", files}, {"devices", devices}, {"parts", list}};
}

}  // namespace dynamiccl
