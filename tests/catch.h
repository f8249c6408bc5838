#pragma once
// Catch2, whichever major version the system has: 2.13 (Debian 12) or 3 (Debian 13, Ubuntu 24.04). main is in main.cpp.

#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

namespace test {

/// Matches a string that contains `part`; the name of this matcher differs between the two versions.
inline auto contains(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Matchers::Contains(part);
#endif
}

}  // namespace test
