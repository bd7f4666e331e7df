// SPDX-License-Identifier: Apache-2.0
// Fills and checks data on the host, for devices that do not do this themselves, and selects the kind of
// device.
#include "tools/bench/device.h"

namespace dynamiccl {

Status Device::FillInput(const CheckedCall& call, int rank, std::byte* to) {
  const std::vector<std::byte> input = InputOf(call, rank);
  return CopyIn(to, input.data(), input.size());
}

Result<uint64_t> Device::CountWrong(const CheckedCall& call, int rank, const std::byte* received) {
  if (!HasResult(call, rank)) return 0;
  std::vector<std::byte> copy(ReceiveCount(call) * ElementBytes(call.type));
  DYNAMICCL_CHECK_OK(CopyOut(copy.data(), received, copy.size()));
  return dynamiccl::CountWrong(call, rank, copy);
}

Result<std::unique_ptr<Device>> OpenDevice(const NcclLibrary& library, const RankPlace& place,
                                           bool null_stream) {
  return library.is_hostccl() ? OpenHostDevice(library, null_stream) : OpenCudaDevice(place, null_stream);
}

}  // namespace dynamiccl
