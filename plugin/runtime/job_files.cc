// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/job_files.h"

#include <cstdlib>
#include <utility>

#include "plugin/border/first_time.h"
#include "plugin/border/no_throw.h"
#include "plugin/border/real_nccl.h"
#include "src/base/log.h"
#include "src/base/own_file.h"
#include "src/base/settings.h"
#include "src/base/whole_file.h"
#include "src/decision/saved_decisions.h"
#include "src/decision/site_store/site_store_file.h"

namespace dynamiccl {
namespace {

// Records per thread without DYNAMICCL_TRACE_RECORDS: 16 MiB at 64 bytes a record.
constexpr uint64_t kDefaultRecords = 262144;

}  // namespace

bool JobFiles::Open(int rank, MetricsSource (*metrics)()) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(opened_, true)) return false;
  rank_ = settings_.rank >= 0 ? settings_.rank : rank;
  if (!settings_.trace_path.empty()) OpenTrace();
  if (!settings_.metrics_path.empty()) KeepMetricsFile(ExpandPath(settings_.metrics_path, rank_), metrics);
  return true;
}

void JobFiles::OpenTrace() {
  const auto records = IntegerSetting(Setting::kTraceRecords);
  RecorderOptions options;
  options.path = ExpandPath(settings_.trace_path, rank_);
  options.records_per_thread = records && *records > 0 ? static_cast<uint64_t>(*records) : kDefaultRecords;
  options.rank = rank_;
  options.world = settings_.world;
  MakeFolderOf(options.path);
  options.library = (RunsOverHostccl() ? "hostccl " : "NCCL ") + NcclVersionName();
  auto recorder = Recorder::Open(options);
  if (!recorder) {
    Log(LogLevel::kWarn, "nothing is recorded: {}", recorder.error().message);
    return;
  }
  static Recorder* at_exit = nullptr;
  at_exit = recorder->release();
  recorder_.store(at_exit, std::memory_order_release);
  ::atexit([] { at_exit->Close(); });
}

void JobFiles::SaveDecisions() noexcept {
  if (!settings_.reproducible || settings_.decisions_path.empty() || choices_.UsesSavedDecisions() ||
      rank_ != 0)
    return;
  NoThrow([this] {
    SavedDecisions saved(choices_.policy_hash());
    for (const auto& [key, choice] : computed_.All()) saved.Set(key, choice.config);
    if (!ReplaceFile(settings_.decisions_path, saved.Text()) && FirstTime("decisions"))
      Log(LogLevel::kWarn, "this run's choices cannot be saved: {} cannot be written",
          settings_.decisions_path);
  });
}

std::shared_ptr<const SiteStore> JobFiles::site_store() {
  const std::lock_guard lock(mutex_);
  if (site_store_ || settings_.site_store_path.empty()) return site_store_;
  auto store = ReadSiteStore(settings_.site_store_path);
  if (!store) Log(LogLevel::kWarn, "nothing of earlier runs is used: {}", store.error().message);
  site_store_ = std::make_shared<SiteStore>(store ? std::move(*store) : SiteStore());
  return site_store_;
}

}  // namespace dynamiccl
