/* The bare handshake: logs in, opens a channel, closes. What topology cannot do without.
     handshake PORT */
#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

int main(int argc, char** argv) {
    if (argc != 2) return 64;
    amqp_connection_state_t connection = amqp_new_connection();
    amqp_socket_t* socket = amqp_tcp_socket_new(connection);
    if (amqp_socket_open(socket, "127.0.0.1", atoi(argv[1])) != AMQP_STATUS_OK) return 69;
    const int on = 1;
    setsockopt(amqp_get_sockfd(connection), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (amqp_login(connection, "/", 0, 131072, 60, AMQP_SASL_METHOD_PLAIN, "guest", "guest").reply_type !=
        AMQP_RESPONSE_NORMAL)
        return 77;
    if (amqp_channel_open(connection, 1) == NULL) return 69;
    amqp_connection_close(connection, AMQP_REPLY_SUCCESS);
    return amqp_destroy_connection(connection) == AMQP_STATUS_OK ? 0 : 69;
}
