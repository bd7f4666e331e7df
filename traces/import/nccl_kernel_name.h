// SPDX-License-Identifier: Apache-2.0
// What the names of NCCL's kernels say, as a profiler shows them:
//
//   ncclDevKernel_AllReduce_Sum_f32_TREE_LL(ncclDevKernelArgsStorage<4096ul>)
//   ncclSymkDevKernel_AllGather_STMC(ncclSymkDevWorkArgs4K)        (in NCCL 2.27: ncclSymDevKernel_)
//
// Collectives by copy engines run no kernel of NCCL. Kernels that a program brings itself or generates, also
// those over NCCL's device interface, have names of their own and do not count as NCCL's.
#pragma once

#include <string_view>

namespace dynamiccl {

// Returns true for a kernel over windows of registered memory. NCCL chooses it beside the table that a tuner
// is asked about.
constexpr bool IsSymmetricKernel(std::string_view kernel) {
  return kernel.starts_with("ncclSym");
}

// Returns the function in the name: "AllReduce" above; "Generic" or "SendRecv" for kernels of several
// functions; empty for a name of another form.
constexpr std::string_view FunctionOfKernel(std::string_view kernel) {
  const size_t begin = kernel.find('_');
  if (!kernel.starts_with("nccl") || begin == std::string_view::npos) return {};
  kernel.remove_prefix(begin + 1);
  return kernel.substr(0, kernel.find_first_of("_("));
}

}  // namespace dynamiccl
