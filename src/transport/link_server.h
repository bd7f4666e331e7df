// SPDX-License-Identifier: Apache-2.0
// Lets `dynamiccl link` show and change the links of a running job. A thread in the process of rank 0 answers
// on an abstract unix socket. It serves processes of the same user only.
#pragma once

#include <memory>

#include "src/base/status.h"
#include "src/transport/emulated_links.h"
#include "src/transport/link_messages.h"

namespace dynamiccl {

// Registers the links of a new communicator and starts the server thread if it does not run yet. The server
// does not keep the links alive and forgets them once they are destroyed. Any thread may call this.
Status ServeLinks(const std::shared_ptr<const EmulatedLinks>& links);

// Carries out a request on these jobs and returns the answer. It is a function of its own so that tests need
// no socket. A job without any emulated link is not counted among the jobs that the request reached.
LinkAnswer AnswerLinkRequest(const LinkRequest& request,
                             const std::vector<std::shared_ptr<const EmulatedLinks>>& jobs);

}  // namespace dynamiccl
