// Numbers on the command lines of the listings.
#pragma once

#include <charconv>
#include <cstring>

/// The number that `text` is, all of it; else `none`.
template <class Number>
Number number(const char* text, Number none) {
  Number value = 0;
  const char* end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, value);
  return error == std::errc{} && at == end ? value : none;
}
