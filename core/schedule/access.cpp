#include "core/schedule/access.hpp"

namespace fsdp {
namespace {

struct Of {
  Access operator()(const Cast& w) const { return {{w.from}, {w.to}}; }
  Access operator()(const CopyIn& w) const { return {{w.from}, {w.to}}; }
  Access operator()(const AllGather& w) const { return {{w.from}, {w.to}}; }
  Access operator()(const CopyOut& w) const {
    return {{w.from}, w.chunks.valid() ? std::vector{w.to, w.chunks} : std::vector{w.to}};
  }
  Access operator()(const ReshardToSubmesh& w) const { return {{w.from}, {w.to}}; }
  Access operator()(const Compute& w) const {
    Access out{w.adds_to, w.gradients};
    if (w.parameters.valid()) {
      out.reads.push_back(w.parameters);
    }
    out.writes.insert(out.writes.end(), w.adds_to.begin(), w.adds_to.end());
    return out;
  }
  Access operator()(const Concat& w) const { return {w.from, {w.to}}; }
  Access operator()(const ChunkCat& w) const { return {w.from, {w.to}}; }
  Access operator()(const ReduceScatter& w) const { return {{w.from}, {w.to}}; }
  Access operator()(const AllReduce& w) const { return {{w.buffer}, {w.buffer}}; }
  Access operator()(const Divide& w) const { return {{w.buffer}, {w.buffer}}; }
  Access operator()(const Accumulate& w) const { return {{w.from, w.to}, {w.to}}; }
  Access operator()(const HostToDevice& w) const { return {{w.from}, {w.to}}; }
  Access operator()(const DeviceToHost& w) const { return {{w.from}, {w.to}}; }
  Access operator()(const HostWait&) const { return {}; }
  Access operator()(const Allocate&) const { return {}; }
  Access operator()(const Free&) const { return {}; }
  Access operator()(const StepEnd&) const { return {}; }
};

}  // namespace

Access access_of(const Op& op) { return std::visit(Of{}, op.work); }

}  // namespace fsdp
