#include "model/cuda/step/slot_records.h"

namespace txl::cuda {

SlotRecords::SlotRecords(int64_t slots, const SamplingLimits& limits,
                         int staged, Stream& stream)
    : stream_(stream), copied_(staged) {
  slots_.limits = limits;
  staged_.limits = limits;
  const int64_t bytes = slots_.record_bytes();
  records_ = Array<unsigned char>(MemoryKind::kDevice, slots * bytes);
  staged_records_ = Array<unsigned char>(MemoryKind::kPinned, staged * bytes);
  slots_.records = records_.data();
  staged_.records = staged_records_.data();
  Write(0, SamplingParams(), SlotContext());
  for (int32_t slot = 1; slot < slots; ++slot) {
    stream_.Copy(slots_.slot(slot), slots_.slot(0), static_cast<size_t>(bytes));
  }
}

void SlotRecords::Write(int32_t slot, const SamplingParams& params,
                        const SlotContext& context) {
  const int32_t index =
      static_cast<int32_t>(written_++ % static_cast<int64_t>(copied_.size()));
  copied_[index].Wait();
  FillSamplingSlot(params, context, staged_, index);
  stream_.Copy(slots_.slot(slot), staged_.slot(index),
               static_cast<size_t>(slots_.record_bytes()));
  stream_.Record(copied_[index]);
}

void SlotRecords::Configure(int32_t slot, const SamplingParams& params,
                            const SampleContext& context) {
  Write(slot, params,
        {context.recent_ids, context.banned_ids, context.position});
}

void SlotRecords::ForgetLast(int32_t slot) {
  // -1 in every byte's bits.
  stream_.Fill(&slots_.slot(slot)->last_sampled, 0xff,
               sizeof(SamplingSlot::last_sampled));
}

}  // namespace txl::cuda
