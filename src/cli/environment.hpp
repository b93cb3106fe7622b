// The environment variables of SPEC's section 2. An empty one counts as not set.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace claimq::cli {

[[nodiscard]] std::optional<std::string> environment(const char* name);

// The value of `name`, else the content of the file that `name`_FILE names, less one final newline. Throws
// Failure{no_input} when that file cannot be read.
[[nodiscard]] std::optional<std::string> secret(const std::string& name);

[[nodiscard]] std::string broker_url();            // EAI_AMQP_URL, EAI_AMQP_URL_FILE, or the default
[[nodiscard]] std::filesystem::path store_path();  // EAI_MQ_DB, or $HOME/eaimw/mq/processed.db

}  // namespace claimq::cli
