#include "common/bench/contenders.h"

#include <fmt/format.h>

#include "common/harness/user_error.h"
#include "step04_swizzle/study.h"

ladder::Rung step00_single_mma();
ladder::Rung step01_kloop();
ladder::Rung step02_pipeline();
ladder::Rung step03_warpspec();
ladder::Rung step04_swizzle();
ladder::Rung step05_epilogue();
ladder::Rung step06_multicast();
ladder::Rung step07_persistent();

namespace ladder {
namespace {

std::vector<Rung> all_rungs() {
  return {step00_single_mma(), step01_kloop(),     step02_pipeline(),   step03_warpspec(), step04_swizzle(),
          step05_epilogue(),   step06_multicast(), step07_persistent(), swizzle_study()};
}

Contender contender(const Rung& rung, const Variant& variant) {
  return {.name = fmt::format("{}:{}", rung.name, variant.name),
          .planned = [=](const Gemm& gemm) { return variant.planned(gemm); },
          .fixed_k = rung.fixed_k,
          .computes =
              variant.name.find("part=") == std::string::npos || variant.name.find("part=full") != std::string::npos};
}

}  // namespace

std::vector<Contender> contenders(const std::vector<std::string>& wanted, Family family) {
  std::vector<Contender> found;
  const std::vector<Rung> rungs = all_rungs();
  for (const std::string& want : wanted) {
    const size_t colon = want.find(':');
    const std::string rung_name = want.substr(0, colon);
    const std::string variant = colon == want.npos ? "" : want.substr(colon + 1);
    bool known = false;
    for (const Rung& rung : rungs) {
      if (rung_name.empty() || !std::string(rung.name).starts_with(rung_name)) continue;
      known = true;
      if (variant == "*") {
        for (const Variant& each : variants_of(rung, family)) found.push_back(contender(rung, each));
      } else {
        found.push_back(contender(rung, choose_variant(rung, family, variant)));
      }
    }
    if (!known) {
      std::string names;
      for (const Rung& rung : rungs) names += fmt::format("{}{}", names.empty() ? "" : ", ", rung.name);
      throw UserError(fmt::format(
          "--side {}: there is no such rung; expected one of {}, perhaps with :VARIANT behind it", want, names));
    }
  }
  return found;
}

}  // namespace ladder
