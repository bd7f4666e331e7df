// SPDX-License-Identifier: Apache-2.0
// The tests compute as dynamiccl-agents does: repeatable arithmetic, and one thread of LibTorch, so that
// tests do not fight for cores.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "agents/repeatable_math.h"

namespace {

class SingleThread : public ::testing::Environment {
  void SetUp() override {
    dynamiccl::agents::UseRepeatableKernels();
    at::set_num_threads(1);
  }
};
[[maybe_unused]] const ::testing::Environment* const kSingleThread =
    ::testing::AddGlobalTestEnvironment(new SingleThread);  // owned by gtest

}  // namespace
