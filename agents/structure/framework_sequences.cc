// SPDX-License-Identifier: Apache-2.0
// Draws job shapes until a generator accepts one, generates a run, and splits its operations by communicator.
#include "agents/structure/framework_sequences.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>

#include "agents/structure/invented_jobs.h"
#include "agents/structure/random_draws.h"

namespace dynamiccl::agents {
namespace {

// Model families that traces/generators can build at any size.
constexpr std::string_view kFamilies[] = {"gpt", "bert", "llama", "resnet"};

enum class Trained : uint8_t { kAnyModel, kTransformers, kGptOnly };

// Facts about a framework that random jobs need and that its generator's settings do not state.
struct FrameworkFacts {
  std::string_view name;   // name of the generator
  std::string_view group;  // FrameworkGroup::name
  Trained models = Trained::kAnyModel;
  bool tensor_parallel = false;
  bool shard_groups = false;  // whether WorldShape::shard may be set
};

constexpr FrameworkFacts kFrameworks[] = {
    {.name = "ddp", .group = "pytorch-ddp"},
    {.name = "zero-redundancy", .group = "pytorch-ddp"},
    {.name = "fsdp2", .group = "pytorch-fsdp2", .shard_groups = true},
    {.name = "deepspeed1", .group = "deepspeed"},
    {.name = "deepspeed2", .group = "deepspeed"},
    {.name = "deepspeed3", .group = "deepspeed", .shard_groups = true},
    {.name = "megatron", .group = "megatron", .models = Trained::kTransformers, .tensor_parallel = true},
    {.name = "colossalai", .group = "colossalai"},
    {.name = "llmc", .group = "llmc", .models = Trained::kGptOnly},
    {.name = "dynamiccl-zero", .group = "dynamiccl", .shard_groups = true},
    {.name = "zero-paper", .group = "dynamiccl"},
};

const FrameworkFacts& FactsOf(std::string_view framework) {
  for (const FrameworkFacts& facts : kFrameworks) {
    if (facts.name == framework) return facts;
  }
  throw std::logic_error(fmt::format("framework '{}' is not in the table", framework));
}

// A job has at least this many calls on its busiest communicator, so that a network sees more than the job's
// first steps.
constexpr size_t kLeastCalls = 256;
// Maximum number of calls in a sequence; the rest is cut off.
constexpr size_t kMaxCalls = 2048;
// Maximum number of steps of a job, for jobs with very few calls in a step.
constexpr int kMaxSteps = 64;
// Random settings may contradict each other. In that case they are drawn again, at most this number of times.
constexpr int kAttempts = 200;

// Returns `value` rounded down to a multiple of `of`, but at least `of`.
int64_t Multiple(double value, int64_t of) {
  return std::max(static_cast<int64_t>(value) / of, int64_t{1}) * of;
}

std::string RandomModel(std::string_view family, std::mt19937_64& random) {
  if (family == "resnet") {
    // The depths for which ResNets are defined.
    constexpr int kDepths[] = {18, 34, 50, 101, 152};
    return fmt::format("resnet:depth={},width={},classes={}", kDepths[random() % std::size(kDepths)],
                       Multiple(LogUniform(random, 4, 8), 8), Uniform(random, 10, 1000));
  }
  const int64_t hidden = Multiple(LogUniform(random, 6, 13), 64);
  const int64_t vocabulary = Coin(random, 3) ? 256 : Multiple(LogUniform(random, 9, 17), 64);
  std::string text = fmt::format("{}:layers={},hidden={},vocabulary={},sequence={}", family,
                                 static_cast<int64_t>(LogUniform(random, 0.6, 5.1)), hidden, vocabulary,
                                 int64_t{1} << Uniform(random, 6, 12));
  if (family == "llama")
    text +=
        fmt::format(",feed_forward={},key_width={}", Multiple(static_cast<double>(hidden) * 2.7, 64),
                    Multiple(static_cast<double>(hidden) / static_cast<double>(Uniform(random, 1, 4)), 64));
  if (family == "gpt") text += Coin(random, 2) ? ",tied_head=true" : ",head_bias=true";
  return text;
}

// Draws a plausible value of an integer setting. The setting's name alone selects the rule, because
// frameworks use similar names for the same things. Many rules scale with `elements`, the number of the
// model's elements.
int64_t RandomInteger(const GeneratorSetting& row, int64_t elements, std::mt19937_64& random) {
  const std::string_view name = row.name;
  const auto model = static_cast<double>(elements);
  const auto part = [&](double low, double high) {
    return std::max(static_cast<int64_t>(model / LogUniform(random, low, high)), row.least);
  };
  if (name.find("steps") != std::string_view::npos) return Coin(random, 3) ? Uniform(random, 2, 4) : 1;
  if (name == "micro_batch") return Uniform(random, 1, 8);
  if (name == "bucket_bytes") return 4 * part(-1, 6);
  if (name == "first_bucket_bytes") return 0;
  if (name == "max_live_parameters" || name == "max_reuse_distance") return part(-1, 4);
  // Few programs set these; their frameworks' default is 1.
  constexpr std::string_view kSeldomSet[] = {"backward_depth", "forward_prefetch", "prefetch_units",
                                             "unit_blocks"};
  if (std::ranges::count(kSeldomSet, name) > 0) return 1;
  if (name == "param_persistence_threshold") return Coin(random, 3) ? 0 : Uniform(random, 1, 1 << 17);
  // All other integer settings are numbers of elements in a bucket or group.
  return part(-1, 6);
}

// Returns the choices from which jobs draw. Jobs do not draw the trainer's exchange=all_reduce: DeepSpeed's
// stages 1 and 2 already show such calls. They do not draw halves of blocks: these are only units of another
// size, as other models have them.
std::string_view DrawnChoices(const GeneratorSetting& row) {
  if (row.choices == "block,half_block,parameter") return "block,parameter";
  return row.choices == "collective,owner,all_reduce,layer_owner" ? "collective,owner" : row.choices;
}

std::string RandomText(const GeneratorSetting& row, int64_t elements, std::mt19937_64& random) {
  constexpr std::array kTypes = {"float32", "bfloat16", "float16"};
  switch (row.kind) {
    case SettingKind::kFlag:
      return Coin(random, 2) ? "true" : "false";
    case SettingKind::kDataType:
      return kTypes[random() % kTypes.size()];
    case SettingKind::kInteger:
      return fmt::format("{}", RandomInteger(row, elements, random));
    case SettingKind::kChoice:
      break;
  }
  std::string_view rest = DrawnChoices(row);
  const auto count = std::count(rest.begin(), rest.end(), ',') + 1;
  for (int64_t skip = Uniform(random, 0, count - 1); skip > 0; --skip) rest.remove_prefix(rest.find(',') + 1);
  return std::string(rest.substr(0, rest.find(',')));
}

const FrameworkGenerator& GeneratorOf(std::string_view framework) {
  for (const FrameworkGenerator* generator : AllFrameworkGenerators()) {
    if (generator->name() == framework) return *generator;
  }
  throw std::logic_error("no such framework");
}

// Integers and choices are always drawn, because jobs in practice do not keep a framework's defaults for
// them. Flags and data types keep the framework's default half of the time.
SettingTexts RandomSettings(std::string_view framework, int64_t elements, std::mt19937_64& random) {
  SettingTexts texts;
  for (const GeneratorSetting& row : GeneratorOf(framework).settings()) {
    const bool own =
        (row.kind == SettingKind::kFlag || row.kind == SettingKind::kDataType) && Coin(random, 2);
    if (!own) texts[std::string(row.name)] = RandomText(row, elements, random);
  }
  return texts;
}

// Parses a text that RandomModel made.
ModelShape ModelOf(const std::string& text) {
  auto model = ParseModel(text);
  if (!model) throw std::logic_error(model.error().message);
  return std::move(*model);
}

WorldShape RandomWorld(const FrameworkFacts& framework, std::mt19937_64& random) {
  WorldShape world;
  world.data = static_cast<int>(Coin(random, 4) ? Uniform(random, 2, 17) : 1 << Uniform(random, 1, 7));
  if (framework.tensor_parallel) world.tensor = 1 << Uniform(random, 0, 3);
  if (framework.shard_groups && world.data % 4 == 0 && Coin(random, 3)) world.shard = world.data / 2;
  return world;
}

// True for communicators whose calls reveal the job's stage.
bool TellsStage(Axis axis, const WorldShape& world) {
  return axis == Axis::kWorld || axis == Axis::kData || axis == world.ShardAxis();
}

// Collects the calls of one kind of communicator (axis) of a run.
class AxisWriter {
 public:
  AxisWriter(const GeneratedRun& run, Axis axis, const std::string& name) : run_(run), axis_(axis) {
    sequence_.name = fmt::format("{} {}", name, Name(axis));
    sequence_.framework = run.framework;
  }
  void Add(const std::vector<WireOperation>& operations) {
    for (const WireOperation& operation : operations) {
      if (operation.axis == axis_) Add(operation);
    }
  }
  void BeginStep() { sequence_.step_begins.push_back(sequence_.calls.size()); }
  CallSequence Take() {
    // A communicator with nothing but scalars does not reveal the stage. An example is Megatron's
    // communicator of all ranks.
    const bool of_the_model =
        std::any_of(sequence_.calls.begin(), sequence_.calls.end(), [](const IssuedCall& issued) {
          return issued.labelled_role != Role::kScalar && issued.labelled_role != Role::kOther;
        });
    for (IssuedCall& issued : sequence_.calls) {
      if (!of_the_model) issued.labelled_stage = ZeroStage::kUnknown;
    }
    return std::move(sequence_);
  }

 private:
  void Add(const WireOperation& operation) {
    IssuedCall issued;
    issued.call = {.communicator = static_cast<uint64_t>(axis_) + 1,
                   .call_number = next_group_,
                   .bytes = operation.Bytes(),
                   .collective = operation.collective,
                   .data_type = operation.data_type,
                   .op = operation.op,
                   .index_in_group = operation.index_in_group,
                   .group_size = operation.group_size,
                   .n_ranks = run_.world.RanksOn(axis_)};
    issued.root_or_peer = operation.root;
    issued.labelled_role = operation.role;
    issued.labelled_phase = operation.phase;
    issued.labelled_stage = TellsStage(axis_, run_.world) ? run_.stage : ZeroStage::kUnknown;
    if (operation.index_in_group + 1 == operation.group_size) ++next_group_;
    sequence_.calls.push_back(issued);
  }

  const GeneratedRun& run_;
  const Axis axis_;
  CallSequence sequence_;
  uint64_t next_group_ = 0;
};

// Returns the number of steps for which the busiest communicator has at least kLeastCalls calls.
int StepsFor(const GeneratedRun& probe, int steps) {
  size_t calls = 0;
  for (const auto& step : probe.steps) calls = std::max(calls, step.size());
  const size_t wanted = kLeastCalls / std::max<size_t>(calls, 1) + 1;
  return std::clamp(static_cast<int>(wanted), steps, kMaxSteps);
}

void Cut(CallSequence& sequence) {
  if (sequence.calls.size() > kMaxCalls) sequence.calls.resize(kMaxCalls);
  std::erase_if(sequence.step_begins, [&](size_t begin) { return begin >= sequence.calls.size(); });
}

}  // namespace

std::span<const FrameworkGroup> AllFrameworkGroups() {
  static const std::vector<FrameworkGroup> groups = [] {
    std::vector<FrameworkGroup> made;
    for (const FrameworkFacts& facts : kFrameworks) {
      if (made.empty() || made.back().name != facts.group) made.push_back({facts.group, {}});
      made.back().generators.push_back(facts.name);
    }
    return made;
  }();
  return groups;
}

const FrameworkGroup* GroupOf(std::string_view framework) {
  for (const FrameworkGroup& group : AllFrameworkGroups()) {
    if (std::find(group.generators.begin(), group.generators.end(), framework) != group.generators.end())
      return &group;
  }
  return nullptr;
}

std::span<const std::string_view> AllFamilies() {
  return kFamilies;
}

bool Trains(std::string_view framework, std::string_view family) {
  switch (FactsOf(framework).models) {
    case Trained::kGptOnly:
      return family == "gpt";
    case Trained::kTransformers:
      return family != "resnet";
    case Trained::kAnyModel:
      break;
  }
  return true;
}

std::vector<CallSequence> SequencesOf(const GeneratedRun& run, const std::string& name) {
  std::vector<CallSequence> sequences;
  for (const Axis axis : kAllAxes) {
    AxisWriter writer(run, axis, name);
    writer.Add(run.construction);
    for (const auto& step : run.steps) {
      writer.BeginStep();
      writer.Add(step);
    }
    CallSequence sequence = writer.Take();
    Cut(sequence);
    if (!sequence.calls.empty()) sequences.push_back(std::move(sequence));
  }
  return sequences;
}

Result<GeneratedRun> RunOf(const JobShape& shape, int steps) {
  DYNAMICCL_TRY(const ModelShape model, ParseModel(shape.model));
  return GenerateRun(shape.framework, model, shape.world, shape.settings, steps);
}

JobShape RandomShape(std::string_view framework, std::string_view family, std::mt19937_64& random) {
  std::string why;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    JobShape shape{framework, RandomModel(family, random), RandomWorld(FactsOf(framework), random), {}};
    shape.settings = RandomSettings(framework, ModelOf(shape.model).Elements(), random);
    const auto probe = RunOf(shape, 2);
    if (probe && probe->steps[1].size() <= kMaxCalls / 2) return shape;
    why = probe ? "its steps are too long" : probe.error().message;
  }
  throw std::logic_error(
      fmt::format("{} on {}: no settings found that it takes: {}", framework, family, why));
}

std::vector<CallSequence> RandomJob(std::string_view framework, std::string_view family, int steps,
                                    std::mt19937_64& random) {
  const JobShape shape = RandomShape(framework, family, random);
  const auto probe = RunOf(shape, 2);
  const auto run = RunOf(shape, StepsFor(*probe, steps));
  auto sequences =
      SequencesOf(*run, fmt::format("{} {} ranks {}", framework, shape.model, shape.world.Ranks()));
  for (CallSequence& sequence : sequences) sequence.family = family;
  return sequences;
}

std::vector<CallSequence> RandomInventedJob(std::string_view family, int steps, std::mt19937_64& random) {
  for (;;) {
    const std::string name = RandomModel(family, random);
    const ModelShape model = ModelOf(name);
    const InventedHabits habits = DrawHabits(model, random);
    const GeneratedRun probe = InventedRun(model, habits, 2);
    if (probe.steps[1].size() > kMaxCalls / 2) continue;
    auto sequences = SequencesOf(InventedRun(model, habits, StepsFor(probe, steps)),
                                 fmt::format("{} {} ranks {}", kInvented, name, habits.world.Ranks()));
    for (CallSequence& sequence : sequences) sequence.family = family;
    return sequences;
  }
}

std::vector<CallSequence> RandomJobs(const JobPlan& plan, std::mt19937_64& random) {
  std::vector<CallSequence> all;
  // Adds jobs of each family; `draw` makes one job of a family.
  const auto add_jobs = [&](const auto& draw) {
    for (const std::string_view family : plan.families) {
      for (int job = 0; job < plan.jobs; ++job) std::ranges::move(draw(family), std::back_inserter(all));
    }
  };
  for (const std::string_view framework : plan.frameworks) {
    add_jobs([&](std::string_view family) {
      return Trains(framework, family) ? RandomJob(framework, family, plan.steps, random)
                                       : std::vector<CallSequence>{};
    });
  }
  for (int framework = 0; framework < plan.invented; ++framework) {
    add_jobs([&](std::string_view family) {
      std::vector<CallSequence> job = RandomInventedJob(family, plan.steps, random);
      for (CallSequence& sequence : job) sequence.framework = fmt::format("{} {}", kInvented, framework);
      return job;
    });
  }
  return all;
}

}  // namespace dynamiccl::agents
