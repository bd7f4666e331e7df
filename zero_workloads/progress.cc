// SPDX-License-Identifier: Apache-2.0
#include "zero_workloads/progress.h"

#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <numbers>
#include <stdexcept>

#include "zero_workloads/device.h"

namespace dynamiccl::zero {
namespace {

constexpr double kNanosecondsPerMillisecond = 1e6;
constexpr double kNanosecondsPerSecond = 1e9;
constexpr double kBytesPerMebibyte = 1024.0 * 1024.0;

double BitsPerByteOf(float nats) {
  return nats / std::numbers::ln2;
}

}  // namespace

Result<Progress> Progress::Open(const TrainingSettings& settings, int rank, int world) {
  Progress progress(settings, rank, world);
  if (rank == 0 && !settings.json.empty()) {
    progress.json_.open(settings.json);
    if (!progress.json_) {
      return MakeError(ErrorKind::kInvalidArgument, "--json {}: cannot be written: {}", settings.json,
                       ErrnoText(errno));
    }
  }
  return progress;
}

void Progress::Begin(int64_t parameters, const TextDataset& text, const std::string& device) {
  if (!speaks_) return;
  fmt::print("stage {}, {} rank(s), {} parameters, {}, {} on {}\n", settings_.stage, world_, parameters,
             settings_.dtype, settings_.overlap ? "overlapped" : "not overlapped", device);
  fmt::print("text: {} bytes to train on, {} held out; byte frequencies alone: {:.3f} bits per byte\n",
             text.train.size(), text.held_out.size(), UnigramEntropy(text.train));
  std::fflush(stdout);
}

void Progress::Step(const StepReport& report) {
  if (!speaks_) return;
  const double bits = BitsPerByteOf(report.loss);
  if (report.step % settings_.log_every == 0 || report.step + 1 == settings_.steps) {
    const double seconds = static_cast<double>(report.nanoseconds) / kNanosecondsPerSecond;
    fmt::print(
        "step {:6}  loss {:.4f}  {:.3f} bits/byte  {:8.0f} tokens/s  {:4.1f} % waiting  peak {:.0f} MiB\n",
        report.step, report.loss, bits,
        static_cast<double>(settings_.batch * settings_.micro_steps * settings_.model.sequence) / seconds,
        100.0 * static_cast<double>(report.wait_nanoseconds) / static_cast<double>(report.nanoseconds),
        static_cast<double>(PeakBytes()) / kBytesPerMebibyte);
    std::fflush(stdout);
  }
  if (!json_.is_open()) return;
  const nlohmann::json line = {
      {"step", report.step},
      {"loss", report.loss},
      {"loss_hex", fmt::format("{:a}", report.loss)},
      {"bits_per_byte", bits},
      {"gradient_norm", report.gradient_norm},
      {"learning_rate", report.learning_rate},
      {"step_ms", static_cast<double>(report.nanoseconds) / kNanosecondsPerMillisecond},
      {"comm_wait_ms", static_cast<double>(report.wait_nanoseconds) / kNanosecondsPerMillisecond}};
  json_ << line.dump() << std::endl;
}

void Progress::Evaluated(int64_t step, double bits_per_byte) {
  if (!speaks_) return;
  fmt::print("after step {}: held-out text {:.4f} bits per byte\n", step, bits_per_byte);
  std::fflush(stdout);
  if (json_.is_open()) {
    json_ << nlohmann::json{{"evaluated_after_step", step}, {"held_out_bits_per_byte", bits_per_byte}}.dump()
          << std::endl;
  }
}

void Progress::End(const RunReport& report) {
  if (!speaks_) return;
  const double seconds = static_cast<double>(report.nanoseconds) / kNanosecondsPerSecond;
  fmt::print("{} steps in {:.1f} s; parameters sha256 {}\n", settings_.steps, seconds,
             report.parameters_sha256);
  std::fflush(stdout);
  if (!json_.is_open()) return;
  nlohmann::json line = {{"final", true},
                         {"parameters_sha256", report.parameters_sha256},
                         {"world", world_},
                         {"stage", settings_.stage},
                         {"micro_steps", settings_.micro_steps},
                         {"settings", settings_.Canonical()},
                         {"seconds", seconds},
                         {"peak_bytes", PeakBytes()}};
  if (settings_.evaluate_at_end) line["held_out_bits_per_byte"] = report.held_out_bits_per_byte;
  json_ << line.dump() << std::endl;
  if (!json_)
    throw std::runtime_error(fmt::format("--json {}: lines were lost, is the disk full?", settings_.json));
}

}  // namespace dynamiccl::zero
