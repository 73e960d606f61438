#include "core/config/read_preset.hpp"

#include <fmt/format.h>

#include <array>

#include "core/config/read_wrap.hpp"

namespace fsdp {
namespace {

enum class Framework { torchtitan, accelerate, torchtune, llm_foundry };

TitanPreset read_titan(const YamlReader& keys) {
  keys.expect_map({.known = {"fsdp_reshard_after_forward"}, .later = {}});
  TitanPreset preset;
  if (const auto value = keys.find("fsdp_reshard_after_forward")) {
    preset.reshard = value->choice<TitanReshard>({{"default", TitanReshard::standard},
                                                  {"always", TitanReshard::always},
                                                  {"never", TitanReshard::never}});
  }
  return preset;
}

AcceleratePreset read_accelerate(const YamlReader& keys) {
  keys.expect_map({.known = {"fsdp_auto_wrap_policy", "fsdp_transformer_layer_cls_to_wrap",
                             "fsdp_min_num_params", "fsdp_reshard_after_forward"},
                   .later = {}});
  AcceleratePreset preset;
  if (const auto value = keys.find("fsdp_auto_wrap_policy")) {
    preset.wrap =
        value->choice<AccelerateWrap>({{"TRANSFORMER_BASED_WRAP", AccelerateWrap::transformer},
                                       {"SIZE_BASED_WRAP", AccelerateWrap::size},
                                       {"NO_WRAP", AccelerateWrap::none}});
  }
  if (const auto value = keys.find("fsdp_transformer_layer_cls_to_wrap")) {
    preset.classes = value->kind() == YamlReader::Kind::scalar
                         ? std::vector<std::string>{value->text()}
                         : read_names(*value, "class");
  }
  if (const auto value = keys.find("fsdp_min_num_params")) {
    preset.min_params = read_elements(*value);
  }
  if (const auto value = keys.find("fsdp_reshard_after_forward")) {
    preset.reshard_after_forward = value->flag();
  }
  return preset;
}

TorchtunePreset read_torchtune(const YamlReader& keys) {
  keys.expect_map({.known = {"custom_sharded_layers"}, .later = {}});
  TorchtunePreset preset;
  if (const auto value = keys.find("custom_sharded_layers")) {
    preset.custom_sharded_layers = read_names(*value, "layer");
  }
  return preset;
}

Framework read_framework(const YamlReader& value) {
  return value.choice<Framework>({{"torchtitan", Framework::torchtitan},
                                  {"accelerate", Framework::accelerate},
                                  {"torchtune", Framework::torchtune},
                                  {"llm-foundry", Framework::llm_foundry}});
}

/// A mapping of one framework beside the preset of another says nothing.
void refuse_other_keys(const YamlReader& section, const std::string& preset) {
  for (const char* name : {"torchtitan", "accelerate", "torchtune"}) {
    if (const auto keys = section.find(name); keys && preset != name) {
      keys->fail(fmt::format("belongs to preset {}", name),
                 fmt::format("set preset: {}, or remove it", name));
    }
  }
}

/// What the preset decides and the run file must not say again.
void refuse_wrap(const YamlReader& section) {
  for (const char* key : {"wrap", "root_reshard", "reshard_units"}) {
    if (const auto value = section.find(key)) {
      value->fail("the preset decides it", "remove the key, or the preset");
    }
  }
}

}  // namespace

std::optional<Preset> read_preset(const YamlReader& section) {
  const auto value = section.find("preset");
  refuse_other_keys(section, value ? value->text() : "");
  if (!value) {
    return std::nullopt;
  }
  const Framework framework = read_framework(*value);
  refuse_wrap(section);
  const auto keys = section.find(value->text());
  switch (framework) {
    case Framework::torchtitan:
      return keys ? read_titan(*keys) : TitanPreset{};
    case Framework::accelerate:
      return keys ? read_accelerate(*keys) : AcceleratePreset{};
    case Framework::torchtune:
      return keys ? read_torchtune(*keys) : TorchtunePreset{};
    case Framework::llm_foundry:
      break;
  }
  value->fail("llm-foundry uses FSDP1", "set profile: fsdp1, or remove the profile");
}

bool names_foundry(const YamlReader& section) {
  const auto value = section.find("preset");
  return value && value->kind() == YamlReader::Kind::scalar && value->text() == "llm-foundry";
}

void apply_foundry_preset(const YamlReader& section, FsdpPolicy& policy) {
  if (!names_foundry(section)) {
    return;
  }
  policy.profile = Profile::fsdp1;
  policy.wrap = WrapBlock{};
  policy.param_dtype = DType::bf16;
  policy.reduce_dtype = DType::bf16;  // mixed_precision: PURE
  policy.fsdp1 = {.backward_prefetch = BackwardPrefetch::post, .use_orig_params = true};
}

}  // namespace fsdp
