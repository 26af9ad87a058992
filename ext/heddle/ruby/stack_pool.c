/* See stack_pool.h. */
#include "stack_pool.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/clock.h"
#include "caught.h"
#include "fiber_insides.h"
#include "init.h"

typedef uintptr_t word;

struct pool;

/* cont.c: struct fiber_pool_stack */
typedef struct {
    char *base; /* the lowest address */
    word current;
    size_t size, available;
    struct pool *pool;
    void *allocation;
} stack_record;

/* cont.c: struct fiber_pool_vacancy. It lies in the last page of its stack. While a stack is vacant, Ruby does not use
 * `current`, and sets it when a fiber gets the stack, so it can have a mark meanwhile. */
typedef struct vacancy {
    stack_record stack;
    struct vacancy *next;
} vacancy;

/* cont.c: struct fiber_pool, as far as all versions agree. Ruby 4.1 has one number more before free_stacks. */
typedef struct pool {
    void *allocations;
    vacancy *vacancies;
    size_t size, count;
    word rest[5];
} pool_head;

/* Odd numbers that are no addresses. */
enum { GIVEN_BACK = 0x6865d5, REACHED = 0x6865d7 };

static struct {
    pool_head *pool;
    int *free_stacks;
    size_t *used;
} found;

static size_t page;

static struct {
    vacancy *reached; /* the last one that was visited; NULL: none */
    bool reached_is_given;
    size_t kept; /* the number of stacks that are still to be skipped */
} pass;

/* -- finding the pool ------------------------------------------------------------------------------------------ */

static bool is_record_here(const stack_record *record, const char *here)
{
    return record->base && (word)record->base % page == 0 && record->size && record->size % page == 0 &&
           record->size < (word)record->base && here >= record->base && here < record->base + record->size &&
           record->current >= (word)record->base && record->current <= (word)record->base + record->size &&
           record->available <= record->size;
}

/* Finds the record of the running fiber's stack. NULL: it is not there, or there are several. */
static const stack_record *find_record(VALUE fiber, const char *here)
{
    const word *memory = RTYPEDDATA_GET_DATA(fiber);
    const stack_record *result = NULL;
    size_t size = hd_size_of_memory(fiber);
    for (; size >= sizeof(stack_record); memory++, size -= sizeof(word)) {
        const stack_record *record = (const void *)memory;
        if (!is_record_here(record, here)) continue;
        if (result) return NULL;
        result = record;
    }
    return result;
}

/* Is the list of the vacant stacks as it must be? */
static bool list_is_right(const pool_head *pool, size_t used)
{
    size_t count = 0;
    for (const vacancy *v = pool->vacancies; v; v = v->next) {
        bool in_place = (char *)v == v->stack.base + pool->size - page;
        if (!in_place || v->stack.pool != pool || v->stack.size != pool->size || ++count > pool->count) return false;
    }
    return count == pool->count - used;
}

enum { PAGES = 2, PATTERN = 0x5a };

typedef struct {
    const volatile char *left; /* on the stack of a fiber that has ended */
    size_t used;
} visit;

/* Leaves a pattern on its stack. */
static VALUE leave_pattern(RB_BLOCK_CALL_FUNC_ARGLIST(unused, pointer))
{
    (void)unused, (void)argc, (void)argv, (void)blockarg;
    visit *seen = (void *)NUM2SIZET(pointer);
    volatile char bytes[PAGES * 4096];
    for (size_t i = 0; i < sizeof(bytes); i += 64) bytes[i] = PATTERN;
    seen->left = bytes;
    seen->used = *found.used;
    return Qnil;
}

static visit visit_another(void)
{
    visit seen = {NULL, 0};
    rb_fiber_resume(rb_fiber_new(leave_pattern, SIZET2NUM((size_t)&seen)), 0, NULL);
    return seen;
}

static bool pattern_is_there(const visit *seen)
{
    return seen->left[0] == PATTERN;
}

/* Does Ruby do what these fields say? `used` may be any number that looks like one, so it is only read. */
static bool confirmed(void)
{
    size_t before = *found.used;
    *found.free_stacks = MADV_DONTNEED << 1 | 1; /* cont.c: the advice is above the lowest bit */
    visit gives = visit_another();
    bool gone = !pattern_is_there(&gives);
    *found.free_stacks = 0;
    visit keeps = visit_another();
    bool there = pattern_is_there(&keeps);
    *found.free_stacks = 1;
    return gone && there && gives.used == before + 1 && *found.used == before && list_is_right(found.pool, before);
}

static bool in_library(const void *address)
{
    Dl_info unused;
    return dladdr(address, &unused);
}

/* The default is 128 KB, and a user may set another one. */
static bool is_vm_stack_size(size_t size)
{
    return size >= 4096 && size < found.pool->size;
}

static VALUE find(RB_BLOCK_CALL_FUNC_ARGLIST(unused, also_unused))
{
    (void)unused, (void)also_unused, (void)argc, (void)argv, (void)blockarg;
    char here;
    const stack_record *record = find_record(rb_fiber_current(), &here);
    pool_head *pool = record ? record->pool : NULL;
    if (!pool || !in_library(pool) || !in_library(pool + 1) || pool->size != record->size) return Qfalse;
    for (size_t i = 1; i <= 2; i++) {
        found.pool = pool;
        found.free_stacks = (int *)&pool->rest[i];
        found.used = &pool->rest[i + 1];
        bool plausible = *found.free_stacks == 1 && *found.used <= pool->count && is_vm_stack_size(pool->rest[i + 2]);
        if (plausible && list_is_right(pool, *found.used) && confirmed()) return Qtrue;
    }
    return Qfalse;
}

static VALUE find_in_fiber(VALUE unused)
{
    return rb_fiber_resume(rb_fiber_new(find, unused), 0, NULL);
}

/* -- using it ---------------------------------------------------------------------------------------------------- */

bool hd_stack_pool_found(void)
{
    return found.pool;
}

void hd_stack_pool_keeps_memory(bool keeps)
{
    *found.free_stacks = !keeps;
}

size_t hd_stack_pool_used(void)
{
    return *found.used;
}

size_t hd_stack_pool_vacant(void)
{
    return found.pool->count - *found.used;
}

void hd_stack_pool_begin_pass(size_t kept)
{
    pass.reached = NULL;
    pass.kept = kept;
}

/* Returns true when it is time to look at the clock: after each madvise, and for one of 64 stacks without one. */
static bool visit_vacancy(vacancy *v)
{
    enum { SKIPPED_PER_CLOCK = 64 };
    if (pass.kept > 0) return --pass.kept % SKIPPED_PER_CLOCK == 0;
    if (v->stack.current == GIVEN_BACK) return (word)v / page % SKIPPED_PER_CLOCK == 0;
    madvise(v->stack.base, found.pool->size - page, MADV_DONTNEED);
    v->stack.current = GIVEN_BACK;
    return true;
}

/* Between two parts of a pass a fiber may have got the stack that was reached, and perhaps the ones behind it. Then
 * Ruby has overwritten the mark, and the next pass begins anew. Otherwise the list behind it is as it was. */
bool hd_stack_pool_pass(int64_t until_ns)
{
    vacancy *v = found.pool->vacancies;
    if (pass.reached) {
        if (pass.reached->stack.current != REACHED) return true;
        v = pass.reached->next;
        pass.reached->stack.current = pass.reached_is_given ? GIVEN_BACK : 0;
        pass.reached = NULL;
    }
    for (; v; v = v->next) {
        if (!visit_vacancy(v) || !v->next || hd_clock_now() < until_ns) continue;
        pass.reached = v;
        pass.reached_is_given = v->stack.current == GIVEN_BACK;
        v->stack.current = REACHED;
        return false;
    }
    return true;
}

/* @private */
static VALUE found_p(VALUE module)
{
    return HD_BOOL(found.pool);
}

/* @private */
static VALUE leave(VALUE module)
{
    found.pool = NULL;
    return Qnil;
}

void hd_init_stack_pool(void)
{
    hd_caught caught;
    page = (size_t)sysconf(_SC_PAGESIZE);
    VALUE disabled = rb_gc_disable(); /* the GC frees stacks */
    VALUE is_found = hd_catch(find_in_fiber, Qnil, &caught);
    if (caught.state || is_found != Qtrue) found.pool = NULL;
    if (!RTEST(disabled)) rb_gc_enable();
    hd_go_on_if_interrupted(&caught);
    VALUE module = rb_define_module_under(hd_mHeddle, "StackPool"); /* private: see patches.rb */
    rb_define_singleton_method(module, "found?", found_p, 0);
    rb_define_singleton_method(module, "leave", leave, 0);
}
