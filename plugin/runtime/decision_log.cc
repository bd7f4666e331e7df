// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/decision_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "src/base/log.h"
#include "src/base/own_file.h"

namespace dynamiccl {
namespace {

// Returns for example "gradient_reduce/backward/3/high", without the parts at the end that are unknown.
std::string RecognisedText(const DecisionKey& question) {
  std::string text(Name(question.role));
  const bool knows_memory = question.memory != MemoryPressure::kUnknown;
  if (knows_memory || question.phase != Phase::kUnknown || question.stage != ZeroStage::kUnknown)
    text += fmt::format("/{}/{}", Name(question.phase), Name(question.stage));
  if (knows_memory) text += fmt::format("/{}", Name(question.memory));
  return text;
}

}  // namespace

std::string FormatDecision(const LoggedDecision& logged) {
  const DecisionKey& question = logged.question;
  return fmt::format("{:016x} {} {} {} {} {} {} v{}\n", logged.communicator, logged.call_number,
                     Name(question.collective), question.bytes, RecognisedText(question),
                     Describe(logged.decision.config), Name(logged.decision.decided_by),
                     logged.table_version);
}

// A path that could not be opened is remembered too, so that the failure is logged only once.
std::shared_ptr<DecisionLog> DecisionLog::At(const std::string& path) {
  static std::mutex mutex;
  static auto* logs = new std::map<std::string, std::shared_ptr<DecisionLog>>();
  const std::lock_guard lock(mutex);
  const auto [found, created] = logs->try_emplace(path);
  if (!created) return found->second;
  MakeFolderOf(path);
  if (auto file = CreateOwnFile(path, O_WRONLY | O_APPEND)) {
    found->second.reset(new DecisionLog(std::move(file->fd)));
  } else {
    Log(LogLevel::kWarn, "no decision log: {}", file.error().message);
  }
  return found->second;
}

void DecisionLog::Append(const LoggedDecision& logged) const {
  const std::string line = FormatDecision(logged);
  [[maybe_unused]] const ssize_t written = ::write(fd_.get(), line.data(), line.size());
}

}  // namespace dynamiccl
