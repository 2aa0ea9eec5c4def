#include "src/train/requested_training.hpp"

#include <fmt/format.h>

#include "src/errors.hpp"
#include "src/layout/small_layer.hpp"
#include "src/text/names.hpp"
#include "src/train/models.hpp"
#include "src/train/published_models.hpp"

namespace muonwalk {

std::unique_ptr<Training> requested_training(const TrainingRequest& request, int tp, std::uint64_t seed) {
  const TrainingFileNames& files = request.files;
  if (request.steps < 1 || request.steps > 1000)
    throw UsageError(fmt::format("--steps {} makes no sense; it takes a whole number from 1 to 1000", request.steps));
  if (!request.model.empty() && (request.small || request.toy || !files.params.empty()))
    throw UsageError(fmt::format("--model {} has matrices of its own; leave out {}", as_typed(request.model),
                                 request.small ? "--small"
                                 : request.toy ? "--toy"
                                               : "--params"));
  if (request.toy && (request.small || !files.params.empty()))
    throw UsageError(
        fmt::format("--toy has matrices of its own; leave out {}", request.small ? "--small" : "--params"));
  if (!request.model.empty() && !request.plan)
    throw UsageError(fmt::format("--model {} is too large to run here; add --plan, to see what its ranks would do",
                                 as_typed(request.model)));
  if (!files.params.empty()) return std::make_unique<FileTraining>(files, tp, parse_tp_dims(request.tp_dims));
  if (!files.grads.empty() || !files.out.empty() || !files.frozen.empty() || !request.tp_dims.empty())
    throw UsageError(
        "--grads, --out, --frozen and --tp-dim go with --params, which was not given; add --params FILE.safetensors");
  return std::make_unique<RandomTraining>(!request.model.empty() ? model_parameters(request.model)
                                          : request.small        ? small_parameters()
                                          : request.toy          ? small_layer()
                                                                 : proof_of_concept_parameters(),
                                          request.steps, seed);
}

}  // namespace muonwalk
