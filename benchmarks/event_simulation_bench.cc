// SPDX-License-Identifier: Apache-2.0
// Measures how fast the event-driven simulator is: collectives per second, and the time for a step of ZeRO-3
// of a 70B model on 10,000 ranks. In one case all ranks are equal, in the other all differ.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "src/simulator/event_simulation.h"
#include "tools/simulate/described_system.h"
#include "tools/simulate/framework_step.h"

namespace dynamiccl {
namespace {

using Json = nlohmann::ordered_json;

// Result of one case.
struct Row {
  std::string what;
  uint64_t collectives = 0;
  // Seconds to build the generator's list and the program from it.
  double build_s = 0;
  double simulate_s = 0;
  // Simulated duration of a step.
  double step_ms = 0;
};

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Result<FrameworkJob> Job(const char* model, WorldShape world) {
  const DescribedSystem& described = DescribedSystems().back();
  FrameworkStep step{.world = world};
  DYNAMICCL_TRY(step.model, ParseModel(model));
  step.settings = {{"param_dtype", "bfloat16"}, {"reduce_dtype", "float32"}};
  step.accelerator = *FindAccelerator("h100");
  step.network_gbps = described.network_gbps;
  return JobOfFramework(step, SystemOf(described));
}

// Simulates the case `repeats` times. With a jitter above 0, all ranks differ.
Result<Row> Time(const char* what, const char* model, WorldShape world, double jitter, int repeats) {
  const auto start = std::chrono::steady_clock::now();
  DYNAMICCL_TRY(FrameworkJob job, Job(model, world));
  job.job.compute_jitter = jitter;
  Row row{.what = what, .build_s = SecondsSince(start)};
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) {
    DYNAMICCL_TRY(const SimulationResult result, Simulate(job.job));
    row.collectives += result.collectives;
    row.step_ms = static_cast<double>(result.finished_ns) * 1e-6;
  }
  row.simulate_s = SecondsSince(begin);
  return row;
}

// A Llama model with 70 billion parameters.
constexpr const char* k70B = "llama:layers=80,hidden=8192,feed_forward=28672,key_width=1024";

Result<std::vector<Row>> TimeAll() {
  std::vector<Row> rows;
  DYNAMICCL_TRY(Row small, Time("64 equal ranks, 1000 layers, 20 steps", "gpt:layers=1000,hidden=256",
                                {64, 1, 0}, 0, 20));
  rows.push_back(std::move(small));
  DYNAMICCL_TRY(Row apart,
                Time("16 ranks apart, 1000 layers", "gpt:layers=1000,hidden=256", {16, 1, 0}, 0.1, 1));
  rows.push_back(std::move(apart));
  DYNAMICCL_TRY(Row large, Time("70B ZeRO-3, 10000 equal ranks", k70B, {10000, 1, 0}, 0, 1));
  rows.push_back(std::move(large));
  DYNAMICCL_TRY(Row jittered, Time("70B ZeRO-3, 10000 ranks apart", k70B, {10000, 1, 0}, 0.1, 1));
  rows.push_back(std::move(jittered));
  return rows;
}

void Print(const std::vector<Row>& rows, bool json) {
  Json list = Json::array();
  for (const Row& row : rows) {
    const double rate = static_cast<double>(row.collectives) / row.simulate_s;
    list.push_back({{"what", row.what},
                    {"collectives", row.collectives},
                    {"build_s", row.build_s},
                    {"simulate_s", row.simulate_s},
                    {"collectives_per_s", rate},
                    {"step_ms", row.step_ms}});
    if (!json)
      fmt::print("{:<40} {:>8} collectives, {:.3f} s + {:.3f} s, {:.0f} a second, step {:.1f} ms\n", row.what,
                 row.collectives, row.build_s, row.simulate_s, rate, row.step_ms);
  }
  if (json) fmt::print("{}\n", Json{{"schema", 1}, {"rows", list}}.dump(2));
}

}  // namespace
}  // namespace dynamiccl

int main(int argc, char** argv) {
  CLI::App app("How fast the event-driven simulator is");
  bool json = false;
  app.add_flag("--json", json, "Write JSON");
  CLI11_PARSE(app, argc, argv);
  const auto rows = dynamiccl::TimeAll();
  if (!rows) {
    fmt::print(stderr, "{}", dynamiccl::Describe(rows.error()));
    return 1;
  }
  dynamiccl::Print(*rows, json);
  return 0;
}
