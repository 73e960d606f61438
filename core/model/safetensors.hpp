// Models from the weights that are saved of them: names, shapes and element types of safetensors
// files, of which only the header is read, and a module tree made of the dotted names.
// The format: https://huggingface.co/docs/safetensors, section Format.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/model_spec.hpp"

namespace fsdp {

struct SavedTensor {
  std::string name;  ///< "model.layers.0.mlp.up_proj.weight"
  std::vector<std::int64_t> shape;
  DType dtype = DType::f32;
};

/// Bytes at the beginning of a file that say how long its header is.
inline constexpr std::size_t safetensors_prefix_bytes = 8;

/// The length of the header's JSON, which follows the prefix. Throws UsageError where the file of
/// `file_bytes` is too short for it, or where no header is that long.
std::size_t safetensors_header_bytes(std::string_view prefix, std::uint64_t file_bytes);

/// Reads the first bytes of a file: prefix and whole header. Tensors are in the order of their
/// names; a scalar has the shape [1], because FSDP shards nothing else. Throws UsageError that
/// starts "safetensors: " and names the JSON pointer of the offending value.
std::vector<SavedTensor> read_safetensors_header(std::string_view bytes, std::uint64_t file_bytes);

/// Reads model.safetensors.index.json: the name of each tensor and of the file beside the index
/// that holds it. Throws UsageError that starts "safetensors index: ".
std::map<std::string, std::string> read_safetensors_index(std::string_view json);

/// The tree of the modules that the names tell of, in natural order of names, "2" before "10". Its
/// classes are guesses from shapes and names: Linear, Embedding, Conv1D, Norm, Module; numbered
/// modules are a ModuleList, and those in no other list of modules are Blocks. Calls follow the
/// tree, embeddings first, the last norm and the head at the end. Heads of attention and ties are
/// not saved; a tied weight is there once. Integers do not train.
/// Throws UsageError that starts "safetensors: " for names that make no tree.
ModelSpec read_safetensors(const std::vector<SavedTensor>& tensors);

}  // namespace fsdp
