// SPDX-License-Identifier: Apache-2.0
// Parsing and checking of --offload-optimizer, and the choice of the optimizer's class.
#include "zero_workloads/offload/optimizer_offload.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "zero_workloads/device/device.h"
#include "zero_workloads/offload/file_adamw.h"
#include "zero_workloads/parallel/partition.h"

namespace dynamiccl::zero {
namespace {

// The form of the option that names a folder.
constexpr std::string_view kNvmePrefix = "nvme:";

AdamWStates HostStates(int64_t elements) {
  const auto zeros = [elements] { return NewHostTensor(elements, at::kFloat).zero_(); };
  return {zeros(), zeros(), zeros()};
}

}  // namespace

Result<OptimizerOffload> OptimizerOffload::Parse(const std::string& text) {
  OptimizerOffload offload;
  if (text == "none") return offload;
  if (text == "cpu") {
    offload.place = Place::kCpu;
    return offload;
  }
  if (text.starts_with(kNvmePrefix) && text.size() > kNvmePrefix.size()) {
    offload.place = Place::kNvme;
    offload.folder = text.substr(kNvmePrefix.size());
    return offload;
  }
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "--offload-optimizer {} is none", text),
                  "none, cpu, or nvme:FOLDER");
}

Status OptimizerOffload::CheckFolder() const {
  if (place != Place::kNvme) return {};
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return MakeError(ErrorKind::kInvalidArgument, "--offload-optimizer nvme:{}: no such folder", folder);
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return MakeError(ErrorKind::kInvalidArgument, "--offload-optimizer nvme:{}: {}", folder,
                     ErrnoText(errno));
  }
  return {};
}

std::unique_ptr<AdamW> MakeAdamW(int64_t elements, const OptimizerOffload& offload,
                                 const AdamWSettings& settings, at::Device device) {
  switch (offload.place) {
    case OptimizerOffload::Place::kNone:
      return std::make_unique<AdamW>(AdamW::ZeroStates(elements, device), settings);
    case OptimizerOffload::Place::kCpu:
      return std::make_unique<AdamW>(HostStates(elements), settings,
                                     RoundUp(offload.buffer_bytes / 4, kShardAlignment));
    case OptimizerOffload::Place::kNvme:
      return std::make_unique<FileAdamW>(elements, offload, settings);
  }
  return nullptr;
}

const OffloadTraffic* TrafficOf(const AdamW& optimizer) {
  const auto* const files = dynamic_cast<const FileAdamW*>(&optimizer);
  return files == nullptr ? nullptr : &files->traffic();
}

}  // namespace dynamiccl::zero
