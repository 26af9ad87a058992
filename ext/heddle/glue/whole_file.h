/* Files that are read as a whole. */
#ifndef HEDDLE_WHOLE_FILE_H
#define HEDDLE_WHOLE_FILE_H

void hd_init_whole_file(void);

#endif
