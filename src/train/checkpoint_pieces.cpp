#include "src/train/checkpoint_pieces.hpp"

#include <algorithm>

namespace muonwalk {

StateForm StateForm::of(const SavedState& saved) {
  StateForm form{saved.optimizer, {{"weights", /*whole=*/true, kEveryBuffer}}};
  for (const SavedBuckets& each : saved.kept) form.held.push_back({each.name, each.whole, each.buffer});
  return form;
}

StateForm StateForm::at(const Layout& layout, const Place& place, Optimizer& optimizer) {
  optimizer.start(layout, place, zero_buckets(layout));
  return of(optimizer.save());
}

const Buckets& values_of(const SavedState& saved, std::size_t held) {
  return held == 0 ? saved.weights : saved.kept.at(held - 1).buckets;
}

std::vector<BucketNumber> buckets_of(const Layout& layout, const HeldForm& form) {
  std::vector<BucketNumber> all = layout.all_buckets();
  all.erase(std::remove_if(all.begin(), all.end(), [&](BucketNumber each) { return !form.covers(each.buffer); }),
            all.end());
  return all;
}

Range held_range(const Layout& layout, const HeldForm& form, BucketNumber number, const Place& place) {
  return form.whole ? layout.bucket(number).range : layout.dp_slice(number.buffer, number.bucket, place.dp);
}

std::vector<ParameterPart> parts_held(const Layout& layout, const HeldForm& form, BucketNumber number,
                                      const Place& place) {
  const Buffer& buffer = layout.buffers[static_cast<std::size_t>(number.buffer)];
  const Range held = held_range(layout, form, number, place);
  std::vector<ParameterPart> parts;
  for (const int index : buffer.buckets[static_cast<std::size_t>(number.bucket)].parameters) {
    const DistMeta& meta = buffer.parameters[static_cast<std::size_t>(index)];
    const Range mine = intersection(meta.global_range, held);
    if (!mine.empty()) parts.push_back({&meta, mine});
  }
  return parts;
}

std::vector<ParameterPart> parts_given(const Layout& layout, const HeldForm& form, BucketNumber number,
                                       const Place& place) {
  if (form.whole && place.dp > 0) return {};
  std::vector<ParameterPart> parts = parts_held(layout, form, number, place);
  if (place.tp == 0) return parts;
  const auto replicated = [](const ParameterPart& part) { return part.meta->tp_split_dim == SplitDim::none; };
  parts.erase(std::remove_if(parts.begin(), parts.end(), replicated), parts.end());
  return parts;
}

Index part_elements(const std::vector<ParameterPart>& parts) {
  Index elements = 0;
  for (const ParameterPart& part : parts) elements += part.range.size();
  return elements;
}

}  // namespace muonwalk
