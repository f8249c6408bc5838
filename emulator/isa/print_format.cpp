#include "emulator/isa/print_format.h"

#include <cstdio>
#include <cstring>
#include <vector>

namespace emu::isa {
namespace {

constexpr int kMostArguments = 32;  // CUDA programming guide, "Limitations"; what is beyond is printed as it stands

template <class... T>
void append(std::string& out, const std::string& conversion, T... values) {
  // The conversion was put together here, from characters that printf knows.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  int length = std::snprintf(nullptr, 0, conversion.c_str(), values...);
  if (length < 0) return;
  std::vector<char> buffer(static_cast<size_t>(length) + 1);
  std::snprintf(buffer.data(), buffer.size(), conversion.c_str(), values...);
#pragma GCC diagnostic pop
  out.append(buffer.data(), static_cast<size_t>(length));
}

}  // namespace

Printed print_format(std::string_view format, const PrintSources& sources) {
  Printed out;
  uint64_t offset = 0;
  auto take = [&](uint32_t bytes) {
    offset = (offset + bytes - 1) / bytes * bytes;
    uint64_t value = sources.value(offset, bytes);
    offset += bytes;
    ++out.arguments;
    return value;
  };
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out.text += format[i];
      continue;
    }
    size_t start = i++;
    if (i < format.size() && format[i] == '%') {
      out.text += '%';
      continue;
    }
    std::string conversion = "%";
    int stars = 0;
    auto number = [&] {
      if (i < format.size() && format[i] == '*') {
        conversion += '*', ++stars, ++i;
        return;
      }
      while (i < format.size() && format[i] >= '0' && format[i] <= '9') conversion += format[i++];
    };
    while (i < format.size() && std::strchr("-+ #0", format[i])) conversion += format[i++];
    number();
    bool star_precision = false;
    if (i < format.size() && format[i] == '.') {
      conversion += format[i++];
      star_precision = i < format.size() && format[i] == '*';
      number();
    }
    bool wide = false;
    while (i < format.size() && std::strchr("hlLqjzt", format[i])) wide = wide || format[i] != 'h', ++i;
    char type = i < format.size() ? format[i] : '\0';
    bool known = type != '\0' && std::strchr("cdiouxXpeEfFgGaAsn", type) != nullptr;
    // A precision that is an argument: the driver of an H200 prints such a conversion as it stands, and takes nothing.
    if (!known || star_precision || out.arguments + stars + 1 > kMostArguments) {
      out.text += format.substr(start, i - start + 1);
      continue;
    }
    // The width first, as it stands before the value.
    std::string widths;
    for (char c : conversion)
      if (c == '*')
        widths += std::to_string(static_cast<int32_t>(take(4)));
      else
        widths += c;
    conversion = widths;
    switch (type) {
      case 'c':
        append(out.text, conversion + "c", static_cast<int>(take(4)));
        break;
      case 'd':
      case 'i':
        append(out.text, conversion + "lld",
               wide ? static_cast<long long>(take(8)) : static_cast<long long>(static_cast<int32_t>(take(4))));
        break;
      case 'o':
      case 'u':
      case 'x':
      case 'X':
        append(out.text, conversion + "ll" + type, static_cast<unsigned long long>(take(wide ? 8 : 4)));
        break;
      case 'p':
        append(out.text, conversion + "p", reinterpret_cast<void*>(take(8)));
        break;
      case 's': {
        uint64_t address = take(8);
        std::string text = address ? sources.text(address) : "(null)";
        append(out.text, conversion + "s", text.c_str());
        break;
      }
      case 'n':
        take(8);
        break;
      default: {
        uint64_t bits = take(8);
        double value;
        std::memcpy(&value, &bits, 8);
        append(out.text, conversion + type, value);
      }
    }
  }
  return out;
}

}  // namespace emu::isa
