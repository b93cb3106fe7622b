/* The broker's ceiling: takes claim.in empty with one ack a message; no HTTP, no store.
     drain PORT PREFETCH COUNT          prints "N in S s", from the first delivery to the last ack */
#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char** argv) {
    if (argc != 4) return 64;
    const int prefetch = atoi(argv[2]);
    const long count = atol(argv[3]);
    amqp_connection_state_t connection = amqp_new_connection();
    amqp_socket_t* socket = amqp_tcp_socket_new(connection);
    if (amqp_socket_open(socket, "127.0.0.1", atoi(argv[1])) != AMQP_STATUS_OK) return 69;
    const int on = 1;
    setsockopt(amqp_get_sockfd(connection), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (amqp_login(connection, "/", 0, 131072, 60, AMQP_SASL_METHOD_PLAIN, "guest", "guest").reply_type !=
        AMQP_RESPONSE_NORMAL)
        return 77;
    amqp_channel_open(connection, 1);
    amqp_basic_qos(connection, 1, 0, (uint16_t)prefetch, 0);
    amqp_basic_consume(connection, 1, amqp_cstring_bytes("claim.in"), amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
    if (amqp_get_rpc_reply(connection).reply_type != AMQP_RESPONSE_NORMAL) return 69;

    long taken = 0;
    double begin = 0;
    while (taken < count) {
        amqp_envelope_t envelope;
        struct timeval patience = {5, 0};
        amqp_maybe_release_buffers(connection);
        if (amqp_consume_message(connection, &envelope, &patience, 0).reply_type != AMQP_RESPONSE_NORMAL) break;
        if (taken == 0) begin = now();
        if (amqp_basic_ack(connection, 1, envelope.delivery_tag, 0) != AMQP_STATUS_OK) break;
        amqp_destroy_envelope(&envelope);
        ++taken;
    }
    printf("%ld in %.6f s\n", taken, now() - begin);
    amqp_connection_close(connection, AMQP_REPLY_SUCCESS);
    return taken == count ? 0 : 1;
}
