// SPDX-License-Identifier: Apache-2.0
// MergeTraces gets outlines: the sections' descriptions with only the records that it reads or changes. A
// pass over the sources replaces the sections' descriptions, and these records, by those of the merged
// outlines.
#include "traces/format/merged_records.h"

#include <algorithm>
#include <set>
#include <span>

#include "traces/format/trace_merge.h"

namespace dynamiccl {
namespace {

bool IsCommunicator(const TraceRecord& record) {
  return record.kind == static_cast<uint16_t>(RecordKind::kCommunicator);
}

// Keeps the description of each section, and the records that CountNodesByHost reads: the communicators, and
// one answer of a tuner for each of them.
class OutlineSink final : public RecordSink {
 public:
  Status BeginSection(const TraceSection& description, uint64_t /*records*/) override {
    outline.sections.push_back(description);
    asked_.clear();
    return {};
  }
  Status Take(std::span<const TraceRecord> records) override {
    for (const TraceRecord& record : records) {
      if (IsCommunicator(record)) asked_.erase(record.communicator);
      const bool is_first_answer = record.kind == static_cast<uint16_t>(RecordKind::kDecision) &&
                                   asked_.insert(record.communicator).second;
      if (IsCommunicator(record) || is_first_answer) outline.sections.back().records.push_back(record);
    }
    return {};
  }
  Status EndSection(uint64_t /*missing*/) override { return {}; }

  Trace outline;

 private:
  std::set<uint32_t> asked_;
};

}  // namespace

// Passes on some sections of one source, described as in the outline. It ends the pass with an error after
// the last of them, so that the rest of the source is not read.
class MergedRecords::RunSink final : public RecordSink {
 public:
  // Passes the sections of `merged` from `begin` to before `end`. They follow each other in their source,
  // too.
  RunSink(const MergedRecords& merged, size_t begin, size_t end, RecordSink& sink)
      : merged_(merged), next_(begin), end_(end), first_(merged.places_[begin].section), sink_(sink) {}

  Status BeginSection(const TraceSection& /*description*/, uint64_t records) override {
    if (next_ == end_) return MakeError(ErrorKind::kUnavailable, "all that was wanted is read");
    passes_ = begun_++ >= first_;
    if (!passes_) return {};
    section_ = merged_.outline_.sections[next_];
    communicators_ = std::move(section_.records);
    section_.records.clear();
    std::erase_if(communicators_, [](const TraceRecord& record) { return !IsCommunicator(record); });
    described_ = 0;
    return sink_.BeginSection(section_, records);
  }
  Status Take(std::span<const TraceRecord> records) override {
    if (!passes_) return {};
    block_.assign(records.begin(), records.end());
    for (TraceRecord& record : block_) {
      if (IsCommunicator(record) && described_ < communicators_.size()) record = communicators_[described_++];
    }
    return sink_.Take(block_);
  }
  Status EndSection(uint64_t missing) override {
    if (!passes_) return {};
    const Status ended = sink_.EndSection(missing);
    if (ended) ++next_;
    return ended;
  }
  bool complete() const { return next_ == end_; }

 private:
  const MergedRecords& merged_;
  size_t next_;  // the outline's section that is being passed on, or comes next
  const size_t end_;
  const size_t first_;  // index in the source of the first section
  RecordSink& sink_;
  size_t begun_ = 0;
  bool passes_ = false;
  TraceSection section_;
  std::vector<TraceRecord> communicators_;  // as the merged trace describes them
  size_t described_ = 0;
  std::vector<TraceRecord> block_;
};

Result<std::unique_ptr<const MergedRecords>> MergedRecords::Of(
    std::vector<std::unique_ptr<const RecordSource>> sources) {
  auto merged = std::make_unique<MergedRecords>();
  std::vector<Trace> outlines;
  for (size_t source = 0; source < sources.size(); ++source) {
    OutlineSink sink;
    DYNAMICCL_CHECK_OK(sources[source]->Pass(sink));
    for (size_t i = 0; i < sink.outline.sections.size(); ++i) merged->places_.push_back({source, i});
    outlines.push_back(std::move(sink.outline));
  }
  // MergeTraces sorts in the same way, so the places get the order of the merged sections.
  std::ranges::stable_sort(merged->places_, IsMergedBefore, [&](const Place& place) -> const TraceSection& {
    return outlines[place.source].sections[place.section];
  });
  DYNAMICCL_TRY(merged->outline_, MergeTraces(std::move(outlines)));
  merged->sources_ = std::move(sources);
  return merged;
}

Status MergedRecords::Pass(RecordSink& sink) const {
  for (size_t begin = 0, end = 1; begin < places_.size(); begin = end++) {
    while (end < places_.size() && places_[end].source == places_[begin].source &&
           places_[end].section == places_[end - 1].section + 1)
      ++end;
    RunSink run(*this, begin, end, sink);
    const Status status = sources_[places_[begin].source]->Pass(run);
    if (run.complete()) continue;
    if (!status) return status;
    return MakeError(ErrorKind::kUnavailable, "a file lost sections while it was read");
  }
  return {};
}

Result<std::unique_ptr<const RecordSource>> RecordsOfFiles(const std::vector<std::string>& paths) {
  if (paths.size() == 1) return std::make_unique<const FileRecords>(paths.front());
  std::vector<std::unique_ptr<const RecordSource>> files;
  for (const std::string& path : paths) files.push_back(std::make_unique<const FileRecords>(path));
  return MergedRecords::Of(std::move(files));
}

}  // namespace dynamiccl
