#include "core/model/vit.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/units/error.hpp"

namespace fsdp {
namespace {

using parts::Bias;
using parts::leaf;
using parts::linear;
using parts::parent;

Module embeddings(const std::string& path, const VitShape& d) {
  const std::int64_t patches = (d.image_height / d.patch_height) * (d.image_width / d.patch_width);
  if (patches < 1) {
    throw UsageError("vit: a patch is larger than the image");
  }
  const std::string projection = path + ".patch_embeddings.projection";
  Parameter bias = parts::weight({d.hidden});
  bias.name = "bias";
  Module made =
      parent(path, "ViTEmbeddings",
             {parent(path + ".patch_embeddings", "ViTPatchEmbeddings",
                     {leaf(projection, "Conv2d",
                           {parts::weight({d.hidden, d.channels, d.patch_height, d.patch_width}),
                            std::move(bias)})}),
              leaf(path + ".dropout", "Dropout")});
  made.parameters = {parts::weight({1, 1, d.hidden}), parts::weight({1, patches + 1, d.hidden})};
  made.parameters[0].name = "cls_token";
  made.parameters[1].name = "position_embeddings";
  return made;
}

Module layer(const std::string& path, const VitShape& d) {
  const auto square = [&](const char* name, Bias bias) {
    return linear(path + name, {.out = d.hidden, .in = d.hidden, .bias = bias});
  };
  Module attention =
      parent(path + ".attention", "ViTAttention",
             {square(".attention.q_proj", d.qkv_bias), square(".attention.k_proj", d.qkv_bias),
              square(".attention.v_proj", d.qkv_bias), square(".attention.o_proj", Bias::yes)});
  attention.attention = Attention{.heads = d.heads, .head_dim = d.hidden / d.heads};
  Module made = parent(path, "ViTLayer", {});
  made.children.push_back(std::move(attention));
  made.children.push_back(parts::layer_norm(path + ".layernorm_before", d.hidden));
  made.children.push_back(parts::layer_norm(path + ".layernorm_after", d.hidden));
  made.children.push_back(
      parent(path + ".mlp", "ViTMLP",
             {leaf(path + ".mlp.activation_fn", d.activation),
              linear(path + ".mlp.fc1", {.out = d.ffn, .in = d.hidden, .bias = Bias::yes}),
              linear(path + ".mlp.fc2", {.out = d.hidden, .in = d.ffn, .bias = Bias::yes})}));
  made.children.push_back(leaf(path + ".dropout", "Dropout"));
  return made;
}

std::vector<ModuleCall> calls(const std::string& inner, const VitShape& d) {
  // Pixels need no gradient; everything after the patch embedding does.
  parts::CallList list;
  list.without_gradient("");
  if (!inner.empty()) {
    list.without_gradient(inner);
  }
  for (const char* name :
       {"embeddings", "embeddings.patch_embeddings", "embeddings.patch_embeddings.projection"}) {
    list.without_gradient(join_path(inner, name));
  }
  list.below(inner, {"embeddings.dropout"});
  for (std::int64_t i = 0; i < d.layers; ++i) {
    const std::string path = join_path(inner, fmt::format("layers.{}", i));
    list.add(path);
    // One dropout module runs after the attention and after the MLP.
    list.below(path, {"layernorm_before", "attention", "attention.q_proj", "attention.k_proj",
                      "attention.v_proj", "attention.o_proj", "dropout", "layernorm_after", "mlp",
                      "mlp.fc1", "mlp.activation_fn", "mlp.fc2", "dropout"});
  }
  list.below(inner, {"layernorm"});
  if (d.head == VitHead::classifier) {
    list.add("classifier");
  } else {
    list.below(inner, {"pooler", "pooler.dense", "pooler.activation"});
  }
  return list.take();
}

Module classifier(const VitShape& d) {
  return d.labels == 0 ? leaf("classifier", "Identity")
                       : linear("classifier", {.out = d.labels, .in = d.hidden, .bias = Bias::yes});
}

}  // namespace

ModelSpec build_vit(const VitShape& d) {
  parts::check_divides("vit", {"hidden", d.hidden}, {"heads", d.heads});
  const bool classifies = d.head == VitHead::classifier;
  const std::string inner = classifies ? "vit" : "";
  std::vector<Module> layers;
  for (std::int64_t i = 0; i < d.layers; ++i) {
    layers.push_back(layer(join_path(inner, fmt::format("layers.{}", i)), d));
  }
  Module root = parent(inner, "ViTModel", {});
  root.children.push_back(embeddings(join_path(inner, "embeddings"), d));
  root.children.push_back(parent(join_path(inner, "layers"), "ModuleList", std::move(layers)));
  root.children.push_back(parts::layer_norm(join_path(inner, "layernorm"), d.hidden));
  if (classifies) {
    Module vit = std::move(root);
    root = parent("", "ViTForImageClassification", {});
    root.children.push_back(std::move(vit));
    root.children.push_back(classifier(d));
  } else {
    root.children.push_back(
        parent("pooler", "ViTPooler",
               {linear("pooler.dense", {.out = d.pooler_width, .in = d.hidden, .bias = Bias::yes}),
                leaf("pooler.activation", d.pooler_activation)}));
  }
  ModelSpec model;
  model.name = root.class_name;
  model.root = std::move(root);
  model.calls = calls(inner, d);
  return model;
}

}  // namespace fsdp
