// SPDX-License-Identifier: Apache-2.0
// As dynamiccl-agents: one thread of LibTorch, so that results are reproducible and tests do not fight for
// cores.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace {

class SingleThread : public ::testing::Environment {
  void SetUp() override { at::set_num_threads(1); }
};
[[maybe_unused]] const ::testing::Environment* const kSingleThread =
    ::testing::AddGlobalTestEnvironment(new SingleThread);  // owned by gtest

}  // namespace
