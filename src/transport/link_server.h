// SPDX-License-Identifier: Apache-2.0
// Lets `dynamiccl link` see and change the links of a running job: a thread of rank 0's process on an
// abstract unix socket that answers processes of the same user only.
#pragma once

#include <memory>

#include "src/base/status.h"
#include "src/transport/emulated_links.h"
#include "src/transport/link_messages.h"

namespace dynamiccl {

// Starts the thread when it is the first; links that have been destroyed are forgotten. Any thread.
Status ServeLinks(const std::shared_ptr<const EmulatedLinks>& links);

// What the server does with a request; jobs without any shaped link do not count.
LinkAnswer AnswerLinkRequest(const LinkRequest& request,
                             const std::vector<std::shared_ptr<const EmulatedLinks>>& jobs);

}  // namespace dynamiccl
