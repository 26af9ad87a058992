/* The hook address_resolve. */
#include "io/lookup_call.h"
#include "ruby/init.h"

/* Resolves the name of a host.
 *
 * @param host [String]
 * @return [Array<String>, nil] numeric addresses in the resolver's order, or nil when the name is unknown
 * @raise [Socket::ResolutionError] when the resolver cannot answer now */
static VALUE hook_address_resolve(VALUE self, VALUE host)
{
    return hd_addresses_of(hd_scheduler_ready(self), host);
}

void hd_init_hooks_resolve(void)
{
    rb_define_method(hd_cScheduler, "address_resolve", hook_address_resolve, 1);
}
