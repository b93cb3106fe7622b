#include "cli/environment.hpp"

#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>

#include "claimq/failure.hpp"

namespace claimq::cli {

std::optional<std::string> environment(const char* name) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
}

std::optional<std::string> secret(const std::string& name) {
    if (auto value = environment(name.c_str())) return value;
    const auto file = environment((name + "_FILE").c_str());
    if (!file) return std::nullopt;
    errno = 0;
    std::ifstream stream(*file, std::ios::binary);
    std::string text;
    for (char byte = 0; stream.get(byte);) text += byte;  // a failed read is badbit; an istreambuf_iterator would throw
    if (!stream.is_open() || stream.bad())
        throw Failure(ExitStatus::no_input, name + "_FILE: " + *file + ": " + std::generic_category().message(errno));
    if (text.ends_with('\n')) text.pop_back();
    if (text.empty()) throw Failure(ExitStatus::no_input, name + "_FILE: " + *file + ": is empty");
    return text;
}

std::string broker_url() { return secret("EAI_AMQP_URL").value_or("amqp://guest:guest@127.0.0.1:5672/%2F"); }

std::filesystem::path store_path() {
    if (const auto path = environment("EAI_MQ_DB")) return *path;
    std::string home = environment("HOME").value_or("");
    if (home.empty()) {
        const auto* user = getpwuid(getuid());
        if (user == nullptr) throw Failure(ExitStatus::store, "no home directory: set EAI_MQ_DB or HOME");
        home = user->pw_dir;
    }
    return std::filesystem::path(home) / "eaimw" / "mq" / "processed.db";
}

}  // namespace claimq::cli
