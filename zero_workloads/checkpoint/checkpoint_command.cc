// SPDX-License-Identifier: Apache-2.0
// The subcommands are thin layers over CheckpointReader and safetensors.h.
#include "zero_workloads/checkpoint/checkpoint_command.h"

#include <fmt/core.h>

#include <filesystem>

#include "zero_workloads/checkpoint/safetensors.h"

namespace dynamiccl::zero {
namespace {

std::string ValueOf(const CheckpointIndex& index, const std::string& name) {
  const auto found = index.values.find(name);
  return found == index.values.end() ? "-" : found->second;
}

}  // namespace

void CheckpointCommand::Register(CLI::App& app) {
  app.require_subcommand(1);
  list_ = app.add_subcommand("list", "The complete checkpoints of a folder.");
  verify_ = app.add_subcommand("verify", "Reads everything and checks it; names what is damaged.");
  export_ = app.add_subcommand("export", "Weights as a safetensors file.");
  CLI::App* import =
      app.add_subcommand("import", "Makes a folder whose step 0 has a safetensors file's weights.");
  for (CLI::App* command : {list_, verify_, export_}) {
    command->add_option("folder", folder_, "A run's --checkpoint-dir.")->required();
    command->add_option("--step", step_, "This checkpoint only.");
  }
  export_->add_option("file", file_, "File to write.")->required();
  export_->add_option("--dtype", dtype_, "fp32 or bf16.")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
  export_->add_flag("--optimizer-state", optimizer_state_,
                    "Also the moments: first_moment.NAME, second_moment.NAME.");
  import->add_option("file", file_, "File to read: F64, F32, F16 or BF16.")->required();
  import
      ->add_option("folder", folder_,
                   "Folder to make; train with it as --checkpoint-dir and --resume latest.")
      ->required();
}

Status CheckpointCommand::Run() {
  if (list_->parsed()) return List();
  if (verify_->parsed()) return Verify();
  return export_->parsed() ? Export() : Import();
}

Result<std::vector<int64_t>> CheckpointCommand::Steps() const {
  const CheckpointFolder folder(folder_);
  if (step_ >= 0) {
    DYNAMICCL_CHECK_OK(folder.CheckHas(step_));
    return std::vector<int64_t>{step_};
  }
  DYNAMICCL_TRY(std::vector<int64_t> steps, folder.Steps());
  if (steps.empty()) return MakeError(ErrorKind::kNotFound, "{}: no complete checkpoint", folder_);
  return steps;
}

Status CheckpointCommand::List() const {
  DYNAMICCL_TRY(const std::vector<int64_t> steps, Steps());
  fmt::print("{:>10} {:>16} {:>6} {:>8}  {}\n", "step", "bytes", "ranks", "tensors", "settings");
  for (const int64_t step : steps) {
    const auto reader = CheckpointReader::Open(CheckpointFolder(folder_).PathOf(step));
    if (!reader) {
      fmt::print("{:>10} damaged: {}\n", step, reader.error().message);
      continue;
    }
    const CheckpointIndex& index = reader->index();
    fmt::print("{:>10} {:>16} {:>6} {:>8}  {}\n", step, reader->Bytes(), index.files.size(),
               index.tensors.size(),
               ValueOf(index, index.values.contains("imported") ? "imported" : "settings"));
  }
  return {};
}

Status CheckpointCommand::Verify() const {
  DYNAMICCL_TRY(const std::vector<int64_t> steps, Steps());
  size_t damaged = 0;
  for (const int64_t step : steps) {
    auto reader = CheckpointReader::Open(CheckpointFolder(folder_).PathOf(step));
    const Status status = reader ? reader->Verify() : tl::unexpected<Error>(reader.error());
    damaged += status ? 0 : 1;
    fmt::print(
        "step {}: {}\n", step,
        status ? fmt::format("intact, {} bytes in {} file(s)", reader->Bytes(), reader->index().files.size())
               : status.error().message);
  }
  if (damaged == 0) return {};
  return MakeError(ErrorKind::kCorrupt, "{}: {} of {} checkpoints are damaged", folder_, damaged,
                   steps.size());
}

Status CheckpointCommand::Export() const {
  DYNAMICCL_TRY(const std::vector<int64_t> steps, Steps());
  DYNAMICCL_TRY(CheckpointReader reader,
                CheckpointReader::Open(CheckpointFolder(folder_).PathOf(steps.back())));
  DYNAMICCL_CHECK_OK(ExportSafetensors(&reader, file_, {dtype_ == "bf16", optimizer_state_}));
  fmt::print("{}: {} tensors of step {}\n", file_, reader.index().tensors.size(), steps.back());
  return {};
}

Status CheckpointCommand::Import() const {
  DYNAMICCL_TRY(const SafetensorsFile file, SafetensorsFile::Open(file_));
  CheckpointFolder folder(folder_);
  const std::string name = std::filesystem::path(file_).filename().string();
  DYNAMICCL_TRY(const size_t tensors, ImportSafetensors(file, name, &folder));
  fmt::print("{}: {} tensors; train with --checkpoint-dir {} --resume latest\n", folder.PathOf(0), tensors,
             folder_);
  return {};
}

}  // namespace dynamiccl::zero
