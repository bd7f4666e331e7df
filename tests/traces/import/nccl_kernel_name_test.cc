// SPDX-License-Identifier: Apache-2.0
// Tests names of kernels of NCCL 2.21 to 2.32, and of other kernels of programs.
#include "traces/import/nccl_kernel_name.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "traces/format/trace_calls.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

constexpr const char* kGeneral = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
constexpr const char* kSymmetric227 = "ncclSymDevKernel_AllGather_STMC(ncclSymDevArgs)";
constexpr const char* kSymmetric232 = "ncclSymkDevKernel_AllGather_RailRing_LsaSTMC(ncclSymkDevWorkArgs4K)";

TEST(NcclKernelName, TellsSymmetricKernelsAndTheFunction) {
  for (const char* kernel : {kGeneral, kSymmetric227, kSymmetric232}) {
    EXPECT_EQ(IsSymmetricKernel(kernel), kernel != kGeneral) << kernel;
    EXPECT_EQ(FunctionOfKernel(kernel), "AllGather") << kernel;
  }
  EXPECT_EQ(FunctionOfKernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"), "SendRecv");
  EXPECT_EQ(FunctionOfKernel("triton_comm_fused__to_copy_all_reduce_0"), "");
  EXPECT_EQ(FunctionOfKernel("nccl"), "");
}

// Returns the coverage of the only call in a profile. The call launched a kernel with this name.
Coverage CoverageOfCallWith(const std::string& kernel) {
  const std::string path = testing::TempDir() + fmt::format("kernel_name_{}.json", ::getpid());
  std::ofstream(path)
      << R"({"schemaVersion":1,"traceEvents":[{"ph":"X","cat":"cpu_op","name":"record_param_comms","tid":1,"ts":40,"dur":10,)"
      << R"("args":{"Collective name":"allgather","dtype":"Float","In msg nelems":5}},)"
      << R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernelExC","ts":45,"dur":1,"tid":1,"args":{"correlation":4}},)"
      << R"({"ph":"X","cat":"kernel","name":")" << kernel
      << R"(","ts":60,"dur":7.5,"tid":9,"args":{"correlation":4,"stream":7,"grid":[2,1,1]}}]})";
  const auto imported = ImportFile(path, "");
  std::filesystem::remove(path);
  EXPECT_TRUE(imported && imported->trace);
  if (!imported || !imported->trace) return Coverage::kNotAsked;
  const SectionCalls calls = CallsOf(imported->trace->sections.at(0));
  EXPECT_EQ(calls.calls.size(), 1u);
  return calls.calls.at(0).issued.coverage;
}

TEST(NcclKernelName, GivesACallItsCoverage) {
  EXPECT_EQ(CoverageOfCallWith(kGeneral), Coverage::kUnknown);
  EXPECT_EQ(CoverageOfCallWith(kSymmetric227), Coverage::kSymmetricKernel);
  EXPECT_EQ(CoverageOfCallWith(kSymmetric232), Coverage::kSymmetricKernel);
}

}  // namespace
}  // namespace dynamiccl
