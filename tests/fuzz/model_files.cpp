// Whatever stands in a model file, reading it ends in a model or in a UsageError; what was read can
// be planned, and written down and read again. The first byte of an input chooses the reader.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "core/model/activations.hpp"
#include "core/model/hf_config.hpp"
#include "core/model/module_tree.hpp"
#include "core/model/safetensors.hpp"
#include "core/schedule/schedule.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

std::optional<ModelSpec> read(char reader, std::string_view bytes) {
  switch (reader) {
    case 'h':
      return read_hf_config(bytes);
    case 't':
      return read_module_tree(bytes);
    case 's':
      return read_safetensors(read_safetensors_header(bytes, bytes.size()));
    case 'i':
      read_safetensors_index(bytes);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

/// Planning a very deep or long model takes longer than it teaches.
constexpr std::size_t most_calls = 400;

void use(const ModelSpec& model) {
  const std::string written = write_module_tree(model);
  if (write_module_tree(read_module_tree(written)) != written) {
    std::fputs("a model that was read is not the one that was written\n", stderr);
    std::abort();
  }
  if (model.calls.size() > most_calls) {
    return;
  }
  for (const Profile profile : {Profile::fsdp1, Profile::fsdp2}) {
    FsdpPolicy policy;
    policy.profile = profile;
    policy.wrap = WrapSize{.min_params = 1000};
    const Batch batch{.sequence = 8, .micro_batch = 1};
    activations(model, batch, DType::bf16, Checkpointing::full);
    try {
      build_schedule(plan_units(model, policy, {.replicate = 1, .shard = 8}, batch));
    } catch (const UsageError&) {
      continue;  // weights that two units share, dtypes that one unit cannot mix
    }
  }
}

}  // namespace
}  // namespace fsdp

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    if (const auto model = fsdp::read(bytes.front(), bytes.substr(1))) {
      fsdp::use(*model);
    }
  } catch (const fsdp::UsageError& error) {
    if (std::string_view(error.what()).empty()) {
      std::abort();  // an error says something
    }
  }
  return 0;
}
