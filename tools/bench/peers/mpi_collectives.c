/* SPDX-License-Identifier: Apache-2.0
 * One rank of an MPI library, which `dynamiccl bench --against` times beside hostccl. It is built at run time
 * with the library's own compiler wrapper. Every rank connects to the Unix socket named on the command line
 * and executes the commands that it reads there, one on each line (docs/benchmarking.md). Between commands it
 * sleeps in read(), so that it takes no core from the other libraries.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

static int rank, n_ranks;
static FILE *orders, *answers;

static struct {
  char collective[32];
  MPI_Datatype type;
  MPI_Op op;
  int count; /* the API's argument */
  char *send, *receive;
} call;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int issue(void) {
  const char* c = call.collective;
  if (!strcmp(c, "all_reduce"))
    return MPI_Allreduce(call.send, call.receive, call.count, call.type, call.op, MPI_COMM_WORLD);
  if (!strcmp(c, "all_gather"))
    return MPI_Allgather(call.send, call.count, call.type, call.receive, call.count, call.type,
                         MPI_COMM_WORLD);
  if (!strcmp(c, "reduce_scatter"))
    return MPI_Reduce_scatter_block(call.send, call.receive, call.count, call.type, call.op, MPI_COMM_WORLD);
  if (!strcmp(c, "broadcast")) return MPI_Bcast(call.receive, call.count, call.type, 0, MPI_COMM_WORLD);
  if (!strcmp(c, "reduce"))
    return MPI_Reduce(call.send, call.receive, call.count, call.type, call.op, 0, MPI_COMM_WORLD);
  if (!strcmp(c, "alltoall"))
    return MPI_Alltoall(call.send, call.count, call.type, call.receive, call.count, call.type,
                        MPI_COMM_WORLD);
  if (!strcmp(c, "gather"))
    return MPI_Gather(call.send, call.count, call.type, call.receive, call.count, call.type, 0,
                      MPI_COMM_WORLD);
  if (!strcmp(c, "scatter"))
    return MPI_Scatter(call.send, call.count, call.type, call.receive, call.count, call.type, 0,
                       MPI_COMM_WORLD);
  if (!strcmp(c, "sendrecv"))
    return MPI_Sendrecv(call.send, call.count, call.type, (rank + 1) % n_ranks, 0, call.receive, call.count,
                        call.type, (rank + n_ranks - 1) % n_ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return MPI_ERR_UNSUPPORTED_OPERATION;
}

static int known_collective(const char* name) {
  static const char* const names[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
                                      "alltoall",   "gather",     "scatter",        "sendrecv"};
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); ++i)
    if (!strcmp(name, names[i])) return 1;
  return 0;
}

/* Returns the MPI type of this name. It is MPI_DATATYPE_NULL for floating types of 16 and 8 bits, which MPI
 * lacks. */
static MPI_Datatype type_named(const char* name) {
  if (!strcmp(name, "float")) return MPI_FLOAT;
  if (!strcmp(name, "double")) return MPI_DOUBLE;
  if (!strcmp(name, "int8")) return MPI_INT8_T;
  if (!strcmp(name, "uint8")) return MPI_UINT8_T;
  if (!strcmp(name, "int32")) return MPI_INT32_T;
  if (!strcmp(name, "uint32")) return MPI_UINT32_T;
  if (!strcmp(name, "int64")) return MPI_INT64_T;
  if (!strcmp(name, "uint64")) return MPI_UINT64_T;
  return MPI_DATATYPE_NULL;
}

static MPI_Op op_named(const char* name) {
  if (!strcmp(name, "sum")) return MPI_SUM;
  if (!strcmp(name, "prod")) return MPI_PROD;
  if (!strcmp(name, "max")) return MPI_MAX;
  if (!strcmp(name, "min")) return MPI_MIN;
  return MPI_OP_NULL;
}

static void answer(const char* text) {
  fprintf(answers, "%s\n", text);
  fflush(answers);
}

/* Allocates a buffer and fills it with ones, so that its pages are touched, as those of hostccl's rank are.
 */
static char* fresh_buffer(char* old, size_t bytes) {
  char* buffer = NULL;
  free(old);
  if (posix_memalign((void**)&buffer, PAGE, bytes + PAGE) != 0) return NULL;
  memset(buffer, 1, bytes + PAGE);
  return buffer;
}

/* Executes the command "setup COLLECTIVE TYPE OP COUNT SEND_BYTES RECEIVE_BYTES". */
static void set_up(const char* line) {
  char type[32], op[32];
  unsigned long long count, send_bytes, receive_bytes;
  if (sscanf(line, "setup %31s %31s %31s %llu %llu %llu", call.collective, type, op, &count, &send_bytes,
             &receive_bytes) != 6)
    return answer("error cannot read this setup");
  call.type = type_named(type);
  call.op = op_named(op);
  call.count = (int)count;
  if (!known_collective(call.collective)) return answer("error MPI has no such collective");
  if (call.type == MPI_DATATYPE_NULL) return answer("error MPI has no such type");
  if (call.op == MPI_OP_NULL) return answer("error MPI has no such operator");
  if (count > 2147483647ull) return answer("error count beyond an int");
  call.send = fresh_buffer(call.send, send_bytes);
  call.receive = fresh_buffer(call.receive, receive_bytes);
  answer(call.send && call.receive ? "ok" : "error no memory");
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Returns the percentile `share` (0 to 1) of n ascending values, by the nearest-rank method. */
static double percentile(const double* values, int n, double share) {
  const int at = (int)(share * n + 0.999999);
  return n == 0 ? 0 : values[at < 1 ? 0 : at > n ? n - 1 : at - 1];
}

/* Executes the command "time ITERATIONS WARMUPS SINGLES". */
static void time_calls(const char* line) {
  int iterations, warmups, singles;
  if (sscanf(line, "time %d %d %d", &iterations, &warmups, &singles) != 3)
    return answer("error cannot read this time");
  for (int i = 0; i < warmups; ++i) issue();
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = now_us();
  for (int i = 0; i < iterations; ++i) issue();
  double mean = (now_us() - begin) / iterations, slowest;
  MPI_Allreduce(&mean, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  double* times = calloc((size_t)singles + 1, 2 * sizeof(double));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < singles; ++i) {
    const double start = now_us();
    issue();
    times[i] = now_us() - start;
  }
  double* worst = times + singles + 1;
  MPI_Allreduce(times, worst, singles, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  qsort(worst, (size_t)singles, sizeof(double), ascending);
  char text[128];
  snprintf(text, sizeof(text), "times %.4f %.4f %.4f", slowest, percentile(worst, singles, 0.5),
           percentile(worst, singles, 0.99));
  free(times);
  answer(text);
}

static int connect_to(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr*)&address, sizeof(address)) != 0) return -1;
  return fd;
}

static void bind_to_core(const char* word) {
  const int core = strcmp(word, "core") == 0 ? rank % (int)sysconf(_SC_NPROCESSORS_ONLN) : -1;
  cpu_set_t set;
  if (core < 0) return;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: mpi_collectives SOCKET core|none\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  bind_to_core(argv[2]);
  const int fd = connect_to(argv[1]);
  if (fd < 0) {
    perror(argv[1]);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  orders = fdopen(fd, "r");
  answers = fdopen(dup(fd), "w");
  char text[64], line[256];
  snprintf(text, sizeof(text), "hello %d", rank);
  answer(text);
  while (fgets(line, sizeof(line), orders) != NULL && strncmp(line, "quit", 4) != 0) {
    if (strncmp(line, "setup ", 6) == 0)
      set_up(line);
    else if (strncmp(line, "time ", 5) == 0)
      time_calls(line);
    else
      answer("error unknown word");
  }
  MPI_Finalize();
  return 0;
}
