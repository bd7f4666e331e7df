// SPDX-License-Identifier: Apache-2.0
// The formats of the reports. In the JSON lines, loss_hex has the exact bits of the loss, for comparisons
// between runs.
#include "zero_workloads/progress.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numbers>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "zero_workloads/device/device.h"
#include "zero_workloads/memory/memory_cap.h"

namespace dynamiccl::zero {
namespace {

constexpr double kNanosecondsPerMillisecond = 1e6;
constexpr double kNanosecondsPerSecond = 1e9;
constexpr double kBytesPerMebibyte = 1024.0 * 1024.0;

double SecondsSince1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double BitsPerByteOf(float nats) {
  return nats / std::numbers::ln2;
}

nlohmann::json ToJson(const MemoryUse& use) {
  return {{"current", use.current}, {"peak", use.peak}};
}

nlohmann::json ToJson(const MemoryCounters& memory) {
  nlohmann::json json = {{"total", ToJson(memory.total)}, {"activations_kept", memory.activations_kept}};
  for (size_t i = 0; i < kMemoryCategories; ++i) {
    json[Name(static_cast<MemoryCategory>(i))] = ToJson(memory.by_category[i]);
  }
  return json;
}

nlohmann::json ToJson(const OffloadTraffic& offload) {
  return {{"file_bytes", offload.file_bytes},
          {"direct", offload.direct},
          {"read_bytes", offload.read_bytes},
          {"written_bytes", offload.written_bytes},
          {"read_ms", static_cast<double>(offload.read_nanoseconds) / kNanosecondsPerMillisecond},
          {"written_ms", static_cast<double>(offload.written_nanoseconds) / kNanosecondsPerMillisecond},
          {"waited_ms", static_cast<double>(offload.waited_nanoseconds) / kNanosecondsPerMillisecond}};
}

std::string OffloadText(const OffloadTraffic& offload) {
  // Bytes per nanosecond are GB per second, so no factor is needed.
  const auto rate = [](int64_t bytes, int64_t nanoseconds) {
    return static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(1, nanoseconds));
  };
  return fmt::format(
      "optimizer states of rank 0: {:.1f} MiB in files, {}; read at {:.2f} GB/s, written at {:.2f} GB/s, "
      "the optimizer waited {:.1f} s\n",
      static_cast<double>(offload.file_bytes) / kBytesPerMebibyte,
      offload.direct ? "O_DIRECT" : "through the page cache",
      rate(offload.read_bytes, offload.read_nanoseconds),
      rate(offload.written_bytes, offload.written_nanoseconds),
      static_cast<double>(offload.waited_nanoseconds) / kNanosecondsPerSecond);
}

nlohmann::json ToJson(const HostMemoryCounters& host) {
  nlohmann::json json = ToJson(host.use);
  json["to_device_bytes"] = host.to_device_bytes;
  json["to_host_bytes"] = host.to_host_bytes;
  return json;
}

std::string HostMemoryText(const HostMemoryCounters& host) {
  const auto mebibytes = [](int64_t bytes) { return static_cast<double>(bytes) / kBytesPerMebibyte; };
  return fmt::format(
      "host memory of rank 0: at most {:.2f} MiB of tensors; {:.2f} MiB copied to the device, {:.2f} MiB to "
      "the host\n",
      mebibytes(host.use.peak), mebibytes(host.to_device_bytes), mebibytes(host.to_host_bytes));
}

std::string MemoryText(const MemoryCounters& memory) {
  const auto mebibytes = [](int64_t bytes) { return static_cast<double>(bytes) / kBytesPerMebibyte; };
  std::string text = "memory of rank 0 in MiB, at most:";
  for (size_t i = 0; i < kMemoryCategories; ++i) {
    const int64_t peak = memory.by_category[i].peak;
    if (peak > 0) text += fmt::format(" {} {:.2f},", Name(static_cast<MemoryCategory>(i)), mebibytes(peak));
  }
  return text + fmt::format(" together {:.2f}", mebibytes(memory.total.peak));
}

}  // namespace

Result<Progress> Progress::Open(const TrainingSettings& settings, int rank, int world) {
  Progress progress(settings, rank, world);
  if (rank == 0 && !settings.json.empty()) {
    // A resumed run appends to the file of the run that it continues. Any other run may still be refused, for
    // example because its checkpoint folder is in use, so the file is emptied only before the first line.
    progress.json_.open(settings.json, std::ios::app);
    progress.replaces_json_ = settings.checkpoint.resume.empty();
    if (!progress.json_) {
      return MakeError(ErrorKind::kInvalidArgument, "--json {}: cannot be written: {}", settings.json,
                       ErrnoText(errno));
    }
  }
  if (rank == 0 && !settings.tensorboard.empty()) {
    DYNAMICCL_TRY(progress.events_, TensorboardEvents::Open(settings.tensorboard, SecondsSince1970()));
  }
  return progress;
}

void Progress::WriteJson(const nlohmann::json& line) {
  if (!json_.is_open()) return;
  // A path that is no regular file, such as a pipe, cannot be emptied and need not be.
  std::error_code ignored;
  if (std::exchange(replaces_json_, false)) std::filesystem::resize_file(settings_.json, 0, ignored);
  json_ << line.dump() << std::endl;
}

double Progress::TokensOf(const StepReport& report) const {
  return static_cast<double>(report.samples.rows * settings_.micro_steps * settings_.model.sequence);
}

void Progress::WriteEvents(const StepReport& report) {
  const double seconds = static_cast<double>(report.nanoseconds) / kNanosecondsPerSecond;
  const double waited =
      static_cast<double>(report.wait_nanoseconds) / static_cast<double>(report.nanoseconds);
  const Scalar scalars[] = {
      {"train/loss", report.loss},
      {"train/bits_per_byte", static_cast<float>(BitsPerByteOf(report.loss))},
      {"train/gradient_norm", report.gradient_norm},
      {"train/learning_rate", static_cast<float>(report.learning_rate)},
      {"train/loss_scale", static_cast<float>(report.loss_scale)},
      {"speed/tokens_per_second", static_cast<float>(TokensOf(report) / seconds)},
      {"speed/share_waiting_for_communication", static_cast<float>(waited)},
      {"memory/peak_MiB", static_cast<float>(static_cast<double>(PeakBytes()) / kBytesPerMebibyte)}};
  events_->Write(report.step, SecondsSince1970(), scalars);
}

void Progress::Begin(int64_t parameters, const TextDataset& text, const std::string& device) {
  if (!speaks_) return;
  const int tensor = settings_.tensor_parallel;
  std::string grid = tensor == 1 ? "" : fmt::format(" ({} data x {} tensor)", world_ / tensor, tensor);
  if (settings_.shard_group > 0) grid += fmt::format(", shard groups of {}", settings_.shard_group);
  if (settings_.secondary_group > 0)
    grid += fmt::format(", secondary groups of {}", settings_.secondary_group);
  fmt::print("stage {}, {} rank(s){}, {} parameters, {}, {} on {}\n", settings_.stage, world_, grid,
             parameters, settings_.dtype, settings_.overlap ? "overlapped" : "not overlapped", device);
  fmt::print("text: {} bytes to train on, {} held out; byte frequencies alone: {:.3f} bits per byte\n",
             text.train.size(), text.held_out.size(), UnigramEntropy(text.train));
  std::fflush(stdout);
}

void Progress::Tell(const std::string& line) {
  if (!speaks_) return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void Progress::Step(const StepReport& report) {
  if (!speaks_) return;
  const double bits = BitsPerByteOf(report.loss);
  if (report.step % settings_.log_every == 0 || report.step + 1 == settings_.steps) {
    const double seconds = static_cast<double>(report.nanoseconds) / kNanosecondsPerSecond;
    fmt::print(
        "step {:6}  loss {:.4f}  {:.3f} bits/byte  {:8.0f} tokens/s  {:4.1f} % waiting  peak {:.0f} MiB\n",
        report.step, report.loss, bits, TokensOf(report) / seconds,
        100.0 * static_cast<double>(report.wait_nanoseconds) / static_cast<double>(report.nanoseconds),
        static_cast<double>(PeakBytes()) / kBytesPerMebibyte);
    std::fflush(stdout);
  }
  if (events_) WriteEvents(report);
  if (!json_.is_open()) return;
  nlohmann::json line = {
      {"step", report.step},
      {"batch", report.samples.rows * settings_.micro_steps},
      {"first_sample", report.samples.first},
      {"loss", report.loss},
      {"loss_hex", fmt::format("{:a}", report.loss)},
      {"bits_per_byte", bits},
      {"gradient_norm", report.gradient_norm},
      {"loss_scale", report.loss_scale},
      {"skipped", report.skipped},
      {"learning_rate", report.learning_rate},
      {"step_ms", static_cast<double>(report.nanoseconds) / kNanosecondsPerMillisecond},
      {"comm_wait_ms", static_cast<double>(report.wait_nanoseconds) / kNanosecondsPerMillisecond}};
  if (const std::optional<ArenaUse> use = CappedUse()) {
    line["memory_cap"] = {{"allocations", use->allocations}, {"peak_bytes", use->peak_taken}};
  }
  if (settings_.live)
    line["live"] = {{"bucket_bytes", report.live.bucket_bytes}, {"prefetch", report.live.units_ahead}};
  WriteJson(line);
}

void Progress::Evaluated(int64_t step, double bits_per_byte) {
  if (!speaks_) return;
  fmt::print("after step {}: held-out text {:.4f} bits per byte\n", step, bits_per_byte);
  std::fflush(stdout);
  if (events_) {
    const Scalar scalar{"held_out/bits_per_byte", static_cast<float>(bits_per_byte)};
    events_->Write(step, SecondsSince1970(), {&scalar, 1});
  }
  WriteJson({{"evaluated_after_step", step}, {"held_out_bits_per_byte", bits_per_byte}});
}

void Progress::End(const RunReport& report) {
  if (!speaks_) return;
  const double seconds = static_cast<double>(report.nanoseconds) / kNanosecondsPerSecond;
  fmt::print("{} steps in {:.1f} s; parameters sha256 {}\n", report.steps, seconds, report.parameters_sha256);
  fmt::print("{}\n", MemoryText(report.memory));
  if (report.host_memory.use.peak > 0) fmt::print("{}", HostMemoryText(report.host_memory));
  if (report.offload.file_bytes > 0) fmt::print("{}", OffloadText(report.offload));
  std::fflush(stdout);
  if (events_ && !events_->good()) {
    throw std::runtime_error(
        fmt::format("{}: events were lost, is the disk full?", events_->path().string()));
  }
  if (!json_.is_open()) return;
  nlohmann::json line = {{"final", true},
                         {"parameters_sha256", report.parameters_sha256},
                         {"world", world_},
                         {"tensor_parallel", settings_.tensor_parallel},
                         {"stage", settings_.stage},
                         {"micro_steps", settings_.micro_steps},
                         {"settings", settings_.Canonical()},
                         {"seconds", seconds},
                         {"memory", ToJson(report.memory)},
                         {"sent_bytes", report.sent_bytes},
                         {"peak_bytes", PeakBytes()}};
  if (report.host_memory.use.peak > 0) line["host_memory"] = ToJson(report.host_memory);
  if (report.offload.file_bytes > 0) line["offload"] = ToJson(report.offload);
  if (settings_.evaluate_at_end) line["held_out_bits_per_byte"] = report.held_out_bits_per_byte;
  WriteJson(line);
  if (!json_)
    throw std::runtime_error(fmt::format("--json {}: lines were lost, is the disk full?", settings_.json));
}

}  // namespace dynamiccl::zero
