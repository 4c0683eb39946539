#ifndef SERVER_VERSION_H_
#define SERVER_VERSION_H_

namespace strata {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace strata

#endif  // SERVER_VERSION_H_
