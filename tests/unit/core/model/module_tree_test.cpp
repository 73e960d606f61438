#include "core/model/module_tree.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/model/families.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

void expect_same(const Module& a, const Module& b) {
  EXPECT_EQ(a.path, b.path);
  EXPECT_EQ(a.class_name, b.class_name);
  EXPECT_EQ(a.attention.has_value(), b.attention.has_value());
  if (a.attention && b.attention) {
    EXPECT_EQ(a.attention->heads, b.attention->heads);
    EXPECT_EQ(a.attention->head_dim, b.attention->head_dim);
  }
  ASSERT_EQ(a.parameters.size(), b.parameters.size()) << a.path;
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    EXPECT_EQ(a.parameters[i].name, b.parameters[i].name);
    EXPECT_EQ(a.parameters[i].shape, b.parameters[i].shape);
    EXPECT_EQ(a.parameters[i].dtype, b.parameters[i].dtype);
    EXPECT_EQ(a.parameters[i].trainable, b.parameters[i].trainable);
    EXPECT_EQ(a.parameters[i].tied_to, b.parameters[i].tied_to);
  }
  ASSERT_EQ(a.children.size(), b.children.size()) << a.path;
  for (std::size_t i = 0; i < a.children.size(); ++i) {
    expect_same(a.children[i], b.children[i]);
  }
}

void expect_round_trip(const ModelSpec& model) {
  const ModelSpec read = read_module_tree(write_module_tree(model));
  EXPECT_EQ(read.name, model.name);
  EXPECT_EQ(read.scaling, model.scaling);
  expect_same(read.root, model.root);
  ASSERT_EQ(read.calls.size(), model.calls.size());
  for (std::size_t i = 0; i < read.calls.size(); ++i) {
    EXPECT_EQ(read.calls[i].module, model.calls[i].module);
    EXPECT_EQ(read.calls[i].input_requires_grad, model.calls[i].input_requires_grad);
  }
}

TEST(ModuleTree, GeneratedModelsRoundTrip) {
  expect_round_trip(
      llama("l", {.hidden = 64, .ffn = 160, .layers = 3, .heads = 4, .kv_heads = 2, .vocab = 96}));
  ModelSpec model = gpt2("g \"quoted\"", {.hidden = 8, .layers = 2, .heads = 2});
  model.scaling = "layers 12 -> 2";
  model.root.children[0].children[0].parameters[0].trainable = false;
  model.root.children[0].children[1].parameters[0].dtype = DType::bf16;
  expect_round_trip(model);
}

TEST(ModuleTree, RandomLlamasRoundTrip) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 40; ++i) {
    const auto positive = [&random](std::uint64_t most) {
      return 1 + static_cast<std::int64_t>(random() % most);
    };
    const std::int64_t kv_heads = positive(4);
    const std::int64_t heads = kv_heads * positive(4);
    expect_round_trip(llama("l", {.hidden = heads * positive(16),
                                  .ffn = positive(64),
                                  .layers = positive(4),
                                  .heads = heads,
                                  .kv_heads = kv_heads,
                                  .vocab = positive(100),
                                  .tied = i % 2 == 0}));
  }
}

TEST(ModuleTree, OptionalKeysHaveDefaults) {
  const ModelSpec model = read_module_tree(
      R"({"root": {"name": "", "class": "Net", "parameters": [{"name": "w", "shape": [3, 2],
          "tied_to": null}]}, "calls": [{"module": "", "input_requires_grad": false}]})");
  EXPECT_EQ(model.name, "Net");
  EXPECT_EQ(model.scaling, "");
  const Parameter& parameter = model.root.parameters.at(0);
  EXPECT_EQ(parameter.dtype, DType::f32);
  EXPECT_TRUE(parameter.trainable);
  EXPECT_EQ(parameter.tied_to, "");
}

std::string refusal(const std::string& json) {
  try {
    read_module_tree(json);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

/// A tree with one child whose parameters are `parameters`.
std::string with_parameters(const std::string& parameters) {
  return R"({"root": {"name": "", "class": "N", "children": [{"name": "a", "class": "L",
      "parameters": [)" +
         parameters + R"(]}]}, "calls": [{"module": "", "input_requires_grad": false}]})";
}

struct BadTree {
  std::string json;
  std::string message;  ///< a part of it
};

TEST(ModuleTree, RefusalsPointAtTheValue) {
  const std::string calls = R"("calls": [{"module": "", "input_requires_grad": false}])";
  const std::string root = R"("root": {"name": "", "class": "N"})";
  const std::string first = "/root/children/0/parameters/0";
  const BadTree cases[] = {
      {"{\"root\": ", "module tree: not JSON: "},
      {"[]", "module tree: /: must be an object, is array"},
      {"{" + calls + "}", "/: lacks the key 'root'"},
      {"{" + root + "}", "/: lacks the key 'calls'"},
      {"{" + root + ", " + calls + ", \"extra\": 1}", "/extra: unknown key; known here: root"},
      {"{" + root + ", \"calls\": {}}", "/calls: must be a list, is object"},
      {"{" + root + ", \"calls\": []}", "/calls: must begin with the call of the root"},
      {"{" + root + R"(, "calls": [{"module": "x", "input_requires_grad": true}]})",
       "/calls/0/module: the tree has no module 'x'"},
      {"{" + root + R"(, "calls": [{"module": "", "input_requires_grad": 1}]})",
       "/calls/0/input_requires_grad: must be true or false, is number"},
      {"{" + root + R"(, "calls": [{"module": ""}]})",
       "/calls/0: lacks the key 'input_requires_grad'"},
      {R"({"root": {"name": "x", "class": "N"}, )" + calls + "}",
       "/root/name: the root's name must be ''"},
      {R"({"root": {"name": "", "class": 3}, )" + calls + "}",
       "/root/class: must be a string, is number"},
      {R"({"root": {"name": "", "class": "N", "children": [{"name": "a", "class": "L", "children":
          [{"name": "b", "class": "L"}]}]}, )" +
           calls + "}",
       "/root/children/0/children/0/name: 'b' is not below its parent 'a'"},
      {R"({"root": {"name": "", "class": "N", "children": [{"name": "a", "class": "L"},
          {"name": "a", "class": "L"}]}, )" +
           calls + "}",
       "/root/children/1/name: a second module named 'a'"},
      {R"({"root": {"name": "", "class": "N", "attention": {"heads": 0, "head_dim": 1}}, )" +
           calls + "}",
       "/root/attention/heads: must be 1 or more, is 0"},
      {with_parameters(R"({"name": "w", "shape": [-3]})"),
       first + "/shape/0: must be 1 or more, is -3"},
      {with_parameters(R"({"name": "w", "shape": [2, 1.5]})"),
       first + "/shape/1: must be a whole number, is 1.5"},
      {with_parameters(R"({"name": "w", "shape": [18446744073709551615]})"),
       first + "/shape/0: must be 1 or more"},
      {with_parameters(R"({"name": "w", "shape": [16777216, 33554432]})"),
       first + "/shape: more than 2^48 elements"},
      {with_parameters(R"({"name": "w", "shape": []})"), first + "/shape: is a scalar"},
      {with_parameters(R"({"name": "w", "shape": 3})"), first + "/shape: must be a list"},
      {with_parameters(R"({"name": "", "shape": [3]})"), first + "/name: a parameter needs a name"},
      {with_parameters(R"({"name": "w", "shape": [3], "dtype": "float32"})"),
       first + "/dtype: unknown dtype 'float32'; known: f32, bf16"},
      {with_parameters(R"({"name": "w", "shape": [3], "trainable": "no"})"),
       first + "/trainable: must be true or false, is string"},
      {with_parameters(R"({"name": "w", "shape": [3]}, {"name": "w", "shape": [3]})"),
       "/root/children/0/parameters/1/name: a second parameter named 'a.w'"},
      {with_parameters(R"({"name": "w", "shape": [3], "tied_to": "a.v"})"),
       first + "/tied_to: 'a.v' is no parameter that owns its storage"},
      {with_parameters(R"({"name": "w", "shape": [3], "tied_to": "a.w"})"),
       first + "/tied_to: 'a.w' is no parameter that owns its storage"},
      {with_parameters(
           R"({"name": "v", "shape": [4]}, {"name": "w", "shape": [3], "tied_to": "a.v"})"),
       "/root/children/0/parameters/1/tied_to: 'a.v' has another shape or dtype than 'a.w'"},
  };
  for (const BadTree& bad : cases) {
    EXPECT_NE(refusal(bad.json).find(bad.message), std::string::npos)
        << bad.json << "\n  gave: " << refusal(bad.json);
  }
}

TEST(ModuleTree, DeepNestingIsRefusedAndNotFollowed) {
  std::string json = R"({"root": )";
  std::string path;
  std::string closing;
  for (int depth = 0; depth < 200; ++depth) {
    json += R"({"name": ")" + path + R"(", "class": "N", "children": [)";
    path += path.empty() ? "a" : ".a";
    closing += "]}";
    path = path.substr(0, 400);
  }
  EXPECT_NE(refusal(json + closing + R"(, "calls": []})").find("nested deeper than 128"),
            std::string::npos);
  EXPECT_NE(refusal(std::string(100'000, '[')).find("nested deeper than"), std::string::npos);
}

TEST(ModuleTree, DamagedTextIsReadOrRefused) {
  const std::string whole = write_module_tree(llama(
      "l",
      {.hidden = 8, .ffn = 4, .layers = 1, .heads = 2, .kv_heads = 1, .vocab = 4, .tied = true}));
  std::mt19937_64 random(11);
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    const std::size_t at = static_cast<std::size_t>(random() % text.size());
    switch (random() % 3) {
      case 0:
        text[at] = static_cast<char>(random() % 256);
        break;
      case 1:
        text.erase(at, 1 + static_cast<std::size_t>(random() % 30));
        break;
      default:
        text.insert(at, text.substr(static_cast<std::size_t>(random() % text.size()), 20));
        break;
    }
    try {
      read_module_tree(text);
    } catch (const UsageError&) {
      // The only answer besides a model; anything else leaves the test.
    }
  }
}

}  // namespace
}  // namespace fsdp
