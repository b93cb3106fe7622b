#include "publish/claim_source.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "claimq/claim.hpp"

namespace claimq::publish {

namespace {

std::string system_text(int error) { return std::generic_category().message(error); }

SourceItem checked(std::string body, Origin origin) {
    auto id = claim_id(body);
    if (auto* flaw = std::get_if<NoClaim>(&id)) return BadInput{std::move(origin), ExitStatus::data, flaw->reason};
    return OutgoingClaim{std::move(std::get<ClaimId>(id).guid), std::move(body), std::move(origin)};
}

bool is_one_claim_a_line(const std::string& name, Framing framing) {
    return framing == Framing::ndjson || name.ends_with(".ndjson") || name.ends_with(".jsonl");
}

}  // namespace

SourceItem ClaimSource::next() {
    while (true) {
        if (fd_ < 0) {
            if (files_.empty()) return End{};
            if (const int error = open_next(); error != 0) return failed(ExitStatus::no_input, system_text(error));
        }
        auto item = lines_ ? next_line() : whole_file();
        if (!std::holds_alternative<End>(item)) return item;
    }
}

// 0, or the errno why the next file cannot be read.
int ClaimSource::open_next() {
    name_ = std::move(files_.front());
    files_.pop_front();
    fd_ = name_ == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(name_.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts {};
    if (fd_ < 0 || fstat(fd_, &facts) != 0) {
        const int error = errno;
        close_file();
        return error;
    }
    waits_ = !S_ISREG(facts.st_mode);
    text_.clear();
    lines_.reset();
    if (is_one_claim_a_line(name_, framing_))
        lines_.emplace(longest_line);
    else if (!waits_)
        text_.reserve(std::min(static_cast<std::size_t>(facts.st_size), largest_file) + 1);
    return 0;
}

SourceItem ClaimSource::whole_file() {
    while (true) {
        switch (read_chunk(text_)) {
            case Chunk::not_yet: return NotYet{fd_};
            case Chunk::some:
                if (text_.size() > largest_file) return failed(ExitStatus::data, "is larger than 512 MiB");
                continue;
            case Chunk::end: break;
        }
        if (errno != 0) return failed(ExitStatus::no_input, system_text(errno));
        close_file();
        return checked(std::move(text_), {name_, 0});
    }
}

// End when this file holds no more.
SourceItem ClaimSource::next_line() {
    while (true) {
        if (auto line = lines_->next()) {
            Origin origin{name_, line->number};
            if (line->too_long) return BadInput{std::move(origin), ExitStatus::data, "is longer than 128 MiB"};
            return checked(std::move(line->text), std::move(origin));
        }
        if (ended_) {
            close_file();
            return End{};
        }
        std::string bytes;
        switch (read_chunk(bytes)) {
            case Chunk::not_yet: return NotYet{fd_};
            case Chunk::some: lines_->feed(bytes); continue;
            case Chunk::end: break;
        }
        if (errno != 0) return failed(ExitStatus::no_input, system_text(errno));
        lines_->end();
        ended_ = true;
    }
}

// Appends to `into`. At the end errno is 0, after a failed read it says why.
ClaimSource::Chunk ClaimSource::read_chunk(std::string& into) {
    pollfd readable{fd_, POLLIN, 0};
    if (waits_ && poll(&readable, 1, 0) == 0) return Chunk::not_yet;
    buffer_.resize(std::size_t{256} * 1024);
    ssize_t got = 0;
    do {
        errno = 0;
        got = read(fd_, buffer_.data(), buffer_.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN) return Chunk::not_yet;
    if (got <= 0) return Chunk::end;
    into.append(buffer_, 0, static_cast<std::size_t>(got));
    return Chunk::some;
}

SourceItem ClaimSource::failed(ExitStatus status, std::string reason) {
    close_file();
    return BadInput{{name_, 0}, status, std::move(reason)};
}

void ClaimSource::close_file() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
    ended_ = false;
}

}  // namespace claimq::publish
