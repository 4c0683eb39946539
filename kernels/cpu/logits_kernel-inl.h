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
  const typename S::V wanted = S::Set1(max),
                      infinity = S::Set1(__builtin_inff());
  int i = 0;
  for (; i + S::kLanes <= n; i += S::kLanes) {
    if (S::AnyWithin(S::Load(x + i), wanted, infinity)) break;
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
LogitsMeasure MeasureLogits(const float* x, const float* w, int n,
                            float threshold) {
  using V = typename S::V;
  const V least = S::Set1(threshold), one = S::Set1(1.0f);
  LogitsMeasure result = {0.0, 0.0};
  int i = 0;
  while (i + S::kLanes <= n) {
    const int end = i + kLogitsBlock < n ? i + kLogitsBlock : n;
    // Two chains each, as an addition takes several cycles.
    V counts[2] = {S::Set1(0.0f), S::Set1(0.0f)},
      masses[2] = {counts[0], counts[0]};
    const auto add = [&](int at, int chain) {
      const V v = S::Load(x + at);
      counts[chain] = S::Add(counts[chain], S::SelectGe(v, least, one));
      masses[chain] =
          S::Add(masses[chain], S::SelectGe(v, least, S::Load(w + at)));
    };
    for (; i + 2 * S::kLanes <= end; i += 2 * S::kLanes) {
      add(i, 0);
      add(i + S::kLanes, 1);
    }
    if (i + S::kLanes <= end) {
      add(i, 0);
      i += S::kLanes;
    }
    result.count += SumAcross<S>(S::Add(counts[0], counts[1]));
    result.mass += SumAcross<S>(S::Add(masses[0], masses[1]));
  }
  for (; i < n; ++i) {
    if (!(x[i] >= threshold)) continue;
    result.count += 1.0;
    result.mass += static_cast<double>(w[i]);
  }
  return result;
}

template <class S>
double KeepLogits(const float* x, int n, float threshold, float* w) {
  const typename S::V least = S::Set1(threshold);
  const auto term = [&](int i) {
    const typename S::V kept =
        S::SelectGe(S::Load(x + i), least, S::Load(w + i));
    S::Store(w + i, kept);
    return kept;
  };
  const auto tail = [&](int i, int count) {
    for (int k = i; k < i + count; ++k) {
      if (!(x[k] >= threshold)) w[k] = 0.0f;
    }
    return LoadTail<S>(w + i, count, 0.0f);
  };
  return SumTerms<S>(n, term, tail);
}

template <class S>
int CollectLogits(const float* x, int n, float low, float high,
                  int32_t* found) {
  const typename S::V least = S::Set1(low), bound = S::Set1(high);
  int count = 0;
  for (int i = 0; i < n; i += S::kLanes) {
    if (i + S::kLanes <= n && !S::AnyWithin(S::Load(x + i), least, bound))
      continue;
    const int end = i + S::kLanes < n ? i + S::kLanes : n;
    for (int t = i; t < end; ++t) {
      found[count] = t;
      count += x[t] >= low && x[t] < high;
    }
  }
  return count;
}

template <class S>
LogitsKernel MakeLogitsKernel() {
  return {.max = MaxLogit<S>,
          .find = FindLogit<S>,
          .exp = ExpLogits<S>,
          .measure = MeasureLogits<S>,
          .keep = KeepLogits<S>,
          .collect = CollectLogits<S>};
}

}  // namespace
}  // namespace strata::cpu

#endif  // KERNELS_CPU_LOGITS_KERNEL_INL_H_
