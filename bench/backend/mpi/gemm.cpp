#include "bench/backend/mpi/gemm.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>

#include "core/units/error.hpp"
#include "kernels/cast.hpp"

namespace fsdp::mpi {
namespace {

using dnnl::memory;

constexpr std::size_t alignment = 64;
enum class Role { left, right, product };

memory::data_type dnnl_type(DType dtype) {
  return dtype == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

memory::desc matrix(const Gemm& gemm, std::int64_t rows, std::int64_t columns, DType dtype) {
  if (gemm.batch == 1) {
    return {{rows, columns}, dnnl_type(dtype), memory::format_tag::ab};
  }
  return {{gemm.batch, rows, columns}, dnnl_type(dtype), memory::format_tag::abc};
}

dnnl::matmul::primitive_desc describe_product(const dnnl::engine& engine, const Gemm& gemm,
                                              DType dtype) {
  // Scratch space is ours: oneDNN would allocate its own inside the timed call.
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::matmul::desc product(matrix(gemm, gemm.m, gemm.k, dtype),
                                   matrix(gemm, gemm.k, gemm.n, dtype),
                                   matrix(gemm, gemm.m, gemm.n, dtype));
  return {product, attributes, engine};
}

struct AlignedDelete {
  void operator()(std::byte* data) const { ::operator delete (data, std::align_val_t{alignment}); }
};
using Block = std::unique_ptr<std::byte, AlignedDelete>;

Block allocate_block(std::size_t bytes) {
  return Block(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{alignment})));
}

/// Uniform numbers of [0.5, 1.5): no zeros, no denormals in any product.
void fill_random(const kernels::Array& to) {
  std::minstd_rand bits(1);
  for (std::int64_t i = 0; i < to.numel; ++i) {
    const float value = 0.5F + static_cast<float>(bits() & 0xFFFFU) / 65536.0F;
    if (to.dtype == DType::bf16) {
      to.bf16s()[i] = kernels::to_bf16(value);
    } else {
      to.floats()[i] = value;
    }
  }
}

}  // namespace

/// One primitive and, once allocated, its arguments in the form the C interface takes: the C++
/// interface builds a new vector a call.
struct Gemms::Product {
  dnnl::matmul primitive;
  DType dtype;
  std::array<memory::desc, 3> shapes;
  memory::desc scratch_shape;
  std::vector<memory> memories;
  std::vector<dnnl_exec_arg_t> arguments;
};

struct Gemms::Operands {
  /// Role, dtype and power of two of the bytes.
  using SizeClass = std::tuple<Role, DType, int>;
  std::map<SizeClass, std::size_t> sizes;
  std::map<SizeClass, Block> blocks;
  std::size_t scratch_bytes = 0;
  Block scratch;

  static SizeClass class_of(Role role, DType dtype, std::size_t bytes) {
    return {role, dtype, std::bit_width(bytes)};
  }
  void allocate() {
    for (const auto& [size_class, bytes] : sizes) {
      Block& block = blocks[size_class] = allocate_block(bytes);
      const DType dtype = std::get<DType>(size_class);
      fill_random({block.get(), static_cast<std::int64_t>(bytes) / element_bytes(dtype), dtype});
    }
    scratch = allocate_block(std::max(scratch_bytes, alignment));
    std::fill_n(scratch.get(), scratch_bytes, std::byte{0});
  }
};

GemmEngine::GemmEngine() : engine_(dnnl::engine::kind::cpu, 0) {
  try {
    describe_product(engine_, {.batch = 1, .m = 32, .n = 32, .k = 32}, DType::bf16);
    has_bf16_ = true;
  } catch (const dnnl::error&) {
    has_bf16_ = false;
  }
}

DType GemmEngine::usable(DType wanted) const {
  return wanted == DType::bf16 && has_bf16_ ? DType::bf16 : DType::f32;
}

std::string GemmEngine::describe() const {
  const dnnl_version_t& version = *dnnl_version();
  return fmt::format("oneDNN {}.{}.{}, {}", version.major, version.minor, version.patch,
                     has_bf16_ ? "bf16" : "f32 also where bf16 is asked: this CPU has no bf16");
}

Gemms::Gemms(const GemmEngine& engine)
    : engine_(&engine), stream_(engine.engine()), operands_(std::make_unique<Operands>()) {
  // Ranks share the machine: one thread each, or they fight for cores.
  omp_set_num_threads(1);
}

Gemms::~Gemms() = default;

std::size_t Gemms::add(const Gemm& gemm, DType dtype) {
  expects(gemm.batch > 0 && gemm.m > 0 && gemm.n > 0 && gemm.k > 0,
          "a product has a positive shape");
  const DType used = engine_->usable(dtype);
  const auto [place, is_new] = numbers_.try_emplace({gemm, used}, products_.size());
  if (!is_new) {
    return place->second;
  }
  const auto description = describe_product(engine_->engine(), gemm, used);
  Product product{
      .primitive = dnnl::matmul(description),
      .dtype = used,
      .shapes = {description.src_desc(), description.weights_desc(), description.dst_desc()},
      .scratch_shape = description.scratchpad_desc(),
      .memories = {},
      .arguments = {}};
  for (const Role role : {Role::left, Role::right, Role::product}) {
    const std::size_t bytes = product.shapes[static_cast<std::size_t>(role)].get_size();
    std::size_t& most = operands_->sizes[Operands::class_of(role, used, bytes)];
    most = std::max(most, bytes);
  }
  operands_->scratch_bytes = std::max(operands_->scratch_bytes, product.scratch_shape.get_size());
  products_.push_back(std::move(product));
  return place->second;
}

void Gemms::allocate() {
  operands_->allocate();
  constexpr std::array arguments{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
  for (Product& product : products_) {
    for (const Role role : {Role::left, Role::right, Role::product}) {
      const memory::desc& shape = product.shapes[static_cast<std::size_t>(role)];
      const auto size_class = Operands::class_of(role, product.dtype, shape.get_size());
      product.memories.emplace_back(shape, engine_->engine(),
                                    operands_->blocks.at(size_class).get());
      product.arguments.push_back(
          {arguments[static_cast<std::size_t>(role)], product.memories.back().get()});
    }
    product.memories.emplace_back(product.scratch_shape, engine_->engine(),
                                  operands_->scratch.get());
    product.arguments.push_back({DNNL_ARG_SCRATCHPAD, product.memories.back().get()});
  }
}

void Gemms::run(std::size_t number) {
  const Product& product = products_[number];
  const dnnl_status_t status =
      dnnl_primitive_execute(product.primitive.get(), stream_.get(),
                             static_cast<int>(product.arguments.size()), product.arguments.data());
  expects(status == dnnl_success, "oneDNN runs a product that it has prepared");
}

}  // namespace fsdp::mpi
