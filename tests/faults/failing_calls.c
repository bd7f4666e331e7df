// SPDX-License-Identifier: Apache-2.0
// Preloaded behind libdynamiccl.so. The n-th call that libdynamiccl.so makes to one function of the C library
// fails, as if memory, descriptors or disk space had run out. Calls by the program and by other libraries do
// not fail.
//   FAILING_CALL=malloc | fallocate | mmap | send | open | socket | pthread_create
//   FAILING_FROM=n   the number of the failing call, from 1; with FAILING_ALL=1 all later calls fail too
//   FAILING_HIT=path a file that is created when a call fails
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

extern void* __libc_malloc(size_t bytes);
extern void* __libc_calloc(size_t count, size_t bytes);
extern void* __libc_realloc(void* old, size_t bytes);
extern void* __libc_memalign(size_t alignment, size_t bytes);

static const char* failing;
static const char* hit;
static long from;
static int all;
static atomic_long made;
static uintptr_t begin_of_object;
static uintptr_t end_of_object;

static int FindObject(struct dl_phdr_info* info, size_t size, void* unused) {
  (void)size;
  (void)unused;
  if (strstr(info->dlpi_name, "/libdynamiccl.so") == NULL) return 0;
  begin_of_object = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const uintptr_t end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    if (info->dlpi_phdr[i].p_type == PT_LOAD && end > end_of_object) end_of_object = end;
  }
  return 1;
}

__attribute__((constructor)) static void Begin(void) {
  const char* const number = getenv("FAILING_FROM");
  from = number == NULL ? 0 : atol(number);
  all = getenv("FAILING_ALL") != NULL;
  hit = getenv("FAILING_HIT");
  dl_iterate_phdr(FindObject, NULL);
  failing = getenv("FAILING_CALL");
}

// Returns whether this call, made by `caller`, must fail.
static int Fails(const char* name, void* caller) {
  const uintptr_t place = (uintptr_t)caller;
  if (failing == NULL || place < begin_of_object || place >= end_of_object || strcmp(failing, name) != 0)
    return 0;
  const long number = atomic_fetch_add(&made, 1) + 1;
  if (from == 0 || number < from || (number > from && !all)) return 0;
  const long file = syscall(SYS_openat, AT_FDCWD, hit, O_CREAT | O_WRONLY, 0600);
  if (file >= 0) syscall(SYS_close, file);
  return 1;
}
#define FAIL_WITH(name, code, value)              \
  if (Fails(name, __builtin_return_address(0))) { \
    errno = code;                                 \
    return value;                                 \
  }

SHOWN void* malloc(size_t bytes) {
  FAIL_WITH("malloc", ENOMEM, NULL)
  return __libc_malloc(bytes);
}
SHOWN void* calloc(size_t count, size_t bytes) {
  FAIL_WITH("malloc", ENOMEM, NULL)
  return __libc_calloc(count, bytes);
}
SHOWN void* realloc(void* old, size_t bytes) {
  FAIL_WITH("malloc", ENOMEM, NULL)
  return __libc_realloc(old, bytes);
}
SHOWN void* aligned_alloc(size_t alignment, size_t bytes) {
  FAIL_WITH("malloc", ENOMEM, NULL)
  return __libc_memalign(alignment, bytes);
}
SHOWN int posix_fallocate(int fd, off_t offset, off_t length) {
  if (Fails("fallocate", __builtin_return_address(0))) return ENOSPC;
  return syscall(SYS_fallocate, fd, 0, offset, length) == 0 ? 0 : errno;
}
SHOWN int ftruncate(int fd, off_t length) {
  FAIL_WITH("fallocate", ENOSPC, -1)
  return (int)syscall(SYS_ftruncate, fd, length);
}
SHOWN int pipe2(int ends[2], int flags) {
  FAIL_WITH("socket", EMFILE, -1)
  return (int)syscall(SYS_pipe2, ends, flags);
}
SHOWN void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  FAIL_WITH("mmap", ENOMEM, MAP_FAILED)
  return (void*)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
}
SHOWN ssize_t send(int socket, const void* data, size_t bytes, int flags) {
  FAIL_WITH("send", ECONNRESET, -1)
  return syscall(SYS_sendto, socket, data, bytes, flags, NULL, 0);
}
SHOWN int socket(int domain, int type, int protocol) {
  FAIL_WITH("socket", EMFILE, -1)
  return (int)syscall(SYS_socket, domain, type, protocol);
}
SHOWN int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = va_arg(rest, int);
  va_end(rest);
  FAIL_WITH("open", EMFILE, -1)
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
static void* Next(const char* name) {
  return dlsym(RTLD_NEXT, name);
}
SHOWN FILE* fopen(const char* path, const char* mode) {
  FAIL_WITH("open", EMFILE, NULL)
  return ((FILE * (*)(const char*, const char*)) Next("fopen"))(path, mode);
}
SHOWN FILE* fopen64(const char* path, const char* mode) {
  FAIL_WITH("open", EMFILE, NULL)
  return ((FILE * (*)(const char*, const char*)) Next("fopen64"))(path, mode);
}
SHOWN int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                         void* with) {
  if (Fails("pthread_create", __builtin_return_address(0))) return EAGAIN;
  typedef int (*Create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static _Atomic(Create) next;
  Create create = atomic_load(&next);
  if (create == NULL) atomic_store(&next, create = (Create)dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, run, with);
}
