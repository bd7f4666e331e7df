// SPDX-License-Identifier: Apache-2.0
// Formats the answer of a tune as text and JSON, and writes the files with which to run the job.
#pragma once

#include <string>

#include "tools/tune/tune_session.h"

namespace dynamiccl {

// Writes tuned.settings.json and, where a config of NCCL won, tuned.rules.toml into `folder`. Where nothing
// won, the settings file has no settings and an earlier rules file is removed.
Status WriteTuned(const TuneResult& result, const std::string& folder);

// Returns the answer as text of about one screen.
std::string Describe(const TuneResult& result, const std::string& folder);
// The answer as JSON, schema 1.
Json ToJson(const TuneResult& result);

}  // namespace dynamiccl
