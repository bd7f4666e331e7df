// SPDX-License-Identifier: Apache-2.0
// Tests what `dynamiccl why` states about the framework and about changes that it predicts to help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/why/timed_job.h"

namespace dynamiccl {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(WhyJob, TheFrameworkIsNamedWithWhatShowsIt) {
  const Trace trace{{SectionOf(0, 2, {{0, kMs}})}};
  WhyFile shows{"a", "kineto", {}, {}, {{"PyTorch FSDP", "FSDP::pre_forward"}}};
  WhyFile also = shows;
  also.frameworks[0].seen = "FSDP::post_forward";
  EXPECT_THAT(TextOf({{shows, also}, trace, {}, {}, false}),
              HasSubstr("Framework: PyTorch FSDP (FSDP::pre_forward)."));
  EXPECT_THAT(TextOf({{{"a", "kineto", {}, {}}}, trace, {}, {}, false}), Not(HasSubstr("Framework")));
}

// A step has twelve small AllReduces. Each takes ten times as long as its bytes need, so one bucket is
// faster. A step computes for 1 ms.
TEST(WhyChanges, EachHasAnInterval) {
  std::vector<TimedCallOfRank> calls;
  for (int64_t step = 0; step < 12; ++step)
    for (int64_t i = 0; i < 12; ++i)
      calls.push_back({(step * 14 + i + 1) * kMs, kMs - 1000 * i, 65536 + 4096 * static_cast<uint64_t>(i)});
  const std::string text = TextOf({{}, Trace{{SectionOf(0, 2, calls)}}, {}, {}, false});
  EXPECT_THAT(text, ContainsRegex("saves [0-9.]+ % of the step, predicted \\(-?[0-9]+ to [0-9]+ %\\)\\."));
  EXPECT_THAT(text, HasSubstr("17 lay in such intervals"));
}

// PyTorch refuses bf16_compress_hook without GPUs.
TEST(WhyChanges, TheBf16HookIsNotForJobsOnCpus) {
  // The time is proportional to the bytes, so half the bytes take half the time.
  std::vector<TimedCallOfRank> calls;
  for (int64_t step = 0; step < 12; ++step)
    for (int64_t i = 0; i < 12; ++i)
      calls.push_back({(step * 14 + i + 1) * kMs, (i + 1) * 80'000, static_cast<uint64_t>(i + 1) << 20});
  TraceSection section = SectionOf(0, 2, calls);
  EXPECT_THAT(TextOf({{}, Trace{{section}}, {}, {}, false}), HasSubstr("bf16_compress_hook"));
  for (const char* const backend : {"gloo", "dynamiccl", "hostccl 2.28.9"}) {
    section.library = backend;
    EXPECT_THAT(TextOf({{}, Trace{{section}}, {}, {}, false}),
                AllOf(Not(HasSubstr("bf16_compress_hook")), Not(HasSubstr("CUDA"))))
        << backend;
  }
  const DeviceTime device{.computing_ns = kMs};
  EXPECT_THAT(TextOf({{}, Trace{{section}}, {}, {device}, false}), HasSubstr("bf16_compress_hook"))
      << "gloo takes tensors of GPUs too";
}

}  // namespace
}  // namespace dynamiccl
