#include "bench/backend/mpi/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <type_traits>

#include "bench/backend/mpi/error.hpp"
#include "bench/backend/mpi/step_program.hpp"

namespace fsdp::mpi {
namespace {

bool contains(const std::vector<DType>& dtypes, DType dtype) {
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

void refuse_mesh(const DeviceMesh& mesh, int ranks) {
  if (mesh.replicate > 1) {
    throw Unsupported(
        fmt::format("the mpi backend has no replicate groups: the mesh asks for {} replicas of {} "
                    "ranks. Use replicate 1, or the sim backend",
                    mesh.replicate, mesh.shard));
  }
  if (mesh.world() != ranks) {
    throw Unsupported(
        fmt::format("the mesh has {} ranks (shard {}, replicate {}), this job has {}. Start as "
                    "many ranks as the mesh has, or change the mesh",
                    mesh.world(), mesh.shard, mesh.replicate, ranks));
  }
}

void refuse_dtype(const std::vector<DType>& known, DType dtype, const std::string& where) {
  if (!contains(known, dtype)) {
    throw Unsupported(
        fmt::format("the mpi backend does not do {} in {}. Use f32 or bf16, or the sim backend",
                    to_text(dtype), where));
  }
}

void refuse_count(std::int64_t count, const std::string& where) {
  if (count > std::numeric_limits<int>::max()) {
    throw Unsupported(
        fmt::format("{} moves {} elements a rank, more than the {} of one MPI call. Use smaller "
                    "units or more ranks",
                    where, count, std::numeric_limits<int>::max()));
  }
}

/// FSDP1, sub-groups, accumulation and offload ask for work that only the simulator knows.
bool has_code(const Work& work) {
  return std::visit(
      [](const auto& w) {
        using W = std::decay_t<decltype(w)>;
        if constexpr (std::is_same_v<W, AllGather>) {
          return w.in_place();
        } else if constexpr (std::is_same_v<W, Compute>) {
          return w.adds_to.empty();
        } else {
          return !(std::is_same_v<W, ReshardToSubmesh> || std::is_same_v<W, Concat> ||
                   std::is_same_v<W, Divide> || std::is_same_v<W, Accumulate> ||
                   std::is_same_v<W, HostToDevice> || std::is_same_v<W, DeviceToHost> ||
                   std::is_same_v<W, HostWait>);
        }
      },
      work);
}

void refuse_collective(const Op& op, const Capabilities& capabilities, const std::string& where) {
  if (op.stream == Stream::compute) {
    throw Unsupported(fmt::format(
        "{}: the mpi backend runs collectives on its communication thread only", where));
  }
  if (const auto* gather = std::get_if<AllGather>(&op.work)) {
    refuse_dtype(capabilities.gather_dtypes, gather->dtype, where);
    refuse_count(gather->send, where);
  } else if (const auto* reduce = std::get_if<ReduceScatter>(&op.work)) {
    refuse_dtype(capabilities.reduce_dtypes, reduce->dtype, where);
    refuse_count(reduce->recv, where);
  } else {
    throw Unsupported(fmt::format("{}: the mpi backend has no replicate groups", where));
  }
  if (group_of(op)->kind != GroupKind::shard) {
    throw Unsupported(
        fmt::format("{}: the mpi backend has one communicator, over the shard group, and none for "
                    "the {} group",
                    where, to_text(group_of(op)->kind)));
  }
}

/// The first line of what the loaded library says of itself.
std::string loaded_mpi_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check(MPI_Get_library_version(text.data(), &length), "asking for MPI's version");
  std::string version(text.data(), static_cast<std::size_t>(length));
  version.erase(std::min(version.find('\n'), version.size()));
  std::replace(version.begin(), version.end(), '\t', ' ');
  return version;
}

}  // namespace

void refuse_unsupported(const Schedule& schedule, const Capabilities& capabilities, int ranks) {
  refuse_mesh(schedule.plan.mesh, ranks);
  for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    const OpId id{static_cast<std::int32_t>(i)};
    if (!has_code(op.work)) {
      throw Unsupported(
          fmt::format("{}: the mpi backend does not run this operation yet. Use the "
                      "sim backend, or a policy without it",
                      describe(schedule, id)));
    }
    if (is_collective(op)) {
      refuse_collective(op, capabilities, describe(schedule, id));
    } else if (const auto* compute = std::get_if<Compute>(&op.work)) {
      refuse_dtype(capabilities.gather_dtypes, compute->dtype, describe(schedule, id));
      if (op.stream != Stream::compute) {
        throw Unsupported(fmt::format("{}: the mpi backend computes on the compute stream only",
                                      describe(schedule, id)));
      }
    }
  }
  for (const Buffer& buffer : schedule.buffers) {
    refuse_dtype(
        capabilities.gather_dtypes, buffer.dtype,
        fmt::format("the {} of unit {}", to_text(buffer.kind), schedule.plan[buffer.unit].name));
  }
}

MpiExecutor::MpiExecutor(const Setup& setup, const std::optional<FaultInjection>& fault)
    : fault_(fault),
      context_{.communicator = std::make_shared<const Communicator>(setup.world),
               .gemm_engine = std::make_shared<const GemmEngine>(),
               .policy = setup.policy,
               .timeout = setup.timeout},
      capabilities_{.backend = "mpi",
                    .measures = true,
                    .gather_dtypes = {DType::f32, DType::bf16},
                    .reduce_dtypes = {DType::f32, DType::bf16},
                    .replicate_groups = false,
                    .compute = context_.gemm_engine->describe(),
                    .libraries = {{"MPI", loaded_mpi_version()}}} {}

std::unique_ptr<PreparedStep> MpiExecutor::prepare(const Schedule& schedule) {
  refuse_unsupported(schedule, capabilities_, context_.communicator->size());
  const auto not_enough = [&] {
    return EnvironmentError(fmt::format(
        "not enough memory on rank {} for a step whose arenas take {}. Use a smaller model or "
        "micro-batch, or fewer ranks on this machine",
        context_.communicator->rank(), to_text(layout_arenas(schedule).total())));
  };
  try {
    return std::make_unique<MpiStep>(schedule, context_, fault_);
  } catch (const std::bad_alloc&) {
    throw not_enough();
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) {
      throw not_enough();
    }
    throw EnvironmentError(fmt::format("oneDNN cannot prepare the products: {}", error.what()));
  }
}

}  // namespace fsdp::mpi
