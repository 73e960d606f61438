// The dimensions of the model families by the names that model files use, in one order everywhere.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/config/run_config.hpp"

namespace fsdp {

template <class Dimensions>
struct DimensionField {
  const char* name;
  std::int64_t Dimensions::*member;
};

template <class Dimensions>
struct Family;

template <>
struct Family<Gpt2Dimensions> {
  static constexpr const char* name = "gpt2";
  static constexpr std::array<DimensionField<Gpt2Dimensions>, 5> fields{
      {{"vocab", &Gpt2Dimensions::vocab},
       {"positions", &Gpt2Dimensions::positions},
       {"layers", &Gpt2Dimensions::layers},
       {"hidden", &Gpt2Dimensions::hidden},
       {"heads", &Gpt2Dimensions::heads}}};
};

template <>
struct Family<LlamaDimensions> {
  static constexpr const char* name = "llama";
  static constexpr std::array<DimensionField<LlamaDimensions>, 6> fields{
      {{"vocab", &LlamaDimensions::vocab},
       {"layers", &LlamaDimensions::layers},
       {"hidden", &LlamaDimensions::hidden},
       {"ffn", &LlamaDimensions::ffn},
       {"heads", &LlamaDimensions::heads},
       {"kv_heads", &LlamaDimensions::kv_heads}}};
};

}  // namespace fsdp
