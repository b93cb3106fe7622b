// What the command lines of the three programs have in common. The only header that shows CLI11.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "claimq/clock.hpp"
#include "claimq/exit_status.hpp"
#include "claimq/log.hpp"

namespace claimq::cli {

class CommandLine {
public:
    // `text_format`: what "--log-format text" means, with the time or without.
    CommandLine(std::string program, const std::string& description, LogFormat text_format);

    // Numbers are plain decimals, found wrong before anything is done.
    void whole_number(const std::string& option, int& value, int least, int most, const std::string& help);
    void seconds(const std::string& option, Milliseconds& value, Milliseconds least, const std::string& help);
    void statuses(const std::string& option, std::vector<int>& value, const std::string& help);

    [[nodiscard]] CLI::App& app() noexcept { return app_; }

    // Parses, then runs; what goes wrong becomes one line and a status.
    [[nodiscard]] int run(int argc, char** argv, const std::function<ExitStatus(Log&)>& program);

private:
    [[nodiscard]] ExitStatus guarded(Log& log, const std::function<ExitStatus(Log&)>& program) const;
    [[nodiscard]] LogLevel level() const noexcept;

    std::string program_;
    CLI::App app_;
    LogFormat text_format_;
    std::string format_ = "text";
    bool verbose_ = false;
    bool quiet_ = false;
};

}  // namespace claimq::cli
