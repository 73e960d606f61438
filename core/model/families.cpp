#include "core/model/families.hpp"

#include "core/model/decoder.hpp"
#include "core/model/gpt2.hpp"
#include "core/model/parts.hpp"

namespace fsdp {

ModelSpec gpt2(const std::string& name, const Gpt2Dimensions& d) {
  parts::check_positive("gpt2", {{"hidden", d.hidden},
                                 {"layers", d.layers},
                                 {"heads", d.heads},
                                 {"vocab", d.vocab},
                                 {"positions", d.positions}});
  ModelSpec model = build_gpt2({.vocab = d.vocab,
                                .positions = d.positions,
                                .layers = d.layers,
                                .hidden = d.hidden,
                                .heads = d.heads,
                                .ffn = 4 * d.hidden});
  model.name = name;
  return model;
}

ModelSpec llama(const std::string& name, const LlamaDimensions& d) {
  parts::check_positive("llama", {{"hidden", d.hidden},
                                  {"ffn", d.ffn},
                                  {"layers", d.layers},
                                  {"heads", d.heads},
                                  {"kv_heads", d.kv_heads},
                                  {"vocab", d.vocab}});
  parts::check_divides("llama", {"hidden", d.hidden}, {"heads", d.heads});
  parts::check_divides("llama", {"heads", d.heads}, {"kv_heads", d.kv_heads});
  DecoderShape shape;
  shape.vocab = d.vocab;
  shape.hidden = d.hidden;
  shape.ffn = d.ffn;
  shape.layers = d.layers;
  shape.heads = d.heads;
  shape.kv_heads = d.kv_heads;
  shape.head_dim = d.hidden / d.heads;
  shape.head = d.tied ? Head::tied : Head::separate;
  ModelSpec model = build_decoder(shape);
  model.name = name;
  return model;
}

}  // namespace fsdp
