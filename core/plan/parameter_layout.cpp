#include "core/plan/parameter_layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/releases.hpp"
#include "core/plan/wrap_rules.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

/// What FSDP1 aligns the places of parameters to, when they are to be seen as tensors of their own.
constexpr std::int64_t flat_alignment_bytes = 16;

bool is_float(DType dtype) { return dtype != DType::u8 && dtype != DType::i64; }

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

[[noreturn]] void refuse_mix(const FsdpUnit& unit, const UnitParameter& a, const UnitParameter& b,
                             std::string_view what) {
  throw UsageError(
      fmt::format("unit {}: '{}' and '{}' have different {}, which PyTorch refuses in one unit; "
                  "wrap them apart",
                  unit.name, a.path, b.path, what));
}

}  // namespace

ParameterLayout::ParameterLayout(const FsdpPolicy& policy, int ranks)
    : policy_(policy), ranks_(ranks) {
  for (const std::string& pattern : policy.ignored_params) {
    ignored_.push_back(compiled(pattern, "policy.ignored_params"));
  }
  for (const auto& [pattern, dim] : policy.shard_dims) {
    shard_dims_.emplace_back(compiled(pattern, "policy.shard_dims"), dim);
  }
}

bool ParameterLayout::ignores(const std::string& path) const {
  return std::any_of(ignored_.begin(), ignored_.end(),
                     [&](const std::regex& pattern) { return std::regex_match(path, pattern); });
}

UnitParameter ParameterLayout::sharded(const std::string& path, const Parameter& parameter,
                                       const Module& module) const {
  UnitParameter out{.path = path,
                    .shape = parameter.shape,
                    .dtype = parameter.dtype,
                    .gather_dtype = parameter.dtype,
                    .trainable = parameter.trainable,
                    .numel = parameter.numel()};
  if (is_float(parameter.dtype)) {
    out.gather_dtype = policy_.param_dtype.value_or(parameter.dtype);
  }
  const auto& fp8 = policy_.fp8_gather_classes;
  if (parameter.shape.size() == 2 &&
      std::find(fp8.begin(), fp8.end(), module.class_name) != fp8.end()) {
    out.gather_dtype = DType::u8;
  }
  if (policy_.profile == Profile::fsdp1) {
    out.shard_numel = out.padded_numel = out.numel;
    return out;
  }
  for (const auto& [pattern, dim] : shard_dims_) {
    if (std::regex_match(path, pattern)) {
      out.shard_dim = dim;
      break;
    }
  }
  if (out.shard_dim >= static_cast<int>(parameter.shape.size())) {
    throw UsageError(fmt::format("policy.shard_dims: '{}' has {} dimensions, no dimension {}", path,
                                 parameter.shape.size(), out.shard_dim));
  }
  const std::int64_t extent = parameter.shape[static_cast<std::size_t>(out.shard_dim)];
  if (out.shard_dim > 0 && extent % ranks_ != 0) {
    throw UsageError(fmt::format(
        "policy.shard_dims: dimension {} of '{}' has {} rows, which {} ranks do not divide; only "
        "dimension 0 is padded",
        out.shard_dim, path, extent, ranks_));
  }
  out.shard_numel = (extent + ranks_ - 1) / ranks_ * (out.numel / extent);
  out.padded_numel = out.shard_numel * ranks_;
  return out;
}

void ParameterLayout::finish(FsdpUnit& unit) const {
  for (const UnitParameter& parameter : unit.parameters) {
    unit.numel += parameter.numel;
    unit.shard_numel += parameter.shard_numel;
    unit.padded_numel += parameter.padded_numel;
  }
  finish_dtypes(unit);
  if (policy_.profile == Profile::fsdp1) {
    finish_flat(unit);
    // Autograd sees views of one flat parameter: a frozen one beside a trainable one gets a
    // gradient.
    const auto trainable = [](const UnitParameter& p) { return p.trainable; };
    if (std::any_of(unit.parameters.begin(), unit.parameters.end(), trainable)) {
      for (UnitParameter& parameter : unit.parameters) {
        parameter.trainable = true;
      }
    }
  }
}

void ParameterLayout::finish_dtypes(FsdpUnit& unit) const {
  // The trainable parameters decide; a wholly frozen unit takes its first.
  const UnitParameter* leader = &unit.parameters.front();
  for (const UnitParameter& parameter : unit.parameters) {
    leader = !leader->trainable && parameter.trainable ? &parameter : leader;
  }
  bool mixed = false;
  std::int64_t bytes = 0;
  for (const UnitParameter& parameter : unit.parameters) {
    if (parameter.dtype != leader->dtype &&
        (parameter.trainable || policy_.profile == Profile::fsdp1)) {
      refuse_mix(unit, parameter, *leader, "dtypes");
    }
    if (parameter.trainable != leader->trainable && policy_.profile == Profile::fsdp1 &&
        !policy_.fsdp1.use_orig_params) {
      refuse_mix(unit, parameter, *leader, "trainable flags, with use_orig_params: false");
    }
    mixed = mixed || parameter.gather_dtype != unit.parameters.front().gather_dtype;
    bytes += bytes_of(parameter.shard_numel, parameter.gather_dtype).value;
  }
  unit.master_dtype = leader->dtype;
  unit.param_dtype =
      policy_.param_dtype && is_float(leader->dtype) ? *policy_.param_dtype : leader->dtype;
  const bool follows_master =
      policy_.profile == Profile::fsdp2 && policy_.version >= since::reduce_in_master_dtype;
  unit.reduce_dtype =
      policy_.reduce_dtype.value_or(follows_master ? unit.master_dtype : unit.param_dtype);
  unit.gather_dtype = mixed ? DType::u8 : unit.parameters.front().gather_dtype;
  unit.gather_shard_numel = mixed ? bytes : unit.shard_numel;
}

/// `use_orig_params` aligns each parameter and pads the end to a multiple of the ranks; without it
/// the parameters follow each other and only the last shard is padded.
void ParameterLayout::finish_flat(FsdpUnit& unit) const {
  const bool aligned = policy_.fsdp1.use_orig_params;
  const std::int64_t step = flat_alignment_bytes / element_bytes(unit.param_dtype);
  std::int64_t end = 0;
  for (UnitParameter& parameter : unit.parameters) {
    parameter.flat_offset = aligned ? round_up(end, step) : end;
    end = parameter.flat_offset + parameter.numel;
  }
  unit.padded_numel = round_up(end, ranks_);
  unit.shard_numel = unit.gather_shard_numel = unit.padded_numel / ranks_;
}

}  // namespace fsdp
