// publish's loop: reads claims, keeps a window of them unconfirmed, sends again what a lost connection left open, and
// ends with a result for every claim.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "claimq/confirm_window.hpp"
#include "claimq/exit_status.hpp"
#include "claimq/publish_channel.hpp"
#include "claimq/waiter.hpp"
#include "publish/claim_source.hpp"

namespace claimq::publish {

struct Options {
    std::size_t window = 256;
    Milliseconds confirm_timeout{30'000};
    Milliseconds blocked_timeout{30'000};
};

// Who hears how it goes.
class Report {
public:
    virtual ~Report() = default;
    virtual void closed(const ClosedPublish& publish, TimePoint now) = 0;  // once per claim that was sent or was to be
    virtual void bad_input(const BadInput& bad) = 0;
    virtual void trouble(const std::string& text) = 0;  // ends the run, or would if it lasted
    virtual void notice(const std::string& text) = 0;   // will be got over
    virtual void turned() = 0;                          // one turn of the loop is over
};

class PublishRun {
public:
    PublishRun(ClaimSource& source, OpenPublishChannel open, Waiter& waiter, Report& report, Options options)
        : source_(source),
          open_(std::move(open)),
          waiter_(waiter),
          report_(report),
          options_(options),
          window_(options.window, most_bytes) {}

    [[nodiscard]] ExitStatus run();

private:
    static constexpr std::size_t most_bytes = std::size_t{8} * 1'048'576;  // of bodies unconfirmed
    static constexpr int most_losses = 5;  // of connections in a row, without a confirm in between
    static constexpr int reconnect_attempts = 3;
    static constexpr int most_bad_inputs = 100;  // read in one go

    [[nodiscard]] bool fetch();
    void connect();
    void send();
    void handle(PublishEvent event);
    void on(const publish_event::Confirmed&);
    void on(const publish_event::Returned&);
    void on(const publish_event::Progress&);
    void on(const publish_event::Blocked&);
    void on(const publish_event::Unblocked&);
    void on(const publish_event::ChannelClosed&);
    void on(const publish_event::Lost&);
    void send_again();
    [[nodiscard]] bool outcome_is_unknown() const;
    void check_patience();
    void give_up(ExitStatus status, const std::string& why);
    void close(const ClosedPublish& publish);
    [[nodiscard]] bool may_go_on() const;
    void wait();

    ClaimSource& source_;
    OpenPublishChannel open_;
    Waiter& waiter_;
    Report& report_;
    Options options_;
    ConfirmWindow window_;
    std::deque<OutgoingClaim> pending_;  // to be sent again, and at most one that was just read
    std::unique_ptr<PublishChannel> channel_;
    int input_ = -1;  // the source waits for this descriptor
    bool source_ended_ = false;
    bool was_connected_ = false;
    int losses_ = 0;
    std::optional<TimePoint> blocked_since_;
    std::string blocked_reason_;
    bool given_up_ = false;
    ExitStatus status_ = ExitStatus::ok;
};

}  // namespace claimq::publish
