/* TCPSocket#initialize under Heddle. */
#ifndef HEDDLE_TCP_CONNECT_H
#define HEDDLE_TCP_CONNECT_H

void hd_init_tcp_connect(void);

#endif
