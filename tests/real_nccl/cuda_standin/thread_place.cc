// SPDX-License-Identifier: Apache-2.0
// Starts each thread at the place of the thread that creates it. NCCL initialises grouped and non-blocking
// communicators on threads of its own. These threads must know the node of their rank.
#include <dlfcn.h>
#include <pthread.h>

#include <memory>

#include "tests/real_nccl/cuda_standin/place.h"

namespace cuda_standin {
namespace {

struct Start {
  void* (*function)(void*);
  void* argument;
  Place place;
};

void* RunAtPlace(void* start) {
  const std::unique_ptr<Start> own(static_cast<Start*>(start));
  ThisPlace() = own->place;
  return own->function(own->argument);
}

}  // namespace
}  // namespace cuda_standin

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*function)(void*),
                                                                     void* argument) {
  static const auto real =
      reinterpret_cast<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>(
          dlsym(RTLD_NEXT, "pthread_create"));
  auto start = std::make_unique<cuda_standin::Start>(
      cuda_standin::Start{function, argument, cuda_standin::ThisPlace()});
  const int error = real(thread, attributes, &cuda_standin::RunAtPlace, start.get());
  if (error == 0) start.release();
  return error;
}
