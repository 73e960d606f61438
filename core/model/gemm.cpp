#include "core/model/gemm.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Tokens that each of the stacked experts multiplies, evenly spread.
std::int64_t expert_rows(const Module& module, std::int64_t tokens) {
  if (!module.experts) {
    return tokens;
  }
  const Experts& experts = *module.experts;
  return (tokens * experts.per_token + experts.count - 1) / experts.count;
}

/// A weight that multiplies the module's input, as (in, out) and a batch of experts; n = 0 for the
/// rest.
Gemm weight_gemm(const Module& module, const Parameter& parameter, const Batch& batch) {
  const auto& shape = parameter.shape;
  if (contains(module.class_name, "Embedding") || contains(parameter.name, "embedding")) {
    return {};
  }
  const std::int64_t tokens = batch.tokens();
  switch (shape.size()) {
    case 2:
      return contains(module.class_name, "Conv1D")
                 ? Gemm{.batch = 1, .m = tokens, .n = shape[1], .k = shape[0]}
                 : Gemm{.batch = 1, .m = tokens, .n = shape[0], .k = shape[1]};
    case 3:  // experts (E, out, in); a leading 1 is a token or a table of positions
      return shape[0] == 1 ? Gemm{}
                           : Gemm{.batch = shape[0],
                                  .m = expert_rows(module, tokens),
                                  .n = shape[1],
                                  .k = shape[2]};
    case 4:  // a convolution whose windows do not overlap is a product over patches
      return {.batch = 1, .m = tokens, .n = shape[0], .k = shape[1] * shape[2] * shape[3]};
    default:
      return {};
  }
}

/// Trees that do not tell the heads: one head as wide as what the last projection reads does the
/// same work. A module attends when it projects queries and an output.
std::optional<Attention> guessed_attention(const Module& module) {
  static constexpr std::array<std::string_view, 6> queries{"q_proj", "qkv",     "q",
                                                           "c_attn", "in_proj", "query"};
  const auto projects_queries = [](const Module& child) {
    return std::find(queries.begin(), queries.end(), last_component(child.path)) != queries.end();
  };
  if (std::none_of(module.children.begin(), module.children.end(), projects_queries)) {
    return std::nullopt;
  }
  for (const Module& child : module.children) {
    if (is_output_projection(child.path) && !child.parameters.empty() &&
        child.parameters.front().shape.size() == 2) {
      const auto& shape = child.parameters.front().shape;
      return Attention{.heads = 1, .head_dim = shape[contains(child.class_name, "Conv1D") ? 0 : 1]};
    }
  }
  return std::nullopt;
}

Flops sum(const std::vector<Gemm>& gemms) {
  Flops total{};
  for (const Gemm& gemm : gemms) {
    total += flops(gemm);
  }
  return total;
}

Gemm data_gradient(const Gemm& g) { return {.batch = g.batch, .m = g.m, .n = g.k, .k = g.n}; }
Gemm weight_gradient(const Gemm& g) { return {.batch = g.batch, .m = g.n, .n = g.k, .k = g.m}; }

}  // namespace

bool is_output_projection(const std::string& module_path) {
  static constexpr std::array<std::string_view, 5> names{"o_proj", "out_proj", "o", "c_proj", "wo"};
  return std::find(names.begin(), names.end(), last_component(module_path)) != names.end();
}

Flops flops(const Gemm& gemm) {
  return {2.0 * static_cast<double>(gemm.batch) * static_cast<double>(gemm.m) *
          static_cast<double>(gemm.n) * static_cast<double>(gemm.k)};
}

std::vector<Gemm> attention_gemms(const Module& module, const Batch& batch) {
  const std::optional<Attention> attention =
      module.attention ? module.attention : guessed_attention(module);
  if (!attention) {
    return {};
  }
  const std::int64_t count = attention->heads * batch.micro_batch;
  const std::int64_t s = batch.sequence;
  const std::int64_t d = attention->head_dim;
  return {{.batch = count, .m = s, .n = s, .k = d}, {.batch = count, .m = s, .n = d, .k = s}};
}

std::vector<Gemm> forward_gemms(const Module& module, const Batch& batch) {
  std::vector<Gemm> out = attention_gemms(module, batch);
  for (const Parameter& parameter : module.parameters) {
    if (const Gemm gemm = weight_gemm(module, parameter, batch); gemm.n > 0) {
      out.push_back(gemm);
    }
  }
  return out;
}

std::vector<Gemm> backward_gemms(const Module& module, const Batch& batch,
                                 bool input_requires_grad) {
  std::vector<Gemm> out;
  for (const Parameter& parameter : module.parameters) {
    const Gemm gemm = weight_gemm(module, parameter, batch);
    if (gemm.n == 0) {
      continue;
    }
    if (input_requires_grad) {
      out.push_back(data_gradient(gemm));
    }
    if (parameter.trainable) {
      out.push_back(weight_gradient(gemm));
    }
  }
  if (input_requires_grad) {
    for (const Gemm& gemm : attention_gemms(module, batch)) {
      out.push_back(data_gradient(gemm));
      out.push_back(weight_gradient(gemm));
    }
  }
  return out;
}

ModelFlops model_flops(const ModelSpec& model, const Batch& batch) {
  ModelFlops total{};
  const std::vector<std::string> blocks = block_paths(model);
  const std::set<std::string> checkpointed(blocks.begin(), blocks.end());
  std::string block;
  for (const ModuleCall& call : model.calls) {
    const Module* module = find_module(model.root, call.module);
    expects(module != nullptr, "a call of a module of the tree");
    if (checkpointed.contains(call.module)) {
      block = call.module;
    }
    const Flops forward = sum(forward_gemms(*module, batch));
    total.forward += forward;
    total.backward += sum(backward_gemms(*module, batch, call.input_requires_grad));
    if (!block.empty() && is_within(call.module, block)) {
      total.recompute += forward;
    }
  }
  return total;
}

}  // namespace fsdp
