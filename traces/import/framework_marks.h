// SPDX-License-Identifier: Apache-2.0
// Recognises the training framework of a job by names that only this framework writes into profiles and
// dumps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dynamiccl {

// A framework that a file shows, and the name that shows it.
struct FrameworkMark {
  std::string framework;  // "PyTorch DDP"
  std::string seen;       // "DistributedDataParallel.forward"

  friend bool operator==(const FrameworkMark&, const FrameworkMark&) = default;
};

// Collects the marks of one file: for each framework the first name that shows it. One importer owns it.
class FrameworkMarks {
 public:
  // Notes the name of an event, of a node or of a frame of Python, such as
  // "deepspeed/runtime/engine.py(2000): forward".
  void NoteName(std::string_view name);
  // Notes a Python file that the program was in: "/opt/lib/torch/distributed/fsdp/api.py".
  void NoteFile(std::string_view path);
  // Notes the description of a process group.
  void NoteGroup(std::string_view description);

  const std::vector<FrameworkMark>& marks() const { return marks_; }

 private:
  void Add(std::string_view framework, std::string_view seen);

  std::vector<FrameworkMark> marks_;
};

}  // namespace dynamiccl
