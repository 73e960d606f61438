#include "core/config/read_safetensors_files.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "core/config/files.hpp"
#include "core/model/safetensors.hpp"

namespace fsdp {
namespace {

[[noreturn]] void fail_at(const std::string& path, const std::string& reason,
                          const std::string& remedy = "") {
  throw ConfigError({.file = path, .line = 0, .column = 0, .key = ""}, reason, remedy);
}

template <class Read>
auto at_file(const std::string& path, Read read) {
  try {
    return read();
  } catch (const UsageError& error) {
    fail_at(path, error.what());
  }
}

std::vector<SavedTensor> read_header(const std::string& path) {
  const FileHead prefix = read_file_head(path, safetensors_prefix_bytes);
  return at_file(path, [&] {
    const std::size_t length = safetensors_header_bytes(prefix.bytes, prefix.file_bytes);
    const FileHead head = read_file_head(path, safetensors_prefix_bytes + length);
    return read_safetensors_header(head.bytes, head.file_bytes);
  });
}

/// The tensors that the index names, from the files that it names for them.
std::vector<SavedTensor> read_shards(const std::string& path) {
  const TextFile index = read_text_file(path);
  const std::map<std::string, std::string> files =
      at_file(path, [&index] { return read_safetensors_index(index.text); });
  std::map<std::string, std::map<std::string, SavedTensor>> shards;
  std::vector<SavedTensor> tensors;
  for (const auto& [name, file] : files) {
    const std::string shard_path =
        (std::filesystem::path(path).parent_path() / file).lexically_normal().string();
    const auto [shard, added] = shards.try_emplace(file);
    if (added) {
      for (SavedTensor& tensor : read_header(shard_path)) {
        std::string key = tensor.name;
        shard->second.emplace(std::move(key), std::move(tensor));
      }
    }
    const auto tensor = shard->second.find(name);
    if (tensor == shard->second.end()) {
      fail_at(shard_path, fmt::format("lacks the tensor '{}' that '{}' says is there", name, path),
              "download both again");
    }
    tensors.push_back(tensor->second);
  }
  return tensors;
}

}  // namespace

ModelSpec read_safetensors_files(const std::string& path) {
  const std::vector<SavedTensor> tensors =
      path.ends_with(".json") ? read_shards(path) : read_header(path);
  return at_file(path, [&tensors] { return read_safetensors(tensors); });
}

}  // namespace fsdp
