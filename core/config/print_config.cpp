#include <fmt/format.h>

#include <array>
#include <type_traits>

#include "core/config/dimensions.hpp"
#include "core/config/print_policy.hpp"
#include "core/config/run_config.hpp"
#include "core/config/yaml_text.hpp"
#include "core/model/module_tree.hpp"

namespace fsdp {
namespace {

std::string indented(const std::string& text) {
  std::string result;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin) + 1;
    result += "  " + text.substr(begin, end - begin);
    begin = end;
  }
  return result;
}

/// FNV-1a: enough to notice that two ranks read different files.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}

template <class Dimensions>
std::string dimensions_text(const Dimensions& from, const Dimensions& to) {
  std::string text = fmt::format("  family: {}\n", Family<Dimensions>::name);
  std::string scale;
  for (const auto& field : Family<Dimensions>::fields) {
    text += fmt::format("  {}: {}\n", field.name, from.*field.member);
    if (from.*field.member != to.*field.member) {
      scale += fmt::format("{}{}: {}", scale.empty() ? "" : ", ", field.name, to.*field.member);
    }
  }
  if constexpr (std::is_same_v<Dimensions, LlamaDimensions>) {
    text += fmt::format("  tied: {}\n", from.tied);
  }
  return text + fmt::format("  scale: {{{}}}\n", scale);
}

std::string model_text(const FamilySource& source) {
  return fmt::format("model:\n  name: {}\n", yaml_string(source.name)) +
         std::visit(
             [&source](const auto& from) {
               using Dimensions = std::decay_t<decltype(from)>;
               return dimensions_text(from, std::get<Dimensions>(source.scaled));
             },
             source.dimensions);
}

std::string source_text(const TreeSource& source) {
  return fmt::format("tree: {}", yaml_string(source.path));
}

std::string source_text(const HfSource& source) {
  return fmt::format("hf: {}, dtype: {}", yaml_string(source.path), to_text(source.dtype));
}

std::string source_text(const SafetensorsSource& source) {
  const std::string dtype = source.dtype ? fmt::format(", dtype: {}", to_text(*source.dtype)) : "";
  return fmt::format("safetensors: {}{}", yaml_string(source.path), dtype);
}

std::string model_text(const RunConfig& config) {
  return std::visit(
      [&config](const auto& source) {
        if constexpr (std::is_same_v<std::decay_t<decltype(source)>, FamilySource>) {
          return model_text(source);
        } else {
          return fmt::format("model: {{{}}}  # contents {:016x}\n", source_text(source),
                             hash_of(write_module_tree(config.model)));
        }
      },
      config.model_source);
}

const char* to_text(BackendChoice backend) {
  switch (backend) {
    case BackendChoice::automatic:
      return "auto";
    case BackendChoice::sim:
      return "sim";
    case BackendChoice::mpi:
      break;
  }
  return "mpi";
}

std::string space_text(const SpaceConfig& space) {
  std::string reshard;
  for (const Reshard value : space.reshard) {
    reshard += (reshard.empty() ? "" : ", ") + yaml_reshard(value);
  }
  return fmt::format(
      "space:\n  units: {{sizes: [{}], uneven: false}}\n"
      "  prefetch: {{forward: [{}], backward: [{}]}}\n  reshard_after_forward: [{}]\n",
      fmt::join(space.unit_sizes, ", "), fmt::join(space.forward_prefetch, ", "),
      fmt::join(space.backward_prefetch, ", "), reshard);
}

std::string batch_text(const Batch& batch) {
  static constexpr std::array<const char*, 3> syncs{"last", "every", "reduce_scatter"};
  return fmt::format(
      "batch: {{sequence: {}, micro_batch: {}, accumulate: {}, sync: {}, "
      "reshard_after_backward: {}}}\n",
      batch.sequence, batch.micro_batch, batch.accumulate,
      syncs[static_cast<std::size_t>(batch.sync)], batch.reshard_after_backward);
}

std::string measure_text(const MeasureConfig& measure) {
  const StopConfig& stop = measure.stop;
  return fmt::format(
      "measure:\n  backend: {}\n"
      "  stop: {{rule: relative_error, max_error: {}, max_time: {}, min_samples: {}, "
      "max_samples: {}}}\n"
      "  warmup: {}\n  verify_every: {}\n  seed: {}\n  timeout: {}\n",
      to_text(measure.backend), yaml_percent(stop.max_error), yaml_duration(stop.max_time),
      stop.min_samples, stop.max_samples, measure.warmup, measure.verify_every, measure.seed,
      yaml_duration(measure.timeout));
}

}  // namespace

std::string print_config(const RunConfig& config) {
  std::string text = model_text(config);
  text += config.cluster ? "cluster:\n" + indented(print_cluster(*config.cluster))
                         : "cluster: ~  # calibrated\n";
  text += config.mesh ? fmt::format("mesh: {{replicate: {}, shard: {}}}\n", config.mesh->replicate,
                                    config.mesh->shard)
                      : "mesh: ~  # all ranks in one shard group\n";
  text += batch_text(config.batch);
  text += print_policy(config.policy);
  text += space_text(config.space);
  text += fmt::format("memory: {{limit: {}}}\n",
                      config.memory_limit ? yaml_bytes(*config.memory_limit) : "~");
  text += measure_text(config.measure);
  text += fmt::format("tune: {{budget: {}, indifference: {}, survivors: {}}}\n",
                      yaml_duration(config.tune.budget), yaml_percent(config.tune.indifference),
                      config.tune.survivors);
  text += fmt::format("output: {}\n", yaml_string(config.output));
  return text;
}

}  // namespace fsdp
