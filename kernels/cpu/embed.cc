#include "kernels/cpu/embed.h"

#include "kernels/cpu/dequantize.h"

namespace strata::cpu {

void Embed(const EmbedArgs& args, const Worker& worker) {
  const Share share = worker.ShareOf(args.tokens.size());
  for (int64_t r = share.begin; r < share.end; ++r) {
    DequantizeRow(args.table, args.tokens[r], args.x + r * args.table.cols);
  }
}

}  // namespace strata::cpu
