// How ranks are arranged: `replicate` copies of a shard group of `shard` consecutive ranks.
#pragma once

namespace fsdp {

struct DeviceMesh {
  int replicate = 1;
  int shard = 1;

  int world() const { return replicate * shard; }
};

}  // namespace fsdp
