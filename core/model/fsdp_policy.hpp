// Every knob of FSDP that decides what moves when. The names are PyTorch's; docs/METHODOLOGY.md
// says which release changed which rule.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/units/dtype.hpp"

namespace fsdp {

enum class Profile { fsdp2, fsdp1 };

/// A PyTorch release, "2.14".
struct Version {
  int major = 2;
  int minor = 14;
  friend auto operator<=>(const Version&, const Version&) = default;
};

struct WrapNone {};      ///< the whole model is the root's unit
struct WrapBlock {};     ///< a unit a transformer block
struct WrapSubBlock {};  ///< a unit each child of a block that holds a matrix
struct WrapTitan {};     ///< embeddings | a unit a block | norm and head (one unit when tied)
struct WrapAlways {};    ///< a unit each module
struct WrapEvery {
  int blocks = 1;
};  ///< `blocks` consecutive blocks share a unit
struct WrapPartition {
  std::vector<int> blocks;
};  ///< blocks of each unit, in order; they add up to all blocks
struct WrapClass {
  std::vector<std::string> classes;
};
struct WrapName {
  std::string pattern;
};  ///< modules whose whole path matches the regular expression
/// FSDP1's size_based_auto_wrap_policy: what is left of a module after its wrapped children has at
/// least `min_params` elements.
struct WrapSize {
  std::int64_t min_params = 100'000'000;
  std::vector<std::string> force_leaf{"MultiheadAttention"};     ///< classes never entered
  std::vector<std::string> exclude{"ModuleList", "ModuleDict"};  ///< classes never wrapped
};
/// accelerate's size rule for FSDP2: modules with more than `min_params` elements, wrapped children
/// included.
struct WrapTotalSize {
  std::int64_t min_params = 100'000'000;
};
struct WrapGroups {
  std::vector<std::vector<std::string>> groups;
};  ///< module paths that share a unit, bottom-up
using WrapRule =
    std::variant<WrapNone, WrapBlock, WrapSubBlock, WrapTitan, WrapAlways, WrapEvery, WrapPartition,
                 WrapClass, WrapName, WrapSize, WrapTotalSize, WrapGroups>;

/// torchtitan's `fsdp_reshard_after_forward`.
enum class TitanReshard { standard, always, never };
struct TitanPreset {
  TitanReshard reshard = TitanReshard::standard;
};
/// accelerate's `fsdp_auto_wrap_policy`.
enum class AccelerateWrap { transformer, size, none };
struct AcceleratePreset {
  AccelerateWrap wrap = AccelerateWrap::transformer;
  std::vector<std::string> classes;  ///< to wrap; empty: the model's own transformer layer
  std::int64_t min_params = 100'000'000;
  bool reshard_after_forward = true;
};
/// torchtune's shard_model: the blocks and the layers it is told of; the root is kept.
struct TorchtunePreset {
  std::vector<std::string> custom_sharded_layers;  ///< last components: "tok_embeddings"
};
/// What a framework's own code decides; plan_units replaces it by the knobs it stands for.
using Preset = std::variant<TitanPreset, AcceleratePreset, TorchtunePreset>;

/// `reshard_after_forward`: 0 keeps the parameters, 1 frees them, k > 1 keeps a 1/k slice.
struct Reshard {
  int to = 1;
  static constexpr Reshard keep() { return {0}; }
  static constexpr Reshard free() { return {1}; }
  friend auto operator<=>(const Reshard&, const Reshard&) = default;
};

using PrefetchLists = std::map<std::string, std::vector<std::string>>;  ///< unit -> units, explicit
/// A depth (forward 0 and backward 1 are PyTorch's implicit defaults) or explicit lists.
using Prefetch = std::variant<int, PrefetchLists>;

enum class Checkpointing { none, selective, full };

/// FSDP1's `sharding_strategy`.
enum class ShardingStrategy { full_shard, shard_grad_op, hybrid_shard, hybrid_shard_zero2 };
/// FSDP1's `backward_prefetch`.
enum class BackwardPrefetch { pre, post, none };
/// Arguments that only FSDP1's constructor has, with PyTorch's defaults.
struct Fsdp1Arguments {
  ShardingStrategy sharding = ShardingStrategy::full_shard;
  BackwardPrefetch backward_prefetch = BackwardPrefetch::pre;
  bool forward_prefetch = false;
  bool limit_all_gathers = true;
  bool use_orig_params = false;
};

struct FsdpPolicy {
  Profile profile = Profile::fsdp2;
  Version version;
  std::optional<Preset> preset;
  WrapRule wrap = WrapBlock{};
  Reshard reshard_after_forward = Reshard::free();
  std::optional<bool> root_reshard;              ///< absent is "auto"
  std::map<std::string, Reshard> reshard_units;  ///< exceptions by unit name
  Prefetch forward_prefetch = 0;
  Prefetch backward_prefetch = 1;
  std::optional<DType> param_dtype;   ///< absent: the parameters' own, as in PyTorch
  std::optional<DType> reduce_dtype;  ///< absent: the gradients' own (up to 2.14)
  int reduce_scatter_buffers = 1;     ///< set_reduce_scatter_max_input_buffers, 2.13 and later
  bool separate_reduce_scatter_group = false;  ///< set_separate_reduce_scatter_group, from 2.13
  std::optional<double> gradient_divide_factor;
  bool force_sum_reduction = false;  ///< set_force_sum_reduction_for_comms
  /// set_unshard_in_backward(False), by unit name.
  std::vector<std::string> keep_sharded_in_backward;
  /// shard_placement_fn: the dimension of parameters whose whole path matches the expression; the
  /// first match counts, others are cut along dimension 0.
  std::vector<std::pair<std::string, int>> shard_dims;
  /// Parameters left out of sharding, gathers and reductions, by regular expression.
  std::vector<std::string> ignored_params;
  /// Classes whose matrices are gathered as one byte an element (float8 all-gather).
  std::vector<std::string> fp8_gather_classes;
  Checkpointing activation_checkpointing = Checkpointing::none;
  bool cpu_offload = false;  ///< master shards, their gradients and the optimizer on the host
  Fsdp1Arguments fsdp1;
};

/// One line for tables and logs: "every 2, prefetch 1/2, reshard".
std::string to_text(const FsdpPolicy& policy);
std::string to_text(const WrapRule& wrap);
std::string to_text(Reshard reshard);
std::string to_text(Version version);
std::string_view to_text(Checkpointing checkpointing);
std::string_view to_text(Profile profile);
std::string_view to_text(ShardingStrategy sharding);
std::string_view to_text(BackwardPrefetch prefetch);

}  // namespace fsdp
