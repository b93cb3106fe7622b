// What the programs say on standard error: one line an event, as text or as JSON. Lines gather until flush(), so that
// all that one turn of a loop says is one write.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace claimq {

enum class LogLevel { error, warning, info, debug };
enum class LogFormat {
    plain,  // text without the time, for programs that run for seconds
    text,
    json,
};

// A field whose text is empty is left out.
struct LogField {
    std::string_view name;
    std::variant<std::string_view, std::int64_t, bool> value;  // a bool is yes or no in text
};

class Log {
public:
    Log(std::string program, LogLevel most, LogFormat format)
        : program_(std::move(program)), most_(most), format_(format) {}
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;
    ~Log() { flush(); }

    // `message` and the fields may hold foreign bytes: control characters and bad UTF-8 are made harmless.
    void say(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});
    void error(std::string_view message) { say(LogLevel::error, message); }
    void warning(std::string_view message) { say(LogLevel::warning, message); }
    void info(std::string_view message) { say(LogLevel::info, message); }

    [[nodiscard]] bool shows(LogLevel level) const noexcept { return level <= most_; }
    void flush() noexcept;

    // Written as it is, with what is gathered before it: for a terminal only.
    void progress(std::string_view text) {
        lines_ += text;
        flush();
    }

private:
    std::string program_;
    LogLevel most_;
    LogFormat format_;
    std::string lines_;
};

// One line as say() makes it, without the line end.
[[nodiscard]] std::string log_line(LogFormat format, std::string_view time, LogLevel level, std::string_view program,
                                   std::string_view message, std::initializer_list<LogField> fields);

// A JSON string, quotes included. Bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);

// For a terminal or a line-based log: control characters and what is no UTF-8 as \xNN.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace claimq
