/* A step of IO.copy_stream from a file: sendfile(2), which moves the bytes without copying them. */
#ifndef HEDDLE_SEND_FILE_H
#define HEDDLE_SEND_FILE_H

void hd_init_send_file(void);

#endif
