// SPDX-License-Identifier: Apache-2.0
// One method for each figure adds its points and judges its claims.
#include "studies/zero_paper/zero_paper_figures.h"

#include <fmt/format.h>

#include <algorithm>

namespace dynamiccl {
namespace {

constexpr const char* kTflops = "TFLOP/s a GPU";
constexpr double kBillion = 1e9;

// The configuration C1 to C5 of the paper.
const zero::PaperConfig& ConfigNamed(std::string_view name) {
  for (const zero::PaperConfig& config : zero::PaperConfigs())
    if (config.name == name) return config;
  return zero::PaperConfigs().front();
}

// Runs of the appendix's table for a figure, by the appendix's number.
std::vector<zero::PaperRun> RunsOfTable(int appendix_figure) {
  std::vector<zero::PaperRun> runs;
  for (const zero::PaperRun& run : zero::PaperRuns())
    if (run.figure == appendix_figure) runs.push_back(run);
  return runs;
}

// Writes one figure. SimulateFigure owns it on its stack and calls Write once. All figures are one class
// because they share the system, the accelerator and the adding of points.
class FigureWriter {
 public:
  FigureWriter(int number, const DescribedSystem& described, const Accelerator& accelerator)
      : described_(described), accelerator_(accelerator) {
    figure.figure = number;
  }

  Status Write();

  SimulatedFigure figure;

 private:
  Status Throughput();
  Status Superlinear();
  Status DataParallelAlone();
  Status TuringNlg();
  Status LargestModels();
  Status Memory();
  Status Configs();

  // Simulates the run, adds its throughput as a point and returns it. `config` null means the baseline.
  Result<double> Add(const zero::PaperRun& run, const zero::PaperConfig* config,
                     std::optional<double> printed = {});
  // C4, or C5 if only that fits, because the paper turns P_a+cpu on only where it helps.
  const zero::PaperConfig* ChoiceFor(const zero::PaperRun& run) const;
  // Adds the mean of several points.
  void AddMean(const std::string& what, const std::vector<double>& values, double printed);
  void Claim(bool holds, std::string text) { figure.claims.push_back({std::move(text), holds}); }

  const DescribedSystem& described_;
  const Accelerator& accelerator_;
};

const zero::PaperConfig* FigureWriter::ChoiceFor(const zero::PaperRun& run) const {
  const zero::PaperConfig& usual = ConfigNamed("C4");
  return PaperMemory(run, &usual) <= UsableMemory(accelerator_) ? &usual : &ConfigNamed("C5");
}

Result<double> FigureWriter::Add(const zero::PaperRun& run, const zero::PaperConfig* config,
                                 std::optional<double> printed) {
  DYNAMICCL_TRY(const PaperStep step, SimulatePaperRun(run, config, described_, accelerator_));
  figure.points.push_back({fmt::format("{}, {}, {} GPUs, MP {}, batch {}", run.model,
                                       config == nullptr ? "baseline" : fmt::format("ZeRO {}", config->name),
                                       run.gpus, run.tensor_parallel, run.batch),
                           step.tflops, kTflops, printed, step});
  return step.tflops;
}

void FigureWriter::AddMean(const std::string& what, const std::vector<double>& values, double printed) {
  double sum = 0;
  for (const double value : values) sum += value;
  figure.points.push_back({what, sum / static_cast<double>(values.size()), kTflops, printed, {}});
}

Status FigureWriter::Throughput() {
  figure.title = "Throughput with ZeRO and with model parallelism alone";
  std::vector<double> sustained;
  double inside = 0, across = 0, speedup = 0, zero_tflops = 0;
  bool always_faster = true;
  for (const zero::PaperRun& run : RunsOfTable(2)) {
    std::optional<double> printed;
    if (run.zero && run.model == "100B") printed = 38;
    if (!run.zero && run.model == "40B") printed = 5;
    DYNAMICCL_TRY(const double tflops, Add(run, run.zero ? ChoiceFor(run) : nullptr, printed));
    if (run.zero) zero_tflops = tflops;
    if (!run.zero) speedup = std::max(speedup, zero_tflops / tflops);
    always_faster = always_faster && (run.zero || zero_tflops > tflops);
    if (!run.zero && run.model == "8B") inside = tflops;
    if (!run.zero && run.model == "40B") across = tflops;
    const bool from_8_to_100 = run.zero && run.model != "1.5B" && run.hidden * run.layers <= 125 * 8192;
    if (from_8_to_100) sustained.push_back(tflops);
  }
  // The paper states 15 PFLOP/s on 400 GPUs, which is 37.5 TFLOP/s per GPU.
  AddMean("mean of ZeRO from 8B to 100B", sustained, 37.5);
  Claim(across < inside / 3,
        fmt::format("model parallelism across nodes collapses: {:.1f} TFLOP/s at 8B in a node, "
                    "{:.1f} at 40B over two",
                    inside, across));
  figure.points.push_back({"ZeRO over the baseline, at most", speedup, "times", 10, {}});
  Claim(always_faster, "ZeRO is faster than the baseline at every size");
  return {};
}

Status FigureWriter::Superlinear() {
  figure.title = "60B parameters on 64 to 400 GPUs";
  std::vector<double> totals;
  std::vector<int> gpus;
  for (const zero::PaperRun& run : RunsOfTable(3)) {
    DYNAMICCL_TRY(const double tflops, Add(run, &ConfigNamed("C4")));
    totals.push_back(tflops * run.gpus);
    gpus.push_back(run.gpus);
  }
  for (size_t i = 1; i < totals.size(); ++i) {
    const double faster = totals[i] / totals[i - 1], more = static_cast<double>(gpus[i]) / gpus[i - 1];
    Claim(faster > more,
          fmt::format("superlinear from {} to {} GPUs: {:.3f} times as fast on {:.3f} times as many",
                      gpus[i - 1], gpus[i], faster, more));
  }
  const double faster = totals.back() / totals.front(),
               more = static_cast<double>(gpus.back()) / gpus.front();
  Claim(faster > more,
        fmt::format("superlinear over the whole range: {:.2f} times as fast on {:.2f} times as many", faster,
                    more));
  return {};
}

Status FigureWriter::DataParallelAlone() {
  figure.title = "Data parallelism alone on 128 GPUs";
  std::vector<double> with_zero;
  double slowest_baseline = 0;
  bool all_fit = true;
  for (const zero::PaperRun& run : RunsOfTable(7)) {
    DYNAMICCL_TRY(const double tflops, Add(run, run.zero ? &ConfigNamed("C4") : nullptr));
    if (run.zero) with_zero.push_back(tflops);
    if (!run.zero) slowest_baseline = tflops;
    all_fit = all_fit && figure.points.back().step->fits;
  }
  AddMean("mean with ZeRO", with_zero, 40);
  figure.points[figure.points.size() - 2].printed = 20;
  const zero::PaperRun largest = RunsOfTable(7)[8], baseline = RunsOfTable(7)[10];
  const double with = LargestModel(largest, &ConfigNamed("C4"), accelerator_) / kBillion;
  const double without = LargestModel(baseline, nullptr, accelerator_) / kBillion;
  figure.points.push_back({"largest model with ZeRO, batch 2", with, "B parameters", 13, {}});
  figure.points.push_back({"largest model without, batch 1", without, "B parameters", 1.4, {}});
  Claim(all_fit, "every model that the paper trained fits");
  Claim(with > 5 * without,
        fmt::format("data parallelism alone trains {:.1f}B with ZeRO, {:.2f}B without", with, without));
  Claim(slowest_baseline < 20,
        fmt::format("the baseline's largest model stays below 20 TFLOP/s: {:.1f}", slowest_baseline));
  return {};
}

// Tables 5 to 10 do not list this run. Its announcement (microsoft.com/research, February 2020) has 78
// layers, hidden 4256, 28 heads, model parallelism 4, and batch 512 on 256 GPUs.
Status FigureWriter::TuringNlg() {
  figure.title = "Turing-NLG, 17B parameters (the figure shows its perplexity, which is not simulated)";
  return Add({5, "17B", true, 256, 4, 78, 4256, 28, 8, 512}, &ConfigNamed("C4"), 41.4).map([](double) {});
}

Status FigureWriter::LargestModels() {
  figure.title = "Largest model of each configuration: 400 GPUs, MP 16, batch 16, hidden 8192";
  const std::pair<const char*, double> printed[] = {
      {"C1", 40}, {"C2", 60}, {"C3", 50}, {"C4", 140}, {"C5", 150}};
  std::vector<double> sizes;
  for (const auto& [name, size] : printed) {
    const zero::PaperRun run{4, "", true, 400, 16, 0, 8192, 64, 16, 400};
    sizes.push_back(LargestModel(run, &ConfigNamed(name), accelerator_) / kBillion);
    figure.points.push_back({name, sizes.back(), "B parameters", size, {}});
  }
  Claim(sizes[0] < sizes[1] && sizes[1] < sizes[3] && sizes[3] < sizes[4], "C1 < C2 < C4 < C5");
  return {};
}

Status FigureWriter::Memory() {
  figure.title = "Memory of a GPU (the paper's bars are of PyTorch's cache and carry no figures)";
  const std::vector<zero::PaperRun> runs = RunsOfTable(5);
  const auto gb = [&](const zero::PaperRun& run, const char* name) {
    const double bytes = PaperMemory(run, &ConfigNamed(name)) / kBillion;
    figure.points.push_back(
        {fmt::format("{}, ZeRO {}, batch {}", run.model, name, run.batch), bytes, "GB", {}, {}});
    return bytes;
  };
  const double c1 = gb(runs[0], "C1"), c2 = gb(runs[0], "C2");
  gb(runs[0], "C3");
  const double small = gb(runs[0], "C4") - gb(runs[0], "C5");
  const double large = gb(runs[5], "C4") - gb(runs[5], "C5");
  Claim(c2 < c1, fmt::format("40B: C2 takes less than C1, by {:.1f} GB", c1 - c2));
  Claim(large > 2 * small,
        fmt::format("C5 saves little at 40B ({:.1f} GB) and more at 100B ({:.1f} GB)", small, large));
  return {};
}

Status FigureWriter::Configs() {
  figure.title = "Throughput of each configuration";
  // The rows of Table 9, which lists C3 after C5 as Table 7 does.
  const char* const names[] = {"C1", "C2", "C4", "C5", "C3", "C5"};
  const std::vector<zero::PaperRun> runs = RunsOfTable(6);
  std::vector<double> tflops;
  for (size_t i = 0; i < runs.size(); ++i) {
    DYNAMICCL_TRY(const double one, Add(runs[i], &ConfigNamed(names[i])));
    tflops.push_back(one);
  }
  const bool rising = tflops[0] < tflops[1] && tflops[1] < tflops[4] && tflops[4] < tflops[2];
  Claim(rising, fmt::format("60B: faster with less memory, C1 {:.1f}, C2 {:.1f}, C3 {:.1f}, C4 {:.1f}",
                            tflops[0], tflops[1], tflops[4], tflops[2]));
  Claim(tflops[3] < tflops[2],
        fmt::format("60B: C5 is slower than C4: {:.2f} and {:.2f}", tflops[3], tflops[2]));
  const double usable = UsableMemory(accelerator_) / kBillion;
  const double c4 = PaperMemory(runs[5], &ConfigNamed("C4")) / kBillion;
  const double c5 = PaperMemory(runs[5], &ConfigNamed("C5")) / kBillion;
  Claim(c5 <= usable && c4 > usable,
        fmt::format("170B needs C5: {:.1f} GB with it, {:.1f} with C4, of {:.1f} usable", c5, c4, usable));
  return {};
}

Status FigureWriter::Write() {
  switch (figure.figure) {
    case 2:
      return Throughput();
    case 3:
      return Superlinear();
    case 4:
      return DataParallelAlone();
    case 5:
      return TuringNlg();
    case 6:
      return LargestModels();
    case 7:
      return Memory();
    case 8:
      return Configs();
    default:
      return WithHint(MakeError(ErrorKind::kInvalidArgument, "the ZeRO paper has no figure {} to simulate",
                                figure.figure),
                      "fig2 to fig8, or all");
  }
}

std::string Share(int64_t part, int64_t whole) {
  return fmt::format("{:.1f} %", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string StepColumns(const PaperStep& step) {
  return fmt::format("  {:>8.2f} {:>8} {:>8} {:>6.1f}{}", static_cast<double>(step.step_ns) * 1e-9,
                     Share(step.exposed_tensor_ns, step.step_ns), Share(step.exposed_data_ns, step.step_ns),
                     step.memory_bytes / kBillion, step.fits ? "" : " too much");
}

}  // namespace

std::optional<double> PaperPoint::Error() const {
  if (!printed) return {};
  return (value - *printed) / *printed;
}

Result<SimulatedFigure> SimulateFigure(int figure, const DescribedSystem& described,
                                       const Accelerator& accelerator) {
  FigureWriter writer(figure, described, accelerator);
  DYNAMICCL_CHECK_OK(writer.Write());
  return std::move(writer.figure);
}

std::string FormatFigure(const SimulatedFigure& figure) {
  std::string text = fmt::format("Figure {}: {}\n", figure.figure, figure.title);
  text += fmt::format("  {:<46} {:>7} {:<14} {:>7} {:>8}  {:>8} {:>8} {:>8} {:>6}\n", "", "ours", "",
                      "printed", "error", "step s", "MP wait", "DP wait", "GB");
  for (const PaperPoint& point : figure.points) {
    const std::string printed = point.printed ? fmt::format("{:g}", *point.printed) : "-";
    const std::string error = point.printed ? fmt::format("{:+.0f} %", 100 * *point.Error()) : "-";
    text += fmt::format("  {:<46} {:>7.2f} {:<14} {:>7} {:>8}{}\n", point.what, point.value, point.unit,
                        printed, error, point.step ? StepColumns(*point.step) : "");
  }
  for (const PaperClaim& claim : figure.claims)
    text += fmt::format("  {} {}\n", claim.holds ? "holds:       " : "does not hold:", claim.text);
  return text;
}

}  // namespace dynamiccl
