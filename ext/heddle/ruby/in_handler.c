/* See in_handler.h. */
#include "in_handler.h"

#include "caught.h"
#include "init.h"

static rb_ractor_local_key_t probe_key; /* the key of a Mutex that nobody holds; several Ractors cannot share a Mutex */

static VALUE probe(void)
{
    VALUE mutex = rb_ractor_local_storage_value(probe_key);
    if (NIL_P(mutex)) rb_ractor_local_storage_value_set(probe_key, mutex = rb_mutex_new());
    return mutex;
}

static VALUE lock_and_unlock(VALUE mutex)
{
    rb_mutex_lock(mutex);
    return rb_mutex_unlock(mutex);
}

/* Does a handler run? Only the refusal to lock a Mutex shows it. Signals' handlers run in the main thread,
 * finalizers in every one. */
bool hd_in_handler(void)
{
    hd_caught caught;
    hd_catch(lock_and_unlock, probe(), &caught);
    if (caught.state && !RTEST(rb_obj_is_kind_of(caught.exception, rb_eThreadError))) hd_go_on(&caught);
    return caught.state;
}

void hd_init_in_handler(void)
{
    probe_key = rb_ractor_local_storage_value_newkey();
}
