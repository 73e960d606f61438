// Every knob of FSDP that decides what moves when. The names are PyTorch's; docs/METHODOLOGY.md
// says which release changed which rule.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/units/dtype.hpp"

namespace fsdp {

enum class Profile { fsdp2 };

/// A PyTorch release, "2.14".
struct Version {
  int major = 2;
  int minor = 14;
  friend auto operator<=>(const Version&, const Version&) = default;
};

struct WrapNone {};   ///< the whole model is the root's unit
struct WrapBlock {};  ///< a unit a transformer block
struct WrapTitan {};  ///< embeddings | a unit a block | norm and head (one unit when tied)
struct WrapEvery {
  int blocks = 1;
};  ///< `blocks` consecutive blocks share a unit
struct WrapClass {
  std::vector<std::string> classes;
};
struct WrapGroups {
  std::vector<std::vector<std::string>> groups;
};  ///< module paths that share a unit
using WrapRule = std::variant<WrapNone, WrapBlock, WrapTitan, WrapEvery, WrapClass, WrapGroups>;

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

struct FsdpPolicy {
  Profile profile = Profile::fsdp2;
  Version version;
  WrapRule wrap = WrapBlock{};
  Reshard reshard_after_forward = Reshard::free();
  std::optional<bool> root_reshard;              ///< absent is "auto"
  std::map<std::string, Reshard> reshard_units;  ///< exceptions by unit name
  Prefetch forward_prefetch = 0;
  Prefetch backward_prefetch = 1;
  std::optional<DType> param_dtype;   ///< absent: the parameters' own, as in PyTorch
  std::optional<DType> reduce_dtype;  ///< absent: the gradients' own (up to 2.14)
  int reduce_scatter_buffers = 1;     ///< set_reduce_scatter_max_input_buffers, 2.13 and later
  std::optional<double> gradient_divide_factor;
};

/// One line for tables and logs: "every 2, prefetch 1/2, reshard".
std::string to_text(const FsdpPolicy& policy);
std::string to_text(const WrapRule& wrap);
std::string to_text(Reshard reshard);
std::string to_text(Version version);

}  // namespace fsdp
