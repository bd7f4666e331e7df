// SPDX-License-Identifier: Apache-2.0
// The pipeline of a step, with sub-groups ..., 7, 8, 9 over three buffers:
//
//   read 9 | update 9 | update 8 | update 7
//          | read 8   | read 7   | read 6
//          |          | write 9  | write 8
//
// Buffers start at multiples of the disk's block, so that transfers can bypass the page cache.
#include "zero_workloads/offload/file_adamw.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "src/base/clock.h"
#include "zero_workloads/device/device.h"
#include "zero_workloads/memory/memory_counters.h"

namespace dynamiccl::zero {
namespace {

// The three states are master weights, first moments and second moments.
constexpr int64_t kStates = 3;

std::string PathOf(const OptimizerOffload& offload, const char* state) {
  return offload.folder + "/" + offload.rank_name + "." + state + ".f32";
}

AdamWStates Mapped(const std::array<StateFile, 3>& files) {
  return {files[0].mapped(), files[1].mapped(), files[2].mapped()};
}

std::array<float*, 3> Data(const AdamWStates& states) {
  return {states.master.data_ptr<float>(), states.first_moment.data_ptr<float>(),
          states.second_moment.data_ptr<float>()};
}

// Runs `transfer` on a thread of its own.
std::future<int64_t> Start(std::function<void()> transfer) {
  return std::async(std::launch::async, [transfer = std::move(transfer)] {
    const int64_t begin = MonotonicNanoseconds();
    transfer();
    return MonotonicNanoseconds() - begin;
  });
}

}  // namespace

FileAdamW::Files::Files(int64_t elements, const OptimizerOffload& offload)
    : of{StateFile(PathOf(offload, "master"), elements), StateFile(PathOf(offload, "first_moment"), elements),
         StateFile(PathOf(offload, "second_moment"), elements)} {}

FileAdamW::FileAdamW(int64_t elements, const OptimizerOffload& offload, const AdamWSettings& settings)
    : FileAdamW(std::make_unique<Files>(elements, offload), elements, offload, settings) {}

FileAdamW::FileAdamW(std::unique_ptr<Files> files, int64_t elements, const OptimizerOffload& offload,
                     const AdamWSettings& settings)
    : AdamW(Mapped(files->of), settings), files_(std::move(files)), elements_(elements) {
  const int64_t blocks = std::min(offload.buffer_bytes, files_->of[0].bytes()) / kDiskBlock;
  group_elements_ = std::max<int64_t>(1, blocks) * kBlockElements;
  const CountAs category(MemoryCategory::kOffload);
  const int64_t buffers = kStates * static_cast<int64_t>(ring_.size());
  // The memory has one block more than needed, so that the first buffer can start at a multiple of a block.
  memory_ = HostBuffer((buffers * group_elements_ + kBlockElements) * 4).view(at::kFloat);
  const auto address = reinterpret_cast<uintptr_t>(memory_.data_ptr());
  int64_t begin = static_cast<int64_t>((kDiskBlock - address % kDiskBlock) % kDiskBlock) / 4;
  const auto next = [&] {
    return memory_.narrow(0, std::exchange(begin, begin + group_elements_), group_elements_);
  };
  for (Buffer& buffer : ring_) buffer.states = {next(), next(), next()};
  for (const StateFile& file : files_->of) traffic_.file_bytes += file.bytes();
  traffic_.direct = files_->of[0].direct();
}

// A transfer in progress still uses the buffers, so the destructor waits for it. A failure of this transfer
// no longer matters.
FileAdamW::~FileAdamW() {
  for (Buffer& buffer : ring_) {
    if (buffer.reading.valid()) buffer.reading.wait();
    if (buffer.writing.valid()) buffer.writing.wait();
  }
}

FileAdamW::Group FileAdamW::GroupAt(int64_t number) const {
  const int64_t begin = number * group_elements_;
  const int64_t length = std::min(group_elements_, elements_ - begin);
  return {begin, length, (length + kBlockElements - 1) / kBlockElements};
}

int64_t FileAdamW::Await(std::future<int64_t>& transfer) {
  const int64_t begin = MonotonicNanoseconds();
  const int64_t taken = transfer.get();
  traffic_.waited_nanoseconds += MonotonicNanoseconds() - begin;
  return taken;
}

void FileAdamW::StartReading(int64_t number) {
  Buffer& buffer = BufferOf(number);
  AwaitWriting(buffer);
  const Group group = GroupAt(number);
  traffic_.read_bytes += kStates * group.blocks * kDiskBlock;
  buffer.reading = Start([this, group, to = Data(buffer.states)] {
    for (size_t i = 0; i < to.size(); ++i) files_->of[i].Read(group.begin, group.blocks, to[i]);
  });
}

void FileAdamW::AwaitReading(int64_t number) {
  traffic_.read_nanoseconds += Await(BufferOf(number).reading);
}

void FileAdamW::StartWriting(int64_t number) {
  Buffer& buffer = BufferOf(number);
  const Group group = GroupAt(number);
  traffic_.written_bytes += kStates * group.blocks * kDiskBlock;
  buffer.writing = Start([this, group, from = Data(buffer.states)] {
    for (size_t i = 0; i < from.size(); ++i) files_->of[i].Write(group.begin, group.blocks, from[i]);
  });
}

void FileAdamW::AwaitWriting(Buffer& buffer) {
  if (buffer.writing.valid()) traffic_.written_nanoseconds += Await(buffer.writing);
}

void FileAdamW::Step(const at::Tensor& gradients, double learning_rate, const at::Tensor& parameters,
                     const SubGroups& groups) {
  CountStep();
  // A rank that owns no unit has no elements (--exchange layer_owner with more ranks than units).
  if (elements_ == 0) return;
  const int64_t last = (elements_ + group_elements_ - 1) / group_elements_ - 1;
  StartReading(last);
  for (int64_t number = last; number >= 0; --number) {
    if (number > 0) StartReading(number - 1);
    AwaitReading(number);
    const auto [begin, length, blocks] = GroupAt(number);
    Update(BufferOf(number).states.Slice(0, length), gradients.narrow(0, begin, length), learning_rate,
           parameters.defined() ? parameters.narrow(0, begin, length) : parameters);
    // The update must be complete before the write reads the buffer.
    FinishCompute();
    StartWriting(number);
    if (groups.updated) groups.updated(begin);
  }
  for (Buffer& buffer : ring_) AwaitWriting(buffer);
}

}  // namespace dynamiccl::zero
