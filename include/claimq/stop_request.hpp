// Somebody asked the run to end (a signal), as a seam.
#pragma once
#include "claimq/clock.hpp"

namespace claimq {

class StopRequest {
public:
    virtual ~StopRequest() = default;
    [[nodiscard]] virtual bool requested() = 0;  // stays true
    [[nodiscard]] virtual Watch watch() const = 0;
};

}  // namespace claimq
