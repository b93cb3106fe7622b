#include "store/busy_spell.hpp"

#include <algorithm>

namespace claimq::store {

BusySpell::Meaning BusySpell::busy(TimePoint now) {
    if (!since_) since_ = now;
    try_again_at_ = now + pause_;
    pause_ = std::min(2 * pause_, kLongestPause);
    if (now - *since_ >= kGivesUpAfter) return Meaning::gives_up;
    if (down_) return Meaning::is_down;
    if (now - *since_ < kDownAfter) return Meaning::try_again;
    down_ = true;
    return Meaning::goes_down;
}

BusySpell::Was BusySpell::works() {
    if (!since_) return Was::none;
    const Was was = down_ ? Was::down : Was::short_wait;
    *this = BusySpell{};
    return was;
}

}  // namespace claimq::store
