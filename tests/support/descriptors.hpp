// Descriptors that end with their scope, and the three standard ones pointed elsewhere for a while.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace claimq::test {

class Descriptor {
public:
    explicit Descriptor(int fd = -1) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor() { reset(); }

    [[nodiscard]] int get() const noexcept { return fd_; }
    void reset() {
        if (fd_ >= 0) close(fd_);
        fd_ = -1;
    }

private:
    int fd_;
};

class Pipe {
public:
    Pipe() {
        std::array<int, 2> ends{};
        if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
        reader_ = Descriptor(ends[0]);
        writer_ = Descriptor(ends[1]);
    }
    [[nodiscard]] int reader() const noexcept { return reader_.get(); }
    void write(std::string_view bytes) const {
        if (::write(writer_.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
            throw std::runtime_error("the pipe did not take it all");
    }
    void end() { writer_.reset(); }
    void end_reading() { reader_.reset(); }

private:
    Descriptor reader_;
    Descriptor writer_;
};

// While it lives, descriptor `standard` (0, 1, 2) is a copy of `fd`; with -1 it is closed.
class Redirected {
public:
    Redirected(int standard, int fd) : standard_(standard), before_(fcntl(standard, F_DUPFD_CLOEXEC, 3)) {
        if (fd >= 0 ? dup2(fd, standard) < 0 : close(standard) != 0) throw std::runtime_error("cannot redirect");
    }
    ~Redirected() {
        std::fflush(nullptr);
        dup2(before_.get(), standard_);
    }
    Redirected(const Redirected&) = delete;
    Redirected& operator=(const Redirected&) = delete;

private:
    int standard_;
    Descriptor before_;
};

// What is written to a standard descriptor while it lives.
class Captured {
public:
    explicit Captured(int standard)
        : file_(memfd_create("captured", MFD_CLOEXEC)), redirected_(standard, file_.get()) {}

    // So far; what std::cout holds back included.
    [[nodiscard]] std::string text() const {
        std::cout.flush();
        std::fflush(nullptr);
        std::string all;
        std::array<char, 4096> bytes{};
        for (off_t at = 0;;) {
            const auto got = pread(file_.get(), bytes.data(), bytes.size(), at);
            if (got <= 0) return all;
            all.append(bytes.data(), static_cast<std::size_t>(got));
            at += got;
        }
    }

private:
    Descriptor file_;
    Redirected redirected_;
};

}  // namespace claimq::test
