// SPDX-License-Identifier: Apache-2.0
#include "tools/canary/cell_runner.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "src/base/host_memory.h"
#include "src/base/sha256.h"
#include "tools/canary/cell_json.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 5;

// A core is busy with a run of this many ranks.
constexpr int kRanksPerCore = 32;
// 128 ranks that connect at init take 13 GB of memory.
constexpr uint64_t kBytesPerRank = 128 << 20;

// Returns how many ranks this machine can run at a time.
int RanksAtOnce(int cores) {
  const MemorySizes memory = HostMemory();
  const auto by_cores = static_cast<uint64_t>(cores) * kRanksPerCore;
  return static_cast<int>(memory.total_bytes == 0 ? by_cores
                                                  : std::min(by_cores, memory.free_bytes / kBytesPerRank));
}

// Identifies a library by its path, size and time of change. Hashing its content of 300 MB would take too
// long.
std::string StateOf(const fs::path& file) {
  std::error_code none;
  return fmt::format("{} {} {}", file.string(), fs::file_size(file, none),
                     fs::last_write_time(file, none).time_since_epoch().count());
}

std::string HashOfObjects(const std::string& folder) {
  std::string all;
  for (const char* name : {"libcuda_standin.so", "libnccl-net-described.so", "libtable_tuner.so",
                           "libwitness_profiler.so", "real_nccl_driver"}) {
    const auto content = ReadTextFile(folder + "/" + name);
    all += HexDigestOf(content ? *content : "");
  }
  return HexDigestOf(all);
}

// Reads the result of a run from the cache. Returns nothing if the file is missing, damaged or of another
// version.
std::optional<Cell> ReadKept(const std::string& path) {
  const auto json = ReadJsonFile(path);
  if (!json || json->value("schema", 0) != kVersion || !json->contains("cell")) return std::nullopt;
  if (json->value("sha256", "") != HexDigestOf(json->at("cell").dump())) return std::nullopt;
  return CellFromJson(json->at("cell"));
}

// Writes the result of a run into the cache. A failure is ignored: the release is then run again next time.
void Keep(const std::string& path, const Cell& cell) {
  std::error_code none;
  fs::create_directories(fs::path(path).parent_path(), none);
  const Json json = KeptCellJson(cell);
  [[maybe_unused]] const Status ignored =
      WriteJsonFile(path, {{"schema", kVersion}, {"sha256", HexDigestOf(json.dump())}, {"cell", json}});
}

}  // namespace

CellRunner::CellRunner(const Installation& installation, bool keeps, int cores)
    : installation_(installation),
      keeps_(keeps),
      cores_(cores > 0 ? cores : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))),
      ranks_at_once_(RanksAtOnce(cores_)),
      objects_hash_(HashOfObjects(installation.real_nccl_dir)) {}

std::string CellRunner::PathOf(const CellRequest& request) const {
  std::string text = fmt::format("{} {} {} {} {}\n", kVersion, objects_hash_,
                                 StateOf(request.library_folder + "/libnccl.so.2"),
                                 fmt::join(request.ranks_of_nodes, ","), fmt::join(request.bytes, ","));
  text += fmt::format("{} {}\n", static_cast<int>(request.connecting), fmt::join(request.gpus, ","));
  text += fmt::format("stack {}\n", request.stack_kib);
  for (const Collective one : request.collectives) text += fmt::format("{}\n", Name(one));
  for (const auto& [name, value] : request.environment) text += fmt::format("{}={}\n", name, value);
  for (const DescribedMachine& machine : request.machines) text += machine.stand_in + machine.topology;
  return (CacheFolder() / "canary" / (HexDigestOf(text) + ".json")).string();
}

void CellRunner::Begin(const std::vector<CellRequest>& requests) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const CellRequest& request : requests) {
    std::future<Result<Cell>>& run = begun_[PathOf(request)];
    if (!run.valid())
      run = std::async(std::launch::async, [this, request] { return RunOrReadKept(request); });
  }
}

Result<Cell> CellRunner::Run(const CellRequest& request) const {
  std::future<Result<Cell>> begun;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = begun_.find(PathOf(request)); found != begun_.end())
      begun = std::move(begun_.extract(found).mapped());
  }
  return begun.valid() ? begun.get() : RunOrReadKept(request);
}

Result<Cell> CellRunner::RunOrReadKept(const CellRequest& request) const {
  if (keeps_) {
    if (auto kept = ReadKept(PathOf(request))) return std::move(*kept);
  }
  return RunAgain(request);
}

Result<Cell> CellRunner::RunAgain(const CellRequest& request) const {
  const int most = std::clamp(ranks_at_once_ / std::max(1, request.ranks()), 1, cores_);
  {
    std::unique_lock<std::mutex> lock(mutex_);
    ended_.wait(lock, [&] { return running_ < most; });
    ++running_;
  }
  Result<Cell> cell = RunCell(installation_, request);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    --running_;
  }
  ended_.notify_all();
  if (cell && keeps_ && cell->end != CellEnd::kHung && cell->end != CellEnd::kNotRun)
    Keep(PathOf(request), *cell);
  return cell;
}

}  // namespace dynamiccl
