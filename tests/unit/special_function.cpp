// The .approx instructions on every mantissa, on exponents and special values of all kinds, and the 16-bit ones on all
// their arguments: the digests of what an H200 gave (tests/golden/record_functions.cu).

#include <bit>
#include <fstream>
#include <functional>
#include <future>
#include <map>

#include <nlohmann/json.hpp>

#include "emulator/isa/approximate.h"
#include "tests/catch.h"

namespace {

using namespace emu::isa;
using Function = std::function<uint64_t(uint64_t)>;

template <float (*kFunction)(float)>
uint64_t f32(uint64_t a) {
  return std::bit_cast<uint32_t>(kFunction(std::bit_cast<float>(static_cast<uint32_t>(a))));
}
template <float (*kFunction)(float, float)>
uint64_t pair(uint64_t a) {
  return std::bit_cast<uint32_t>(
      kFunction(std::bit_cast<float>(static_cast<uint32_t>(a)), std::bit_cast<float>(static_cast<uint32_t>(a >> 32))));
}
template <class F, float (*kFunction)(float)>
uint64_t half(uint64_t a) {
  return approximate::of_half<F, kFunction>(static_cast<uint16_t>(a));
}
/// `kLow`: the lower half of the double, which must not matter.
template <uint32_t (*kFunction)(uint32_t), uint64_t kLow>
uint64_t upper(uint64_t a) {
  return std::bit_cast<uint64_t>(approximate::of_upper_half<kFunction>(std::bit_cast<double>(a << 32 | kLow))) >> 32;
}
uint64_t rsqrt_f64(uint64_t a) {
  return std::bit_cast<uint64_t>(approximate::reciprocal_root(std::bit_cast<double>(a)));
}

const std::map<std::string, Function>& functions() {
  namespace sf = emu::special_function;
  constexpr uint64_t kOnes = 0xFFFFFFFF;
  static const std::map<std::string, Function> table{
      {"rcp_ftz", f32<approximate::reciprocal<true>>},
      {"rcp", f32<approximate::reciprocal<false>>},
      {"sqrt_ftz", f32<approximate::root<true>>},
      {"sqrt_", f32<approximate::root<false>>},
      {"rsqrt_ftz", f32<approximate::reciprocal_root<true>>},
      {"rsqrt_", f32<approximate::reciprocal_root<false>>},
      {"sin_ftz", f32<approximate::sine>},
      {"sin_", f32<approximate::sine>},
      {"cos_ftz", f32<approximate::cosine>},
      {"cos_", f32<approximate::cosine>},
      {"lg2_ftz", f32<approximate::binary_logarithm<true>>},
      {"lg2_", f32<approximate::binary_logarithm<false>>},
      {"ex2_ftz", f32<approximate::power_of_two<true>>},
      {"ex2_", f32<approximate::power_of_two<false>>},
      {"tanh_", f32<sf::hyperbolic_tangent>},
      {"div_approx", pair<approximate::divide<false>>},
      {"div_approx_ftz", pair<approximate::divide<true>>},
      {"div_full", pair<approximate::divide_full<false>>},
      {"div_full_ftz", pair<approximate::divide_full<true>>},
      {"ex2_f16", half<F16, sf::power_of_two>},
      {"tanh_f16", half<F16, sf::hyperbolic_tangent>},
      {"ex2_bf16", half<Bf16, sf::power_of_two>},
      {"tanh_bf16", half<Bf16, sf::hyperbolic_tangent>},
      {"rcp64", upper<sf::reciprocal_of_upper_half, 0>},
      {"rcp64_low", upper<sf::reciprocal_of_upper_half, kOnes>},
      {"rsqrt64", upper<sf::reciprocal_root_of_upper_half, 0>},
      {"rsqrt64_low", upper<sf::reciprocal_root_of_upper_half, kOnes>},
      {"rsqrt_f64", rsqrt_f64},
  };
  return table;
}

uint64_t splitmix(uint64_t i) {
  uint64_t x = (i + 1) * 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

struct Set {
  std::string function;
  uint64_t start, stride, count, digest;

  uint64_t computed() const {
    const Function& f = functions().at(function);
    uint64_t out = 0xCBF29CE484222325ull;
    for (uint64_t i = 0; i < count; ++i)
      out = (out ^ f(stride ? start + i * stride : splitmix(start + i))) * 0x100000001B3ull;
    return out;
  }
};

std::vector<Set> sets() {
  std::ifstream in(SOURCE_FOLDER "/tests/golden/h200_functions.json");
  auto hex = [](const nlohmann::json& text) { return std::stoull(text.get<std::string>(), nullptr, 16); };
  std::vector<Set> out;
  const nlohmann::json record = nlohmann::json::parse(in);
  for (const auto& row : record.at("sets")) out.push_back({row[0], hex(row[1]), hex(row[2]), hex(row[3]), hex(row[4])});
  return out;
}

}  // namespace

TEST_CASE("special functions give the bits that an H200 gives") {
  std::vector<Set> all = sets();
  REQUIRE(all.size() > 90);
  // The longest sets take a few tenths of a second each.
  std::vector<std::future<uint64_t>> digests;
  for (const Set& set : all) digests.push_back(std::async(std::launch::async, [&set] { return set.computed(); }));
  std::map<std::string, int> seen;
  for (size_t i = 0; i < all.size(); ++i) {
    INFO(all[i].function << " from " << std::hex << all[i].start << " in steps of " << all[i].stride);
    CHECK(digests[i].get() == all[i].digest);
    ++seen[all[i].function];
  }
  CHECK(seen.size() == functions().size());
}
