#include "cli/environment.hpp"

#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "claimq/failure.hpp"
#include "temporary_folder.hpp"

namespace claimq::cli {
namespace {

// A variable with another value, or without one, while this lives.
class Variable {
public:
    Variable(std::string name, const std::optional<std::string>& value) : name_(std::move(name)) {
        if (const char* now = std::getenv(name_.c_str())) before_ = now;
        set(value);
    }
    ~Variable() { set(before_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    void set(const std::optional<std::string>& value) const {
        if (value)
            setenv(name_.c_str(), value->c_str(), 1);
        else
            unsetenv(name_.c_str());
    }
    std::string name_;
    std::optional<std::string> before_;
};

class EnvironmentTest : public testing::Test {
protected:
    // What secret("EAI_X") fails with.
    std::string refusal(const std::string& file) {
        const Variable named("EAI_X_FILE", file);
        try {
            ADD_FAILURE() << file << " was taken: " << secret("EAI_X").value_or("nothing");
        } catch (const Failure& failure) {
            EXPECT_EQ(failure.status(), ExitStatus::no_input);
            return failure.what();
        }
        return {};
    }
    std::optional<std::string> secret_in(const std::string& bytes) {
        const Variable named("EAI_X_FILE", folder_.file("secret", bytes));
        return secret("EAI_X");
    }

    Variable unset_{"EAI_X", std::nullopt};
    Variable unset_file_{"EAI_X_FILE", std::nullopt};
    test::TemporaryFolder folder_;
};

TEST_F(EnvironmentTest, AnEmptyVariableIsNotSet) {
    EXPECT_EQ(environment("EAI_X"), std::nullopt);
    const Variable empty("EAI_X", "");
    EXPECT_EQ(environment("EAI_X"), std::nullopt);
    EXPECT_EQ(secret("EAI_X"), std::nullopt);
    const Variable space("EAI_X", " ");
    EXPECT_EQ(environment("EAI_X"), " ");
}

TEST_F(EnvironmentTest, ASecretIsTheVariableOrTheFile) {
    EXPECT_EQ(secret("EAI_X"), std::nullopt);
    EXPECT_EQ(secret_in("from file"), "from file");
    {
        const Variable empty("EAI_X", "");
        EXPECT_EQ(secret_in("from file"), "from file");
    }
    const Variable set("EAI_X", "from variable");
    EXPECT_EQ(secret_in("from file"), "from variable");
    const Variable missing("EAI_X_FILE", folder_.path("missing"));
    EXPECT_EQ(secret("EAI_X"), "from variable") << "the file is not even looked at";
}

TEST_F(EnvironmentTest, AnEmptyFileVariableIsNotSet) {
    const Variable empty("EAI_X_FILE", "");
    EXPECT_EQ(secret("EAI_X"), std::nullopt);
}

TEST_F(EnvironmentTest, OfAFileOneFinalNewlineIsDropped) {
    EXPECT_EQ(secret_in("s"), "s");
    EXPECT_EQ(secret_in("s\n"), "s");
    EXPECT_EQ(secret_in("s\n\n"), "s\n");
    EXPECT_EQ(secret_in("\ns "), "\ns ");
    EXPECT_EQ(secret_in(std::string("a\0b\n", 4)), std::string("a\0b", 3));
    EXPECT_EQ(secret_in(std::string(100'000, 's') + "\n"), std::string(100'000, 's'));
}

TEST_F(EnvironmentTest, AFileThatCannotBeReadIsStatus66) {
    EXPECT_EQ(refusal(folder_.path("missing")),
              "EAI_X_FILE: " + folder_.path("missing") + ": No such file or directory");
    EXPECT_EQ(refusal(folder_.path()), "EAI_X_FILE: " + folder_.path() + ": Is a directory");
    EXPECT_EQ(refusal(folder_.file("empty", "")), "EAI_X_FILE: " + folder_.path("empty") + ": is empty");
    EXPECT_EQ(refusal(folder_.file("newline", "\n")), "EAI_X_FILE: " + folder_.path("newline") + ": is empty");
    EXPECT_EQ(refusal("/proc/self/mem"), "EAI_X_FILE: /proc/self/mem: Input/output error");
}

TEST_F(EnvironmentTest, AFileWithoutPermissionIsStatus66) {
    const auto closed = folder_.file("closed", "secret");
    ASSERT_EQ(chmod(closed.c_str(), 0), 0);
    ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
    const bool root = geteuid() == 0;
    if (root && seteuid(65534) != 0) GTEST_SKIP() << "root reads everything, and cannot be given up here";
    const auto text = refusal(closed);
    ASSERT_TRUE(!root || seteuid(0) == 0);
    EXPECT_EQ(text, "EAI_X_FILE: " + closed + ": Permission denied");
}

TEST_F(EnvironmentTest, TheBrokerIsTheLocalOneByDefault) {
    const Variable no_url("EAI_AMQP_URL", std::nullopt);
    const Variable no_file("EAI_AMQP_URL_FILE", std::nullopt);
    EXPECT_EQ(broker_url(), "amqp://guest:guest@127.0.0.1:5672/%2F");
    {
        const Variable file("EAI_AMQP_URL_FILE", folder_.file("url", "amqp://file\n"));
        EXPECT_EQ(broker_url(), "amqp://file");
        const Variable url("EAI_AMQP_URL", "amqp://variable");
        EXPECT_EQ(broker_url(), "amqp://variable");
    }
    const Variable empty("EAI_AMQP_URL", "");
    EXPECT_EQ(broker_url(), "amqp://guest:guest@127.0.0.1:5672/%2F");
}

TEST_F(EnvironmentTest, TheStoreIsBelowHome) {
    const Variable no_db("EAI_MQ_DB", std::nullopt);
    const Variable home("HOME", "/home/somebody");
    EXPECT_EQ(store_path(), "/home/somebody/eaimw/mq/processed.db");
    {
        const Variable db("EAI_MQ_DB", "some.db");
        EXPECT_EQ(store_path(), "some.db");
    }
    const Variable empty("EAI_MQ_DB", "");
    EXPECT_EQ(store_path(), "/home/somebody/eaimw/mq/processed.db");
}

TEST_F(EnvironmentTest, WithoutHomeTheStoreIsBelowThePasswordFilesHome) {
    const auto* user = getpwuid(getuid());
    ASSERT_NE(user, nullptr) << "this test needs its user in the password file";
    const auto expected = std::filesystem::path(user->pw_dir) / "eaimw" / "mq" / "processed.db";
    const Variable no_db("EAI_MQ_DB", std::nullopt);
    for (const auto& value : {std::optional<std::string>{}, std::optional<std::string>{""}}) {
        const Variable home("HOME", value);
        EXPECT_EQ(store_path(), expected);
    }
}

}  // namespace
}  // namespace claimq::cli
