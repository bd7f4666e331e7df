// SPDX-License-Identifier: Apache-2.0
// Mailboxes, and the directory in which threads of this process find each other's. See thread_mailbox.h.
#include "src/transport/thread_mailbox.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace dynamiccl {
namespace {

// The mailboxes of this process by name. It is never destroyed, because threads may outlive static
// destructors. Lock order: the directory's mutex before a mailbox's.
struct Directory {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<ThreadMailbox>> by_name;
};

Directory& ThisProcess() {
  static auto* const directory = new Directory;
  return *directory;
}

}  // namespace

std::shared_ptr<ThreadMailbox> ThreadMailbox::Open(const std::string& name) {
  std::shared_ptr<ThreadMailbox> mailbox(new ThreadMailbox(name));
  Directory& directory = ThisProcess();
  const std::lock_guard lock(directory.mutex);
  directory.by_name[name] = mailbox;
  return mailbox;
}

std::shared_ptr<ThreadMailbox> ThreadMailbox::Find(const std::string& name) {
  Directory& directory = ThisProcess();
  const std::lock_guard lock(directory.mutex);
  const auto found = directory.by_name.find(name);
  return found == directory.by_name.end() ? nullptr : found->second.lock();
}

ThreadMailbox::~ThreadMailbox() {
  Directory& directory = ThisProcess();
  const std::lock_guard lock(directory.mutex);
  directory.by_name.erase(name_);
}

void ThreadMailbox::Put(int from, std::span<const std::byte> message) {
  const std::lock_guard lock(mutex_);
  inbox_[from].emplace_back(message.begin(), message.end());
  arrival_.notify_all();
}

Result<ThreadMailbox::Message> ThreadMailbox::Take(int from, const ThreadMailbox& sender, Deadline deadline) {
  // The wait uses the system clock, because this compiler's ThreadSanitizer does not support waiting by the
  // steady clock.
  const auto until = std::chrono::system_clock::now() + std::chrono::milliseconds(deadline.RemainingMs());
  std::unique_lock lock(mutex_);
  std::deque<Message>& messages = inbox_[from];
  const auto ready = [&] { return !messages.empty() || sender.left() || left(); };
  while (!arrival_.wait_until(lock, std::min(until, CancelScope::NextLook()), ready)) {
    if (CancelScope::Cancelled()) return CancelScope::GivenUp();
    if (std::chrono::system_clock::now() >= until) break;
  }
  if (!messages.empty()) {
    Message message = std::move(messages.front());
    messages.pop_front();
    return message;
  }
  if (left()) return MakeError(ErrorKind::kPeerFailed, "this rank closed its communicator");
  if (sender.left()) return MakeError(ErrorKind::kPeerFailed, "rank {} closed its communicator", from);
  return MakeError(ErrorKind::kTimeout, "no answer in time from rank {}, a thread of this process", from);
}

void ThreadMailbox::Leave() {
  if (left_.exchange(true, std::memory_order_acq_rel)) return;
  // A thread that waits in Take waits on its own mailbox, so all mailboxes are notified. The directory's lock
  // is released first.
  std::vector<std::shared_ptr<ThreadMailbox>> all;
  {
    Directory& directory = ThisProcess();
    const std::lock_guard lock(directory.mutex);
    for (const auto& [name, mailbox] : directory.by_name) all.push_back(mailbox.lock());
  }
  for (const auto& mailbox : all) {
    if (mailbox == nullptr) continue;
    const std::lock_guard lock(mailbox->mutex_);
    mailbox->arrival_.notify_all();
  }
}

}  // namespace dynamiccl
