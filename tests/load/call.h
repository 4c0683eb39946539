#ifndef TESTS_LOAD_CALL_H_
#define TESTS_LOAD_CALL_H_

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <list>

#include "absl/time/time.h"
#include "client/connection.h"
#include "proto/strata.grpc.pb.h"
#include "tests/load/call_record.h"

namespace strata {

// One Generate call in flight, without a thread of its own: gRPC's threads run
// its reactions.  Cancels it, reads it slowly and switches its strategy as its
// plan says.
//
// Start and Cancel are for one thread; record() for it too, after OnCallDone.
class Call : public grpc::ClientReadReactor<v1::GenerateResponse> {
 public:
  class Observer {
   public:
    // Tokens came.  Any thread; must not block.
    virtual void OnTokens(int num_tokens) = 0;
    // The last thing that the call `index` does; it may be destroyed from here
    // on.  Any thread; must not block.
    virtual void OnCallDone(int index) = 0;

   protected:
    ~Observer() = default;
  };

  // `connection`, `plan` and `observer` outlive this.  `run_start` is the zero
  // of the record's times.
  Call(int index, const Connection* connection, const PlannedCall* plan,
       Observer* observer, absl::Time run_start);

  // `timeout_s`: 0: none.  A switch may recompute if `switch_recompute`.
  // REQUIRES: called once, and OnCallDone awaited before the destructor.
  void Start(v1::GenerateRequest request, double timeout_s,
             bool switch_recompute);

  // Asks the call to end; OnCallDone follows.
  void Cancel();

  const CallRecord& record() const { return record_; }

 private:
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;
  void SetDeadline(double timeout_s);
  void ReadNext();
  void OnLastRead();
  void SendSwitch();
  void OnSwitched(grpc::Status status);
  double Elapsed() const;
  void Take(const v1::Done& done);

  const int index_;
  const Connection* const connection_;
  const PlannedCall* const plan_;
  Observer* const observer_;
  const absl::Time run_start_;
  grpc::ClientContext context_;
  v1::GenerateRequest request_;
  v1::GenerateResponse response_;
  std::list<grpc::Alarm> alarms_;  // one for each slow read
  int num_responses_ = 0;
  std::atomic<bool> cancel_requested_ = false;

  grpc::ClientContext switch_context_;
  v1::SwitchStrategyRequest switch_request_;
  v1::SwitchStrategyResponse switch_response_;
  bool switch_sent_ = false;

  // Written by reactions, which never overlap; live_switch* by the switch's.
  CallRecord record_;
};

}  // namespace strata

#endif  // TESTS_LOAD_CALL_H_
