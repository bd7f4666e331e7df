// SPDX-License-Identifier: Apache-2.0
// The answer of `dynamiccl why`: what the files show about a job, in parts, each a title and some sentences.
// docs/why.md says where each statement comes from.
#pragma once

#include <string>
#include <vector>

#include "src/policy/policy.h"
#include "tools/report/json_output.h"
#include "tools/why/read_files.h"

namespace dynamiccl {

struct WhyPart {
  // "job", "trouble", "faults", "settings", "time", "choices", "changes", "missing" or "next".
  std::string id;
  std::string title;
  // The sentences of the part; at least one.
  std::vector<std::string> lines;
};

// Returns all parts that have something to say, in the order of the ids above. `policy` recognises the stage
// of a job that does not label it; with null the stage stays unknown. The answer states only what the files
// show, and marks assumptions and predictions as such. An error means that a file changed while it was read.
Result<std::vector<WhyPart>> AnswerWhy(const WhyInput& input, const Policy* policy);

// Returns about one screen of text. Lines have at most 100 columns, except for long names and commands.
std::string WhyText(const std::vector<WhyPart>& parts);
// Returns the answer as a page for a browser.
std::string WhyHtml(const std::vector<WhyPart>& parts);
// Returns the answer as JSON (docs/formats/command_json.md).
Json WhyJson(const WhyInput& input, const std::vector<WhyPart>& parts);

}  // namespace dynamiccl
