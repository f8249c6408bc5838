#include "emulator/hazards/clock.h"

namespace emu::hazards {
namespace {

template <class Partial>
auto place_of(Partial& partial, Agent agent) {
  return std::lower_bound(partial.begin(), partial.end(), agent,
                          [](const auto& entry, Agent wanted) { return entry.first < wanted; });
}

}  // namespace

bool Clock::partly_covers(Agent agent, uint32_t lane, uint32_t time) const {
  const auto entry = place_of(partial_, agent);
  return entry != partial_.end() && entry->first == agent && time <= entry->second[lane];
}

bool Clock::covers_lanes(Agent agent, uint32_t lanes, uint32_t time) const {
  if (agent < whole_.size() && time <= whole_[agent]) return true;
  if (partial_.empty()) return false;
  const auto entry = place_of(partial_, agent);
  if (entry == partial_.end() || entry->first != agent) return false;
  for (uint32_t lane = 0; lane < 32; ++lane)
    if ((lanes >> lane & 1) && entry->second[lane] < time) return false;
  return true;
}

bool Clock::includes(const Clock& other) const {
  const size_t both = std::min(whole_.size(), other.whole_.size());
  uint32_t behind = 0;
  for (size_t agent = 0; agent < both; ++agent) behind |= whole_[agent] < other.whole_[agent];
  if (behind && partial_.empty()) return false;
  for (size_t agent = behind ? 0 : both; agent < other.whole_.size(); ++agent)
    if (other.whole_[agent] && !covers_lanes(static_cast<Agent>(agent), ~0u, other.whole_[agent])) return false;
  for (const auto& [agent, times] : other.partial_)
    for (uint32_t lane = 0; lane < 32; ++lane)
      if (times[lane] && !covers(agent, lane, times[lane])) return false;
  return true;
}

void Clock::raise(Agent agent, uint32_t time) {
  if (agent >= whole_.size()) whole_.resize(agent + 1);
  if (whole_[agent] >= time) return;
  whole_[agent] = time;
  if (!partial_.empty()) settle(agent);
}

Clock::Times& Clock::times_of(Agent agent) {
  auto entry = place_of(partial_, agent);
  if (entry == partial_.end() || entry->first != agent) {
    Times times;
    times.fill(agent < whole_.size() ? whole_[agent] : 0);
    entry = partial_.insert(entry, {agent, times});
  }
  return entry->second;
}

/// Keeps times of single lanes only where they say more than the time of all.
void Clock::settle(Agent agent) {
  const auto entry = place_of(partial_, agent);
  if (entry == partial_.end() || entry->first != agent) return;
  if (agent >= whole_.size()) whole_.resize(agent + 1);
  Times& times = entry->second;
  for (uint32_t& time : times) time = std::max(time, whole_[agent]);
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  whole_[agent] = *least;
  if (*least == *most) partial_.erase(entry);
}

void Clock::raise_lanes(Agent agent, uint32_t lanes, uint32_t time) {
  if (lanes == ~0u) return raise(agent, time);
  if (lanes == 0 || (agent < whole_.size() && whole_[agent] >= time)) return;
  Times& times = times_of(agent);
  for (uint32_t lane = 0; lane < 32; ++lane)
    if (lanes >> lane & 1) times[lane] = std::max(times[lane], time);
  settle(agent);
}

void Clock::meet(const Clock& other) {
  std::vector<std::pair<Agent, Times>> partial;
  for (const Clock* clock : {static_cast<const Clock*>(this), &other})
    for (const auto& [agent, times] : clock->partial_) {
      const auto place = place_of(partial, agent);
      if (place != partial.end() && place->first == agent) continue;
      const auto of = [&, agent = agent](const Clock& clock, size_t lane) {
        const auto entry = place_of(clock.partial_, agent);
        const uint32_t whole = agent < clock.whole_.size() ? clock.whole_[agent] : 0;
        return entry != clock.partial_.end() && entry->first == agent ? std::max(whole, entry->second[lane]) : whole;
      };
      Times both;
      for (size_t lane = 0; lane < both.size(); ++lane) both[lane] = std::min(of(*this, lane), of(other, lane));
      partial.insert(place, {agent, both});
    }
  whole_.resize(std::min(whole_.size(), other.whole_.size()));
  for (size_t agent = 0; agent < whole_.size(); ++agent) whole_[agent] = std::min(whole_[agent], other.whole_[agent]);
  partial_ = std::move(partial);
  for (size_t i = partial_.size(); i-- > 0;) settle(partial_[i].first);
}

void Clock::join_from(const Clock& other, Agent first) {
  if (whole_.size() < other.whole_.size()) whole_.resize(other.whole_.size());
  for (size_t i = first; i < other.whole_.size(); ++i) whole_[i] = std::max(whole_[i], other.whole_[i]);
  if (partial_.empty() && other.partial_.empty()) return;
  for (const auto& [agent, others] : other.partial_) {
    if (agent < first) continue;
    Times& times = times_of(agent);
    for (uint32_t lane = 0; lane < 32; ++lane) times[lane] = std::max(times[lane], others[lane]);
  }
  for (size_t i = partial_.size(); i-- > 0;) settle(partial_[i].first);
}

}  // namespace emu::hazards
