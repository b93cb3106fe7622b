// What publish tells of its claims: receipts and a count on standard output, failures on standard error, and how far it
// is on a terminal.
#pragma once
#include <cstdint>
#include <ostream>
#include <string>

#include "claimq/log.hpp"
#include "publish/publish_run.hpp"

namespace claimq::publish {

enum class Receipts { none, json };
enum class Progress { hidden, shown };

class ProgressReport : public Report {
public:
    ProgressReport(Log& log, std::ostream& results, Receipts receipts, Progress progress)
        : log_(log), results_(results), receipts_(receipts), progress_(progress) {}

    void closed(const ClosedPublish& publish, TimePoint now) override;
    void bad_input(const BadInput& bad) override;
    void trouble(const std::string& text) override;
    void notice(const std::string& text) override;
    void turned() override;

    void summary();  // the last line; not with receipts, which say it all

private:
    void clear_progress();

    Log& log_;
    std::ostream& results_;
    Receipts receipts_;
    Progress progress_;
    std::uint64_t claims_ = 0;
    std::uint64_t confirmed_ = 0;
    std::uint64_t bad_ = 0;
    TimePoint shown_at_{};
    bool on_screen_ = false;
};

// One line of JSON: guid, file, line (null where the file is one claim), result, ms from the first sending to the end.
[[nodiscard]] std::string receipt(const ClosedPublish& publish, TimePoint now);

}  // namespace claimq::publish
