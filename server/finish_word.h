#ifndef SERVER_FINISH_WORD_H_
#define SERVER_FINISH_WORD_H_

#include "core/token_sink.h"

namespace strata {

// What clients of vLLM, by its own protocol or through Triton, know it as.
inline const char* FinishWord(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAborted:
      return "abort";
  }
  return "";
}

}  // namespace strata

#endif  // SERVER_FINISH_WORD_H_
