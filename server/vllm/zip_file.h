#ifndef SERVER_VLLM_ZIP_FILE_H_
#define SERVER_VLLM_ZIP_FILE_H_

#include <string>
#include <vector>

namespace strata::vllm {

struct NamedBytes {
  std::string name;  // UTF-8, without a folder
  std::string bytes;
};

// A zip file that holds these, not compressed and without times, so that equal
// files give equal bytes.  Format: PKWARE's APPNOTE 6.3.3.
// REQUIRES: fewer than 65,536 files, together below 4 GiB.
std::string ZipFile(const std::vector<NamedBytes>& files);

}  // namespace strata::vllm

#endif  // SERVER_VLLM_ZIP_FILE_H_
