// SPDX-License-Identifier: Apache-2.0
// Starts and joins the thread of a background job.
#include "src/hostccl/background_job.h"

#include <utility>

namespace dynamiccl::hostccl {

BackgroundJob::~BackgroundJob() {
  if (thread_.joinable()) thread_.join();
}

void BackgroundJob::Start(std::function<ncclResult_t()> work, std::function<void(ncclResult_t)> report) {
  thread_ = std::thread([this, work = std::move(work), report = std::move(report)]() mutable {
    const ncclResult_t result = work();
    work = nullptr;
    report(result);
    done_.store(true, std::memory_order_release);
    done_.notify_all();
  });
}

}  // namespace dynamiccl::hostccl
