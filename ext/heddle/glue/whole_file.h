/* Files that are read as a whole. */
#ifndef HEDDLE_WHOLE_FILE_H
#define HEDDLE_WHOLE_FILE_H

/* A file that the kernel has in memory never makes the caller wait, but a megabyte of it takes a millisecond or two,
 * most of it for the fresh memory that Ruby reads into: the others have their turn after every piece. */
enum { HD_PIECE_SIZE = 1 << 19 };

#endif
