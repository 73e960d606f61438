#include "core/schedule/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/schedule/access.hpp"
#include "core/schedule/happens_before.hpp"

namespace fsdp {
namespace {

struct Life {
  std::optional<OpId> allocated;
  std::optional<OpId> freed;
  std::optional<OpId> written;  // newest writer
  std::vector<OpId> users;
};

class Verifier {
 public:
  explicit Verifier(const Schedule& schedule)
      : schedule_(schedule), lives_(schedule.buffers.size()) {}

  std::vector<Violation> run() {
    if (!edges_point_back()) {
      return std::move(found_);
    }
    const HappensBefore before(schedule_);
    for (std::size_t i = 0; i < schedule_.ops.size(); ++i) {
      visit({static_cast<std::int32_t>(i)}, before);
    }
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      check_life({static_cast<std::int32_t>(i)}, before);
    }
    check_end(before);
    check_waits(before);
    return std::move(found_);
  }

 private:
  void report(OpId op, std::string what) { found_.push_back({op, std::move(what)}); }

  std::string name(BufferId id) const {
    const Buffer& buffer = schedule_[id];
    const bool known = buffer.unit.valid() && buffer.unit.index() < schedule_.plan.units.size();
    return fmt::format("{}:{}", to_text(buffer.kind),
                       known ? schedule_.plan[buffer.unit].name : std::string("?"));
  }

  bool edges_point_back() {
    for (std::size_t i = 0; i < schedule_.ops.size(); ++i) {
      const OpId id{static_cast<std::int32_t>(i)};
      for (const OpId edge : schedule_.ops[i].after) {
        if (!edge.valid() || edge.index() >= i) {
          report(id, fmt::format("waits for op {}, which is not earlier", edge.value));
        } else if (schedule_[edge].stream == schedule_.ops[i].stream) {
          report(id, fmt::format("waits for op {} of its own stream", edge.value));
        }
      }
    }
    return found_.empty();
  }

  void visit(OpId id, const HappensBefore& before) {
    const Op& op = schedule_[id];
    if (const auto* allocate = std::get_if<Allocate>(&op.work)) {
      on_allocate(id, op, allocate->buffer);
    } else if (const auto* release = std::get_if<Free>(&op.work)) {
      on_free(id, release->buffer);
    }
    const Access access = access_of(op);
    for (const BufferId buffer : access.reads) {
      on_use(id, buffer, before);
      const Life& life = lives_[buffer.index()];
      const bool stands = is_persistent(schedule_[buffer].pool) &&
                          schedule_[buffer].kind != BufferKind::sharded_grad;
      if (!stands && (!life.written || !before(*life.written, id))) {
        report(id, fmt::format("{} reads {} before anything wrote it", name_of(op), name(buffer)));
      }
    }
    for (const BufferId buffer : access.writes) {
      on_use(id, buffer, before);
      lives_[buffer.index()].written = id;
    }
    check_sizes(id, op);
  }

  void on_allocate(OpId id, const Op& op, BufferId buffer) {
    Life& life = lives_[buffer.index()];
    if (life.allocated || is_persistent(schedule_[buffer].pool)) {
      report(id, fmt::format("{} is allocated twice", name(buffer)));
    }
    if (op.stream != stream_of(schedule_[buffer].pool)) {
      report(id, fmt::format("{} is allocated on another stream than its pool's", name(buffer)));
    }
    life.allocated = id;
  }

  void on_free(OpId id, BufferId buffer) {
    Life& life = lives_[buffer.index()];
    if (!life.allocated || life.freed) {
      report(id, fmt::format("{} is freed without being alive", name(buffer)));
    }
    life.freed = id;
  }

  void on_use(OpId id, BufferId buffer, const HappensBefore& before) {
    Life& life = lives_[buffer.index()];
    const bool resident = is_persistent(schedule_[buffer].pool);
    if (!resident && (!life.allocated || !(before(*life.allocated, id)))) {
      report(id, fmt::format("{} is used before it is allocated", name(buffer)));
    }
    if (life.freed) {
      report(id, fmt::format("{} is used after it was freed", name(buffer)));
    }
    life.users.push_back(id);
  }

  /// A pool hands memory on to what is allocated on its stream after the free, so a free must come
  /// after every user but those on that stream, which come before the next allocation anyway.
  void check_life(BufferId buffer, const HappensBefore& before) {
    const Life& life = lives_[buffer.index()];
    if (is_persistent(schedule_[buffer].pool)) {
      return;
    }
    if (!life.allocated || !life.freed) {
      report({},
             fmt::format("{} is never {}", name(buffer), life.allocated ? "freed" : "allocated"));
      return;
    }
    for (const OpId user : life.users) {
      const bool on_pools_stream = schedule_[user].stream == stream_of(schedule_[buffer].pool);
      if (!on_pools_stream && !before(user, *life.freed)) {
        report(*life.freed,
               fmt::format("{} may be freed while op {} uses it", name(buffer), user.value));
      }
    }
  }

  void check_sizes(OpId id, const Op& op) {
    const int ranks = schedule_.plan.mesh.shard;
    const auto mismatch = [&](std::string_view what) {
      report(id, fmt::format("{} {}: {}", name_of(op), schedule_.plan[op.unit].name, what));
    };
    if (const auto* gather = std::get_if<AllGather>(&op.work)) {
      const FsdpUnit& unit = schedule_.plan[op.unit];
      if (gather->recv != unit.gather_shard_numel * ranks ||
          gather->recv != gather->send * gather->group.ranks ||
          schedule_[gather->to].numel != gather->recv) {
        mismatch("sizes differ from the unit's layout");
      }
    } else if (const auto* scatter = std::get_if<ReduceScatter>(&op.work)) {
      if (scatter->send != scatter->recv * scatter->group.ranks ||
          schedule_[scatter->from].numel != scatter->send ||
          schedule_[scatter->to].numel != scatter->recv) {
        mismatch("sizes differ from its buffers");
      }
    } else if (const auto* cast = std::get_if<Cast>(&op.work)) {
      const bool bytes = schedule_[cast->from].dtype == DType::u8 ||
                         schedule_[cast->to].dtype == DType::u8;  // parameters of several dtypes
      if (!bytes && schedule_[cast->from].numel != schedule_[cast->to].numel) {
        mismatch("casts between sizes");
      }
    }
  }

  void check_end(const HappensBefore& before) {
    if (schedule_.ops.empty() || !std::holds_alternative<StepEnd>(schedule_.ops.back().work)) {
      report({}, "the last op is not the end of the step");
      return;
    }
    const OpId end{static_cast<std::int32_t>(schedule_.ops.size() - 1)};
    for (OpId id{0}; id < end; ++id.value) {
      if (!before(id, end)) {
        report(id, fmt::format("{} may still run when the step ends", name_of(schedule_[id])));
      }
    }
  }

  /// Some waits of PyTorch's guard no buffer of this step: they hold a gather back until the step
  /// before, or the micro-batch before, is over. They are known from the rules alone.
  void check_waits(const HappensBefore& before) {
    const Schedule rules = build_schedule(schedule_.plan);
    const auto same = [](const Op& a, const Op& b) {
      return a.work.index() == b.work.index() && a.stream == b.stream && a.unit == b.unit;
    };
    if (!std::equal(rules.ops.begin(), rules.ops.end(), schedule_.ops.begin(), schedule_.ops.end(),
                    same)) {
      return;  // not what this plan's rules give
    }
    for (std::size_t i = 0; i < rules.ops.size(); ++i) {
      const OpId id{static_cast<std::int32_t>(i)};
      for (const OpId edge : rules.ops[i].after) {
        if (!before(edge, id)) {
          report(id, fmt::format("{} does not wait for op {}, as PyTorch does",
                                 name_of(schedule_[id]), edge.value));
        }
      }
    }
  }

  const Schedule& schedule_;
  std::vector<Life> lives_;
  std::vector<Violation> found_;
};

}  // namespace

std::vector<Violation> verify(const Schedule& schedule) { return Verifier(schedule).run(); }

}  // namespace fsdp
