// SPDX-License-Identifier: Apache-2.0
#include "tests/soak/process_use.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

namespace dynamiccl::testing {
namespace {

double KibOf(const std::string& status, const char* field) {
  const size_t at = status.find(field);
  return at == std::string::npos ? 0 : std::stod(status.substr(at + std::string(field).size()));
}

}  // namespace

ProcessSample LookAt(pid_t process, double seconds) {
  const std::string folder = "/proc/" + std::to_string(process);
  std::ifstream status_file(folder + "/status");
  const std::string status(std::istreambuf_iterator<char>(status_file), {});
  ProcessSample sample{.seconds = seconds};
  sample.anon_kib = KibOf(status, "RssAnon:");
  sample.shared_kib = KibOf(status, "RssShmem:");
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/fd", gone)) {
    (void)entry;
    ++sample.descriptors;
  }
  std::ifstream maps(folder + "/maps");
  for (std::string line; std::getline(maps, line);) sample.shared_maps += line.find("memfd:") != line.npos;
  return sample;
}

double SlopeOf(const std::vector<ProcessSample>& samples) {
  const std::span<const ProcessSample> late = std::span(samples).subspan(samples.size() / 2);
  if (late.size() < 4) return 0;
  double time = 0;
  double memory = 0;
  for (const ProcessSample& sample : late) {
    time += sample.seconds / static_cast<double>(late.size());
    memory += sample.anon_kib / static_cast<double>(late.size());
  }
  double covariance = 0;
  double variance = 0;
  for (const ProcessSample& sample : late) {
    covariance += (sample.seconds - time) * (sample.anon_kib - memory);
    variance += (sample.seconds - time) * (sample.seconds - time);
  }
  return variance > 0 ? 60 * covariance / variance : 0;
}

}  // namespace dynamiccl::testing
