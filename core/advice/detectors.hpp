// One function a kind of waste. Each looks at the schedule, not at the policy's words, wherever the
// schedule can tell.
#pragma once

#include <vector>

#include "core/advice/finding.hpp"

namespace fsdp::detect {

using Found = std::vector<Finding>;

// wrap_findings.cpp: what the wrap rule makes of the model.
void one_unit(const PlanEvidence& evidence, Found& out);
void largest_root(const PlanEvidence& evidence, Found& out);
void size_remainder(const PlanEvidence& evidence, Found& out);
void unwrappable_lists(const PlanEvidence& evidence, Found& out);
void untied_weights(const PlanEvidence& evidence, Found& out);

// gather_findings.cpp: gathers that nothing, or too little, comes of.
void idle_embedding_gather(const PlanEvidence& evidence, Found& out);
void prefetch_without_backward(const PlanEvidence& evidence, Found& out);
void stray_gather(const PlanEvidence& evidence, Found& out);
void freed_and_gathered_again(const PlanEvidence& evidence, Found& out);

// memory_findings.cpp
void three_buffers(const PlanEvidence& evidence, Found& out);

// byte_findings.cpp: bytes that carry no information.
void padded_gather(const PlanEvidence& evidence, Found& out);
void misaligned_shard(const PlanEvidence& evidence, Found& out);
void wide_reduction(const PlanEvidence& evidence, Found& out);
void reduced_frozen(const PlanEvidence& evidence, Found& out);

}  // namespace fsdp::detect
