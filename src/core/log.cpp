#include "claimq/log.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include "claimq/utf8.hpp"

namespace claimq {

namespace {

std::string_view name(LogLevel level) {
    switch (level) {
        case LogLevel::error: return "error";
        case LogLevel::warning: return "warning";
        case LogLevel::info: return "info";
        case LogLevel::debug: return "debug";
    }
    return "?";
}

std::string utc_now() {
    const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
    const auto whole = std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(now));
    std::tm parts{};
    gmtime_r(&whole, &parts);
    char text[32];
    const auto used = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    const auto milliseconds = now.time_since_epoch().count() % 1000;
    std::snprintf(text + used, sizeof text - used, ".%03dZ", static_cast<int>(milliseconds));
    return text;
}

// A quote of the value's own is escaped, so that a foreign message_id cannot end the value and go on with fields.
std::string quoted(std::string_view text) {
    std::string shown = "\"";
    while (true) {
        const auto at = text.find_first_of("\"\\");
        shown += printable(text.substr(0, at));
        if (at == std::string_view::npos) return shown + '"';
        shown += {'\\', text[at]};
        text.remove_prefix(at + 1);
    }
}

bool is_empty(const LogField& field) {
    const auto* text = std::get_if<std::string_view>(&field.value);
    return text != nullptr && text->empty();
}

std::string text_value(const LogField& field) {
    if (const auto* set = std::get_if<bool>(&field.value)) return *set ? "yes" : "no";
    if (const auto* number = std::get_if<std::int64_t>(&field.value)) return std::to_string(*number);
    const auto text = std::get<std::string_view>(field.value);
    const bool plain = text.find_first_of(" \"\\=") == std::string_view::npos;
    return plain ? printable(text) : quoted(text);
}

std::string json_value(const LogField& field) {
    if (const auto* set = std::get_if<bool>(&field.value)) return *set ? "true" : "false";
    if (const auto* number = std::get_if<std::int64_t>(&field.value)) return std::to_string(*number);
    return json_string(std::get<std::string_view>(field.value));
}

}  // namespace

std::string json_string(std::string_view text) {
    return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string printable(std::string_view text) {
    std::string shown;
    shown.reserve(text.size());
    while (!text.empty()) {
        const auto next = first_code_point(text);
        const bool harmless = next && next->value >= 0x20 && !(next->value >= 0x7F && next->value <= 0x9F);
        const auto size = harmless ? next->bytes : 1;
        if (harmless) {
            shown += text.substr(0, size);
        } else {
            char code[5];
            std::snprintf(code, sizeof code, "\\x%02X", static_cast<unsigned char>(text.front()));
            shown += code;
        }
        text.remove_prefix(size);
    }
    return shown;
}

std::string log_line(LogFormat format, std::string_view time, LogLevel level, std::string_view program,
                     std::string_view message, std::initializer_list<LogField> fields) {
    std::string line;
    if (format == LogFormat::json) {
        line += "{\"time\":\"" + std::string(time) + "\",\"level\":\"" + std::string(name(level)) +
                "\",\"program\":\"" + std::string(program) + "\",\"message\":" + json_string(message);
        for (const auto& field : fields)
            if (!is_empty(field)) line += ",\"" + std::string(field.name) + "\":" + json_value(field);
        return line + "}";
    }
    if (format == LogFormat::text) line += std::string(time) + " ";
    line += std::string(program) + ": ";
    if (level == LogLevel::warning) line += "warning: ";
    line += printable(message);
    for (const auto& field : fields)
        if (!is_empty(field)) line += " " + std::string(field.name) + "=" + text_value(field);
    return line;
}

void Log::say(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
    if (!shows(level)) return;
    lines_ += log_line(format_, utc_now(), level, program_, message, fields);
    lines_ += '\n';
}

void Log::flush() noexcept {
    std::string_view left = lines_;
    while (!left.empty()) {
        const auto written = write(STDERR_FILENO, left.data(), left.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) break;  // nobody can be told that nobody can be told
        left.remove_prefix(static_cast<std::size_t>(written));
    }
    lines_.clear();
}

}  // namespace claimq
