/* A claims system of a known latency: every POST is read to its end and answered 201 after a fixed delay, as many at
   once as come (keep-alive, HTTP/1.1, Content-Length only). GET is answered at once with what was counted.

     claims_server DELAY_MS          prints its port on 127.0.0.1 and serves until it is killed

   GET /_stats   {"accepted":…,"peak":…,"seconds":…,"steady":…}: POSTs answered, most of them in hand at once, time from
                 the first to the last answer, and answers a second between the first 30 % and 95 % of them. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { most_connections = 16384, most_answers = 4 << 20, head_bytes = 16384, chunk_bytes = 256 * 1024 };

struct connection {
    int open;
    unsigned generation; /* a descriptor's number comes again: an answer that waits must not go to its next owner */
    int waits_for_answer;
    size_t head;         /* bytes of the request's head in `text` */
    long long body_left; /* -1: the head is not complete */
    int is_get;
    char text[head_bytes];
};

struct answer {
    long long due; /* ns */
    int fd;
    unsigned generation;
};

static struct connection* connections[most_connections];
static struct answer* waiting; /* a ring: one delay for all, so they are due in the order they came */
static size_t first_waiting, waiting_count;
static long long* answered_at;
static size_t answered, in_hand, peak;
static long long delay;
static int epoll, timer;

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void fail(const char* what) {
    perror(what);
    exit(71);
}

static void drop(int fd) {
    struct connection* c = connections[fd];
    if (c->waits_for_answer) --in_hand;
    c->open = 0;
    ++c->generation;
    close(fd);
}

static void arm(long long due) {
    const struct itimerspec at = {{0, 0}, {due / 1000000000LL, due % 1000000000LL}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static void reply(int fd, const char* status, const char* body) {
    char text[512];
    const int size = snprintf(text, sizeof text,
                              "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status,
                              strlen(body), body);
    if (send(fd, text, (size_t)size, MSG_NOSIGNAL) != size) drop(fd);
}

static void accept_claim(int fd) {
    if (answered < most_answers) answered_at[answered] = now();
    ++answered;
    --in_hand;
    connections[fd]->waits_for_answer = 0;
    reply(fd, "201 Created", "{\"status\":\"accepted\"}");
}

static void stats(int fd) {
    char text[256];
    const size_t n = answered < most_answers ? answered : most_answers;
    double seconds = 0, steady = 0;
    if (n > 1) seconds = (double)(answered_at[n - 1] - answered_at[0]) / 1e9;
    if (n > 20) {
        const size_t from = n * 30 / 100, to = n * 95 / 100;
        steady = (double)(to - from) * 1e9 / (double)(answered_at[to] - answered_at[from]);
    }
    snprintf(text, sizeof text, "{\"accepted\":%zu,\"peak\":%zu,\"seconds\":%.6f,\"steady\":%.1f}", answered, peak,
             seconds, steady);
    reply(fd, "200 OK", text);
}

static void request_is_complete(int fd) {
    struct connection* c = connections[fd];
    c->head = 0;
    c->body_left = -1;
    if (c->is_get) return stats(fd);
    c->waits_for_answer = 1;
    if (++in_hand > peak) peak = in_hand;
    if (delay == 0) return accept_claim(fd);
    if (waiting_count == most_connections) return drop(fd); /* callers that gave up left their answers behind */
    const struct answer one = {now() + delay, fd, c->generation};
    waiting[(first_waiting + waiting_count) % most_connections] = one;
    if (waiting_count++ == 0) arm(one.due);
}

/* What follows the head in `text` belongs to the body; nobody here sends a second request before the answer. */
static void look_at_head(int fd) {
    struct connection* c = connections[fd];
    c->text[c->head] = '\0';
    const char* end = strstr(c->text, "\r\n\r\n");
    if (end == NULL) {
        if (c->head + 1 >= head_bytes) drop(fd);
        return;
    }
    const char* length = strcasestr(c->text, "\r\nContent-Length:");
    c->is_get = strncmp(c->text, "GET ", 4) == 0;
    c->body_left = length != NULL && length < end ? atoll(length + 17) : 0;
    c->body_left -= (long long)(c->text + c->head - (end + 4));
    if (c->body_left <= 0) request_is_complete(fd);
}

static void read_from(int fd) {
    static char chunk[chunk_bytes];
    struct connection* c = connections[fd];
    while (c->open && !c->waits_for_answer) {
        const int in_head = c->body_left < 0;
        const ssize_t got = in_head ? recv(fd, c->text + c->head, head_bytes - 1 - c->head, 0)
                                    : recv(fd, chunk, sizeof chunk, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) return drop(fd);
        if (in_head) {
            c->head += (size_t)got;
            look_at_head(fd);
        } else if ((c->body_left -= got) <= 0) {
            request_is_complete(fd);
        }
    }
}

static void take_connections(int listener) {
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (fd >= most_connections) {
            close(fd);
            continue;
        }
        const int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (connections[fd] == NULL && (connections[fd] = calloc(1, sizeof **connections)) == NULL) fail("calloc");
        struct connection* c = connections[fd];
        c->open = 1;
        c->waits_for_answer = 0;
        c->head = 0;
        c->body_left = -1;
        struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.fd = fd};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) drop(fd);
    }
}

static void answer_those_due(void) {
    unsigned long long expirations;
    if (read(timer, &expirations, sizeof expirations) < 0) return;
    const long long at = now();
    while (waiting_count > 0 && waiting[first_waiting].due <= at) {
        const struct answer one = waiting[first_waiting];
        first_waiting = (first_waiting + 1) % most_connections;
        --waiting_count;
        if (connections[one.fd]->open && connections[one.fd]->generation == one.generation) accept_claim(one.fd);
    }
    if (waiting_count > 0) arm(waiting[first_waiting].due);
}

int main(int argc, char** argv) {
    if (argc != 2) return 64;
    delay = (long long)(atof(argv[1]) * 1e6);
    waiting = calloc(most_connections, sizeof *waiting);
    answered_at = calloc(most_answers, sizeof *answered_at);
    if (waiting == NULL || answered_at == NULL) fail("calloc");
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(listener, (struct sockaddr*)&address, size) != 0 || listen(listener, 4096) != 0) fail("listen");
    getsockname(listener, (struct sockaddr*)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);

    epoll = epoll_create1(EPOLL_CLOEXEC);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    event.data.fd = timer;
    epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event);
    while (1) {
        struct epoll_event events[512];
        const int count = epoll_wait(epoll, events, 512, -1);
        for (int i = 0; i < count; ++i) {
            const int fd = events[i].data.fd;
            if (fd == listener)
                take_connections(fd);
            else if (fd == timer)
                answer_those_due();
            else if (connections[fd]->waits_for_answer && (events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
                drop(fd); /* the caller gave up; left alone, it would wake us again and again */
            else if (connections[fd]->open)
                read_from(fd);
        }
    }
}
