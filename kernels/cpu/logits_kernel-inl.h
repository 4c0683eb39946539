#ifndef KERNELS_CPU_LOGITS_KERNEL_INL_H_
#define KERNELS_CPU_LOGITS_KERNEL_INL_H_

// The passes of LogitsKernel over a type S of vector operations, under the
// conditions of attention_kernel-inl.h.
namespace strata::cpu {
namespace {

// The last n % kLanes elements, filled up with `padding`.
template <class S>
typename S::V LoadTail(const float* x, int count, float padding) {
  float lanes[S::kLanes];
  for (int i = 0; i < S::kLanes; ++i) lanes[i] = i < count ? x[i] : padding;
  return S::Load(lanes);
}

template <class S>
double SumAcross(typename S::V v) {
  float lanes[S::kLanes];
  S::Store(lanes, v);
  double sum = 0.0;
  for (int i = 0; i < S::kLanes; ++i) sum += static_cast<double>(lanes[i]);
  return sum;
}

// Sums term(i) over vectors i of n elements, and tail(i, count) for the last
// incomplete one.  Two chains of sums, as an addition takes several cycles.
template <class S, class Term, class Tail>
double SumTerms(int n, Term term, Tail tail) {
  double sum = 0.0;
  int i = 0;
  while (i + S::kLanes <= n) {
    const int end = i + kLogitsBlock < n ? i + kLogitsBlock : n;
    typename S::V even = S::Set1(0.0f), odd = even;
    for (; i + 2 * S::kLanes <= end; i += 2 * S::kLanes) {
      even = S::Add(even, term(i));
      odd = S::Add(odd, term(i + S::kLanes));
    }
    if (i + S::kLanes <= end) {
      even = S::Add(even, term(i));
      i += S::kLanes;
    }
    sum += SumAcross<S>(S::Add(even, odd));
  }
  if (i < n) sum += SumAcross<S>(tail(i, n - i));
  return sum;
}

template <class S>
float MaxLogit(const float* x, int n) {
  using V = typename S::V;
  const V one = S::Set1(1.0f);
  V max0 = S::Set1(-__builtin_inff()), max1 = max0;
  V not_nan = one;  // lanes become 0 at a NaN
  int i = 0;
  for (; i + 2 * S::kLanes <= n; i += 2 * S::kLanes) {
    const V a = S::Load(x + i), b = S::Load(x + i + S::kLanes);
    max0 = S::Max(max0, a);
    max1 = S::Max(max1, b);
    not_nan = S::SelectGe(a, a, S::SelectGe(b, b, not_nan));
  }
  for (; i < n; i += S::kLanes) {
    const int count = n - i < S::kLanes ? n - i : S::kLanes;
    const V a = LoadTail<S>(x + i, count, -__builtin_inff());
    max0 = S::Max(max0, a);
    not_nan = S::SelectGe(a, a, not_nan);
  }
  if (SumAcross<S>(not_nan) != S::kLanes) return __builtin_nanf("");
  return S::MaxAcross(S::Max(max0, max1));
}

template <class S>
int FindLogit(const float* x, int n, float max) {
  const typename S::V wanted = S::Set1(max);
  int i = 0;
  for (; i + S::kLanes <= n; i += S::kLanes) {
    if (S::MaxAcross(S::SelectGe(S::Load(x + i), wanted, S::Set1(1.0f))) > 0.0f)
      break;
  }
  while (i + 1 < n && !(x[i] >= max)) ++i;
  return i;
}

template <class S>
double ExpLogits(const float* x, int n, float max, float scale, float* w) {
  using V = typename S::V;
  const V shift = S::Set1(max), factor = S::Set1(scale);
  const auto exp = [&](V v) {
    return S::Exp(S::Mul(S::Sub(v, shift), factor));
  };
  const auto term = [&](int i) {
    const V e = exp(S::Load(x + i));
    if (w != nullptr) S::Store(w + i, e);
    return e;
  };
  const auto tail = [&](int i, int count) {
    const V e = exp(LoadTail<S>(x + i, count, -__builtin_inff()));
    float lanes[S::kLanes];
    S::Store(lanes, e);
    for (int k = 0; w != nullptr && k < count; ++k) w[i + k] = lanes[k];
    return e;
  };
  return SumTerms<S>(n, term, tail);
}

template <class S>
double MassOfLogits(const float* x, const float* w, int n, float threshold) {
  const typename S::V least = S::Set1(threshold);
  return SumTerms<S>(
      n,
      [&](int i) { return S::SelectGe(S::Load(x + i), least, S::Load(w + i)); },
      [&](int i, int count) {
        return S::SelectGe(LoadTail<S>(x + i, count, 0.0f), least,
                           LoadTail<S>(w + i, count, 0.0f));
      });
}

template <class S>
double CountLogits(const float* x, int n, float threshold) {
  const typename S::V least = S::Set1(threshold), one = S::Set1(1.0f);
  return SumTerms<S>(
      n, [&](int i) { return S::SelectGe(S::Load(x + i), least, one); },
      [&](int i, int count) {
        const float ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        return S::SelectGe(LoadTail<S>(x + i, count, 0.0f), least,
                           LoadTail<S>(ones, count, 0.0f));
      });
}

template <class S>
LogitsKernel MakeLogitsKernel() {
  return {.max = MaxLogit<S>,
          .find = FindLogit<S>,
          .exp = ExpLogits<S>,
          .mass = MassOfLogits<S>,
          .count = CountLogits<S>};
}

}  // namespace
}  // namespace strata::cpu

#endif  // KERNELS_CPU_LOGITS_KERNEL_INL_H_
