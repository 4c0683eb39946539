#ifndef SERVER_ENGINE_CALL_H_
#define SERVER_ENGINE_CALL_H_

#include <functional>

#include "core/request.h"
#include "core/token_sink.h"

namespace strata {

// What a face has of a request on its way through the engine.  The engine, or a
// refusal, ends it: OnEnd and OnceSubmitted are both called exactly once, in
// either order; a client's cancel only asks the engine to.
class EngineCall : public TokenSink {
 public:
  // Before the engine has the request.
  virtual void Admit(const Request& request) = 0;
  // On any thread: the engine has the request, or the call was refused (id 0).
  // Until then the client is given nothing.  `ask_to_cancel` may be called more
  // than once, also after OnEnd.
  virtual void OnceSubmitted(RequestId id,
                             std::function<void()> ask_to_cancel) = 0;
};

}  // namespace strata

#endif  // SERVER_ENGINE_CALL_H_
