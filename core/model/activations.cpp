#include "core/model/activations.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "core/model/gemm.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

/// Elements in the computed type, and f32 sums that attention's kernels keep.
struct Saved {
  std::int64_t elements = 0;
  std::int64_t softmax_sums = 0;

  Saved& operator+=(const Saved& other) {
    elements += other.elements;
    softmax_sums += other.softmax_sums;
    return *this;
  }
};

std::int64_t rows(const Gemm& product) { return product.batch * product.m; }

bool holds_parameters(const Module& module) {
  return !module.parameters.empty() ||
         std::any_of(module.children.begin(), module.children.end(), holds_parameters);
}

/// Products of the modules right below `module` that hold no others with parameters, in call order:
/// what one formula works with.
std::vector<Gemm> products_below(const Module& module, const Batch& batch) {
  std::vector<Gemm> out;
  for (const Module& child : module.children) {
    if (std::none_of(child.children.begin(), child.children.end(), holds_parameters)) {
      const std::vector<Gemm> own = forward_gemms(child, batch);
      out.insert(out.end(), own.begin(), own.end());
    }
  }
  return out;
}

/// Inputs of the products, each once where several read the same; the last reads what those before
/// it made.
std::int64_t product_inputs(const std::vector<Gemm>& products) {
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  std::int64_t sum = rows(products.back()) * products.back().k;
  for (auto product = products.begin(); product != products.end() - 1; ++product) {
    if (seen.emplace(rows(*product), product->k).second) {
      sum += rows(*product) * product->k;
    }
  }
  return sum;
}

/// Queries, keys and values.
Saved attention_saves(const std::vector<Gemm>& products, const std::vector<Gemm>& scores) {
  Saved out;
  for (auto product = products.begin(); product != products.end() - 1; ++product) {
    out.elements += rows(*product) * product->n;
  }
  out.softmax_sums = scores.front().batch * scores.front().m;
  return out;
}

/// What stands between the first products of a feed-forward and its last.
std::int64_t activation_function_saves(const std::vector<Gemm>& products) {
  const Gemm& last = products.back();
  std::int64_t width = 0;
  for (auto product = products.begin(); product != products.end() - 1; ++product) {
    const bool feeds = rows(*product) == rows(last) && product->n % last.k == 0;
    width += feeds ? product->n : 0;
  }
  const std::int64_t gated = width > last.k ? last.k : 0;
  return rows(last) * (width + gated);
}

bool is_norm(const Module& module) {
  return !module.parameters.empty() &&
         std::all_of(module.parameters.begin(), module.parameters.end(),
                     [](const Parameter& parameter) { return parameter.shape.size() == 1; });
}

Saved saved_by(const Module& module, const Batch& batch) {
  if (is_norm(module)) {
    return {.elements = batch.tokens() * module.parameters.front().numel()};
  }
  const std::vector<Gemm> products = products_below(module, batch);
  if (products.empty()) {
    return {};
  }
  Saved out{.elements = product_inputs(products)};
  const std::vector<Gemm> scores = attention_gemms(module, batch);
  if (!scores.empty()) {
    out += attention_saves(products, scores);
  } else {
    out.elements += activation_function_saves(products);
  }
  return out;
}

/// Width of what enters a block: its first norm's, or its first product's.
std::int64_t input_width(const Module& module, const Batch& batch) {
  if (is_norm(module)) {
    return module.parameters.front().numel();
  }
  for (const Module& child : module.children) {
    if (const std::int64_t width = input_width(child, batch); width > 0) {
      return width;
    }
  }
  const std::vector<Gemm> own = forward_gemms(module, batch);
  return own.empty() ? 0 : own.front().k;
}

/// Elements that leave the model: of its last product outside any block.
std::int64_t logit_elements(const ModelSpec& model, const Batch& batch) {
  const std::vector<Gemm> last = products_below(model.root, batch);
  return last.empty() ? 0 : rows(last.back()) * last.back().n;
}

}  // namespace

Activations activations(const ModelSpec& model, const Batch& batch, DType computed,
                        Checkpointing checkpointing) {
  const auto bytes = [&](const Saved& saved) {
    const Bytes sums = bytes_of(saved.softmax_sums, DType::f32);
    return bytes_of(saved.elements, computed) +
           (checkpointing == Checkpointing::selective ? Bytes{} : sums);
  };
  const std::vector<std::string> paths = block_paths(model);
  const std::set<std::string> blocks(paths.begin(), paths.end());
  Activations out;
  std::string block;
  Saved in_block;
  const auto leave_block = [&] {
    if (checkpointing == Checkpointing::full) {
      out.one_block = std::max(out.one_block, bytes(in_block));
    } else {
      out.blocks += bytes(in_block);
    }
    in_block = {};
  };
  for (const ModuleCall& call : model.calls) {
    const Module* module = find_module(model.root, call.module);
    expects(module != nullptr, "a call of a module of the tree");
    if (blocks.contains(call.module)) {
      leave_block();
      block = call.module;
      if (checkpointing == Checkpointing::full) {
        out.blocks += bytes_of(batch.tokens() * input_width(*module, batch), computed);
      }
    }
    if (!block.empty() && is_within(call.module, block)) {
      in_block += saved_by(*module, batch);
    } else {
      out.outside += bytes(saved_by(*module, batch));
    }
  }
  leave_block();
  const std::int64_t logits = logit_elements(model, batch);
  out.logits = bytes_of(logits, computed) + bytes_of(2 * logits, DType::f32);
  return out;
}

}  // namespace fsdp
