// A function that can be left in its middle and resumed there: so several consumers run interleaved in one thread, in
// an order that a seed decides.
#pragma once
#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace claimq::sweep {

class Fiber {
public:
    explicit Fiber(std::function<void()> body);  // which lets no exception out
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;
    ~Fiber();  // once begun it has to have ended

    void resume();  // until it yields or ends
    void yield();   // from inside
    [[nodiscard]] bool ended() const noexcept { return state_ == State::ended; }

private:
    enum class State { new_born, begun, ended };
    static void enter();
    void leave(void** fake_stack);
    void arrived(void* fake_stack);

    std::function<void()> body_;
    State state_ = State::new_born;
    std::unique_ptr<char[]> stack_;
    ucontext_t inside_{};
    ucontext_t outside_{};
    const void* outside_stack_ = nullptr;  // for AddressSanitizer
    std::size_t outside_stack_size_ = 0;
};

}  // namespace claimq::sweep
