// SPDX-License-Identifier: Apache-2.0
// Makes traces of jobs with given calls and times, writes files, and returns the text of `dynamiccl why`
// about them.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "tools/why/answer.h"
#include "traces/format/record_views.h"

namespace dynamiccl {

inline constexpr uint64_t kCommunicator = 0xc0;
inline constexpr int64_t kMs = 1'000'000;

// One call of a rank, with its issue time and its duration; -1 if it was not timed.
struct TimedCallOfRank {
  int64_t issued_ns = 0;
  int64_t duration_ns = -1;
  uint64_t bytes = 1 << 20;
  Collective collective = Collective::kAllReduce;
};

inline TraceSection SectionOf(int rank, int world, const std::vector<TimedCallOfRank>& calls) {
  TraceSection section;
  section.rank = rank;
  section.world = world;
  section.process_id = 100 + rank;
  section.host = "node";
  section.library = "NCCL 2.30.7";
  section.closed = true;
  const auto add = [&](TraceRecord record) {
    Seal(record);
    section.records.push_back(record);
  };
  add(CommunicatorRecord(0, {kCommunicator, rank, world, 1}, 0));
  for (size_t i = 0; i < calls.size(); ++i) {
    IssuedCall issued;
    issued.call.bytes = calls[i].bytes;
    issued.call.collective = calls[i].collective;
    issued.call.data_type = DataType::kFloat32;
    issued.call.call_number = i;
    issued.issued_ns = calls[i].issued_ns;
    TraceRecord record = CallRecord(0, issued);
    if (calls[i].duration_ns >= 0) {
      record.duration_ns = calls[i].duration_ns;
      record.duration_source = static_cast<uint8_t>(DurationSource::kStream);
    }
    add(record);
  }
  return section;
}

// Returns the answer as one text, with wrapped rows joined, so that a test can look for a whole sentence.
inline std::string TextOf(const WhyInput& input) {
  const auto parts = AnswerWhy(input, nullptr);
  std::string text = parts ? WhyText(*parts) : Describe(parts.error());
  for (size_t at; (at = text.find("\n    ")) != std::string::npos;) text.replace(at, 5, " ");
  return text;
}

// A folder that exists during the lifetime of this object.
class Folder {
 public:
  Folder() { std::filesystem::create_directories(path_); }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  std::string Write(const std::string& name, std::string_view content) const {
    std::ofstream(File(name), std::ios::binary) << content;
    return File(name);
  }

 private:
  std::string path_ = ::testing::TempDir() + fmt::format("why_{}", ::getpid());
};

// Returns the text of `dynamiccl why` about these files.
inline std::string TextOfFiles(const std::vector<std::string>& paths) {
  const Result<WhyInput> input = ReadWhyFiles(paths);
  EXPECT_TRUE(input) << input.error().message;
  return input ? TextOf(*input) : "";
}

}  // namespace dynamiccl
