#include "core/schedule/access.hpp"

namespace fsdp {
namespace {

struct Of {
  Access operator()(const Cast& w) const { return {{w.from}, {w.to}}; }
  Access operator()(const CopyIn& w) const { return {{w.from}, {w.to}}; }
  Access operator()(const AllGather& w) const { return {{w.buffer}, {w.buffer}}; }
  Access operator()(const CopyOut& w) const { return {{w.from}, {w.to}}; }
  Access operator()(const Compute& w) const {
    return {w.parameters.valid() ? std::vector{w.parameters} : std::vector<BufferId>{},
            w.gradients};
  }
  Access operator()(const ChunkCat& w) const { return {w.from, {w.to}}; }
  Access operator()(const ReduceScatter& w) const { return {{w.from}, {w.to}}; }
  Access operator()(const AllReduce& w) const { return {{w.buffer}, {w.buffer}}; }
  Access operator()(const Allocate&) const { return {}; }
  Access operator()(const Free&) const { return {}; }
  Access operator()(const StepEnd&) const { return {}; }
};

}  // namespace

Access access_of(const Op& op) { return std::visit(Of{}, op.work); }

}  // namespace fsdp
