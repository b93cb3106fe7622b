// Code that changes or ends its process, in a process of its own.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>

namespace claimq::test {

// What the child returned; 1 after an exception; 128 + n: killed by signal n. The test's assertions count for nothing
// in there. A child that hangs is killed by SIGALRM after a minute.
[[nodiscard]] inline int status_of_child(const std::function<int()>& child) {
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid < 0) throw std::runtime_error("fork");
    if (pid == 0) {
        alarm(60);
        int status = 1;
        try {
            status = child();
        } catch (const std::exception& error) {
            std::fprintf(stderr, "in the child: %s\n", error.what());
        }
        _exit(status);
    }
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) throw std::runtime_error("waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace claimq::test
