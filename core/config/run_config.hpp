// One run file, read strictly: every key known, every quantity with its unit, every error with its
// place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/model/batch.hpp"
#include "core/model/cluster_spec.hpp"
#include "core/model/device_mesh.hpp"
#include "core/model/families.hpp"
#include "core/model/fsdp_policy.hpp"
#include "core/model/model_spec.hpp"
#include "core/units/error.hpp"
#include "core/units/quantity.hpp"

namespace fsdp {

/// A run file that cannot be used. Exit code 64. `what()` reads
/// "run.yaml:7:3: policy.prefech: unknown key; did you mean 'prefetch'?".
class ConfigError : public Error {
 public:
  struct Place {
    std::string file;
    int line = 0;    ///< from 1; 0 when the error has no place
    int column = 0;  ///< from 1
    std::string key;
  };
  ConfigError(const Place& place, const std::string& reason, const std::string& suggestion);
  const Place& place() const { return place_; }
  const std::string& reason() const { return reason_; }
  const std::string& suggestion() const { return suggestion_; }

 private:
  Place place_;
  std::string reason_;
  std::string suggestion_;
};

using FamilyDimensions = std::variant<Gpt2Dimensions, LlamaDimensions>;

/// A model of a built-in family: the dimensions it is named after, and those it really has.
/// Both hold the same alternative.
struct FamilySource {
  std::string name;
  FamilyDimensions dimensions;
  FamilyDimensions scaled;
};

/// A model read from a module tree; the path is as the run file writes it.
struct TreeSource {
  std::string path;
};

/// A model built from a config.json of Hugging Face transformers.
struct HfSource {
  std::string path;
  DType dtype = DType::f32;  ///< of all parameters
};

/// A model told by the names and shapes in a safetensors file, or in those of an index.
struct SafetensorsSource {
  std::string path;
  std::optional<DType> dtype;  ///< of all that train; absent: as saved
};

/// Where RunConfig::model came from, so that print_config can write it down again.
using ModelSource = std::variant<FamilySource, TreeSource, HfSource, SafetensorsSource>;

enum class BackendChoice { automatic, sim, mpi };

/// What `tune` may change.
struct SpaceConfig {
  std::vector<int> unit_sizes{1, 2, 4, 8};
  std::vector<int> forward_prefetch{0, 1, 2};
  std::vector<int> backward_prefetch{1, 2};
  std::vector<Reshard> reshard{Reshard::free(), Reshard::keep()};
};

struct StopConfig {
  double max_error = 0.02;               ///< half-width of the 95 % interval over the median
  Nanoseconds max_time{20'000'000'000};  ///< a measurement
  int min_samples = 6;
  int max_samples = 200;
};

struct MeasureConfig {
  BackendChoice backend = BackendChoice::automatic;
  StopConfig stop;
  int warmup = 2;
  int verify_every =
      50;  ///< contents are checked once before timing and on every n-th step; 0: only before
  std::uint64_t seed = 1;
  Nanoseconds timeout{60'000'000'000};  ///< of every wait for another rank
};

struct TuneConfig {
  Nanoseconds budget{600'000'000'000};
  double indifference = 0.01;  ///< differences below it do not matter
  int survivors = 6;           ///< candidates measured after pruning, the default included
};

struct RunConfig {
  std::string file;  ///< the run file's path
  ModelSource model_source;
  ModelSpec model;
  std::optional<ClusterSpec> cluster;
  std::optional<DeviceMesh> mesh;  ///< absent: all ranks in one shard group
  Batch batch;
  FsdpPolicy policy;
  SpaceConfig space;
  std::optional<Bytes> memory_limit;
  MeasureConfig measure;
  TuneConfig tune;
  std::string output = "results/runs";
};

/// Reads a run file and the model and cluster files it names (relative to the run file, its parent
/// folder, or the working directory). Throws ConfigError.
RunConfig load_run_config(const std::string& path);
/// The same for a text that was already read; `file` is the path that errors name and that other
/// paths are relative to. Throws ConfigError.
RunConfig load_run_config_text(const std::string& text, const std::string& file);
/// Reads a cluster file. Throws ConfigError.
ClusterSpec load_cluster(const std::string& path);

/// The whole configuration with every default, as YAML that load_run_config reads back to the same
/// value. Also the text that ranks compare by hash: models of a family and clusters are written
/// out, models of other files by their path and a hash of the module tree.
std::string print_config(const RunConfig& config);
/// A cluster file that load_cluster reads back to the same value.
std::string print_cluster(const ClusterSpec& cluster);

}  // namespace fsdp
