// SPDX-License-Identifier: Apache-2.0
#include "tools/report/section_scan.h"

#include <algorithm>
#include <optional>

#include "tools/report/recognised_labels.h"

namespace dynamiccl {
namespace {

RecordKind KindOf(const TraceRecord& record) {
  return static_cast<RecordKind>(record.kind);
}

// The calls on one communicator. The communicator's description may come after the calls.
struct CallsOnCommunicator {
  uint64_t calls = 0;
  int64_t first_ns = 0;
  int64_t last_ns = 0;
  uint64_t first_place = 0;  // among all calls of the section
  uint64_t last_place = 0;
};

class ScanSink final : public RecordSink {
 public:
  explicit ScanSink(size_t described) : described_(described) {}

  Status BeginSection(const TraceSection& description, uint64_t /*records*/) override {
    scans_.push_back({.description = description});
    return {};
  }
  Status Take(std::span<const TraceRecord> records) override {
    if (scans_.size() > described_) return {};
    SectionScan& scan = scans_.back();
    for (const TraceRecord& record : records) {
      if (KindOf(record) == RecordKind::kCommunicator)
        scan.communicators[record.communicator] = CommunicatorOf(record);
      scan.decisions |= KindOf(record) == RecordKind::kDecision;
      if (scans_.size() == 1) TakeFact(record, scan);
    }
    return {};
  }
  Status EndSection(uint64_t /*missing*/) override {
    if (scans_.size() == 1) AddUpCalls(scans_.front());
    return {};
  }
  std::vector<SectionScan> scans() && { return std::move(scans_); }

 private:
  void TakeFact(const TraceRecord& record, SectionScan& scan);
  void TakeCall(const TraceRecord& record, SectionScan& scan);
  void AddUpCalls(SectionScan& scan) const;

  size_t described_;
  std::vector<SectionScan> scans_;
  // The calls of the first section, by communicator.
  std::map<uint32_t, CallsOnCommunicator> calls_;
  uint64_t places_ = 0;
};

// Reads the calls of the first sections, and then ends the pass with an error that the caller ignores.
class CallSink final : public RecordSink {
 public:
  using Consumer = std::function<void(size_t section, StreamedCall& call)>;
  CallSink(const std::vector<SectionScan>& sections, size_t count, const Consumer& consumer, Answers answers)
      : sections_(sections),
        count_(std::min(count, sections.size())),
        consumer_(consumer),
        joins_(answers == Answers::kJoined) {}

  Status BeginSection(const TraceSection& /*description*/, uint64_t /*records*/) override {
    if (begun_ == count_) return MakeError(ErrorKind::kUnavailable, "all that was wanted is read");
    const size_t section = begun_++;
    stream_.emplace(sections_[section].communicators, joins_ && sections_[section].decisions,
                    [this, section](StreamedCall& call) { consumer_(section, call); });
    return {};
  }
  Status Take(std::span<const TraceRecord> records) override {
    for (const TraceRecord& record : records) stream_->Take(record);
    return {};
  }
  Status EndSection(uint64_t /*missing*/) override {
    stream_->Finish();
    ++ended_;
    return {};
  }
  bool complete() const { return ended_ == count_; }

 private:
  const std::vector<SectionScan>& sections_;
  size_t count_;
  const Consumer& consumer_;
  bool joins_;
  std::optional<CallStream> stream_;
  size_t begun_ = 0;
  size_t ended_ = 0;
};

void ScanSink::TakeFact(const TraceRecord& record, SectionScan& scan) {
  switch (KindOf(record)) {
    case RecordKind::kCollective:
    case RecordKind::kPointToPoint:
      return TakeCall(record, scan);
    case RecordKind::kDecision:
      scan.recognised = scan.recognised || DecisionOf(record).recognised();
      return;
    case RecordKind::kStep: {
      const StepView mark = StepOf(record);
      scan.steps.Take(mark.step, mark.marked_ns);
      if (mark.stage != ZeroStage::kUnknown) scan.marked_stages.insert(mark.stage);
      return;
    }
    case RecordKind::kMemory:
      return scan.memory.Take(MemoryOf(record));
    case RecordKind::kSamples:
      scan.samples.push_back(SamplesOf(record));
      return;
    case RecordKind::kWaitedShare:
      scan.waited_shares.push_back(WaitedShareOf(record));
      return;
    default:
      return;
  }
}

void ScanSink::TakeCall(const TraceRecord& record, SectionScan& scan) {
  scan.labelled = scan.labelled || IsLabelledCall(record);
  scan.kinds.Take({record.communicator, static_cast<Collective>(record.collective), record.bytes},
                  record.duration_source == 0 ? -1 : static_cast<int64_t>(record.duration_ns));
  CallsOnCommunicator& calls = calls_[record.communicator];
  if (calls.calls++ == 0) {
    calls.first_ns = record.issued_ns;
    calls.first_place = places_;
  }
  calls.last_ns = record.issued_ns;
  calls.last_place = places_++;
}

void ScanSink::AddUpCalls(SectionScan& scan) const {
  uint64_t first_place = UINT64_MAX, last_place = 0;
  for (const auto& [number, calls] : calls_) {
    if (!scan.communicators.contains(number)) continue;
    scan.calls += calls.calls;
    if (calls.first_place < first_place) scan.first_ns = calls.first_ns;
    if (calls.last_place >= last_place) scan.last_ns = calls.last_ns;
    first_place = std::min(first_place, calls.first_place);
    last_place = std::max(last_place, calls.last_place);
  }
}

}  // namespace

void StepMarks::Take(uint64_t step, int64_t marked_ns) {
  if (firsts_.empty() || firsts_.back().first < step) {
    firsts_.emplace_back(step, marked_ns);
    return;
  }
  const auto place = std::ranges::lower_bound(firsts_, step, {}, &std::pair<uint64_t, int64_t>::first);
  if (place->first != step) firsts_.emplace(place, step, marked_ns);
}

void SeenMemory::Take(const MemoryView& memory) {
  least_free_bytes = total_bytes == 0 ? memory.free_bytes : std::min(least_free_bytes, memory.free_bytes);
  total_bytes = memory.total_bytes;
}

Result<std::vector<SectionScan>> ScanSections(const RecordSource& source, size_t described) {
  ScanSink sink(described);
  DYNAMICCL_CHECK_OK(source.Pass(sink));
  return std::move(sink).scans();
}

Status PassCalls(const RecordSource& source, const std::vector<SectionScan>& sections, size_t count,
                 const std::function<void(size_t section, StreamedCall& call)>& consumer, Answers answers) {
  CallSink sink(sections, count, consumer, answers);
  const Status status = source.Pass(sink);
  return sink.complete() ? Status{} : status;
}

}  // namespace dynamiccl
