#include "core/config/read_sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/config/read_policy.hpp"

namespace fsdp {
namespace {

constexpr IntegerRange ranks_range{1, 1 << 20};

std::vector<int> read_integers(const YamlReader& list, IntegerRange range) {
  std::vector<int> values;
  for (const YamlReader& item : list.items()) {
    const int value = static_cast<int>(item.integer(range));
    if (std::find(values.begin(), values.end(), value) != values.end()) {
      item.fail(fmt::format("{} is listed twice", value));
    }
    values.push_back(value);
  }
  return values;
}

std::vector<Reshard> read_reshards(const YamlReader& list, const std::optional<DeviceMesh>& mesh) {
  std::vector<Reshard> values;
  for (const YamlReader& item : list.items()) {
    const Reshard value = read_reshard(item, mesh);
    if (std::find(values.begin(), values.end(), value) != values.end()) {
      item.fail("is listed twice");
    }
    values.push_back(value);
  }
  return values;
}

/// A fraction above 0 and at most 100 %.
double read_share(const YamlReader& value) {
  const double share = value.percent();
  if (share <= 0.0 || share > 1.0) {
    value.fail("must be above 0 % and at most 100 %");
  }
  return share;
}

Nanoseconds read_positive_duration(const YamlReader& value) {
  const Nanoseconds time = value.duration();
  if (time <= Nanoseconds{0}) {
    value.fail("must be above 0");
  }
  return time;
}

StopConfig read_stop(const YamlReader& section) {
  section.expect_map(
      {.known = {"rule", "max_error", "max_time", "min_samples", "max_samples"}, .later = {}});
  StopConfig stop;
  if (const auto value = section.find("rule")) {
    value->choice<int>({{"relative_error", 0}});
  }
  if (const auto value = section.find("max_error")) {
    stop.max_error = read_share(*value);
  }
  if (const auto value = section.find("max_time")) {
    stop.max_time = read_positive_duration(*value);
  }
  // An interval of the median needs a few samples to exist at all.
  if (const auto value = section.find("min_samples")) {
    stop.min_samples = static_cast<int>(value->integer({3, 100'000}));
    stop.max_samples = std::max(stop.max_samples, stop.min_samples);
  }
  if (const auto value = section.find("max_samples")) {
    stop.max_samples = static_cast<int>(value->integer({3, 100'000}));
    if (stop.max_samples < stop.min_samples) {
      value->fail(fmt::format("{} is below min_samples {}", stop.max_samples, stop.min_samples));
    }
  }
  return stop;
}

BackendChoice read_backend(const YamlReader& value) {
  if (value.text() == "nccl") {
    value.fail_later("the backend 'nccl'", "supported: auto, sim, mpi");
  }
  return value.choice<BackendChoice>({{"auto", BackendChoice::automatic},
                                      {"sim", BackendChoice::sim},
                                      {"mpi", BackendChoice::mpi}});
}

}  // namespace

DeviceMesh read_mesh(const YamlReader& section) {
  section.expect_map({.known = {"replicate", "shard"}, .later = {}});
  DeviceMesh mesh;
  if (const auto value = section.find("replicate")) {
    mesh.replicate = static_cast<int>(value->integer(ranks_range));
  }
  const YamlReader shard = section.at("shard");
  mesh.shard = static_cast<int>(shard.integer(ranks_range));
  const std::int64_t world = std::int64_t{mesh.replicate} * mesh.shard;
  if (world > ranks_range.most) {
    shard.fail(fmt::format("replicate x shard must be at most {}, is {}", ranks_range.most, world));
  }
  return mesh;
}

Batch read_batch(const YamlReader& section) {
  section.expect_map(
      {.known = {"sequence", "micro_batch", "accumulate", "sync", "reshard_after_backward"},
       .later = {}});
  Batch batch;
  if (const auto value = section.find("sequence")) {
    batch.sequence = value->integer({1, 1 << 24});
  }
  if (const auto value = section.find("micro_batch")) {
    batch.micro_batch = value->integer({1, 1 << 16});
  }
  if (const auto value = section.find("accumulate")) {
    batch.accumulate = value->integer({1, 1 << 12});
  }
  if (const auto value = section.find("sync")) {
    batch.sync = value->choice<GradientSync>({{"last", GradientSync::last},
                                              {"every", GradientSync::every},
                                              {"reduce_scatter", GradientSync::reduce_scatter}});
  }
  if (const auto value = section.find("reshard_after_backward")) {
    batch.reshard_after_backward = value->flag();
  }
  return batch;
}

SpaceConfig read_space(const YamlReader& section, const std::optional<DeviceMesh>& mesh) {
  section.expect_map(
      {.known = {"units", "prefetch", "reshard_after_forward"}, .later = {"shard_group"}});
  SpaceConfig space;
  if (const auto units = section.find("units")) {
    units->expect_map({.known = {"sizes", "uneven"}, .later = {}});
    if (const auto value = units->find("sizes")) {
      space.unit_sizes = read_integers(*value, unit_size_range);
    }
    if (const auto value = units->find("uneven"); value && value->flag()) {
      value->fail_later("a search over uneven units", "write false, or remove it");
    }
  }
  if (const auto prefetch = section.find("prefetch")) {
    prefetch->expect_map({.known = {"forward", "backward"}, .later = {}});
    if (const auto value = prefetch->find("forward")) {
      space.forward_prefetch = read_integers(*value, forward_depth_range);
    }
    if (const auto value = prefetch->find("backward")) {
      space.backward_prefetch = read_integers(*value, backward_depth_range);
    }
  }
  if (const auto value = section.find("reshard_after_forward")) {
    space.reshard = read_reshards(*value, mesh);
  }
  return space;
}

MeasureConfig read_measure(const YamlReader& section) {
  section.expect_map(
      {.known = {"backend", "stop", "warmup", "verify_every", "seed", "timeout"}, .later = {}});
  MeasureConfig measure;
  if (const auto value = section.find("backend")) {
    measure.backend = read_backend(*value);
  }
  if (const auto value = section.find("stop")) {
    measure.stop = read_stop(*value);
  }
  if (const auto value = section.find("warmup")) {
    measure.warmup = static_cast<int>(value->integer({0, 10'000}));
  }
  if (const auto value = section.find("verify_every")) {
    measure.verify_every = static_cast<int>(value->integer({0, 1'000'000}));
  }
  if (const auto value = section.find("seed")) {
    measure.seed =
        static_cast<std::uint64_t>(value->integer({0, std::numeric_limits<std::int64_t>::max()}));
  }
  if (const auto value = section.find("timeout")) {
    measure.timeout = read_positive_duration(*value);
  }
  return measure;
}

TuneConfig read_tune(const YamlReader& section) {
  section.expect_map({.known = {"budget", "indifference", "survivors"}, .later = {}});
  TuneConfig tune;
  if (const auto value = section.find("budget")) {
    tune.budget = read_positive_duration(*value);
  }
  if (const auto value = section.find("indifference")) {
    tune.indifference = value->percent();
    if (tune.indifference > 1.0) {
      value->fail("must be at most 100 %");
    }
  }
  if (const auto value = section.find("survivors")) {
    tune.survivors = static_cast<int>(value->integer({1, 10'000}));
  }
  return tune;
}

}  // namespace fsdp
