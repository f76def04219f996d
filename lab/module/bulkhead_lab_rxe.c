// SPDX-License-Identifier: GPL-2.0
/*
 * Lets a soft-RoCE device be moved from the host into a network namespace, as the RDMA devices of real NICs can be. For
 * guests of the metal lab only.
 *
 * The RDMA core moves a device only if its driver can take it away from programs that have it open
 * (ops.disassociate_ucontext). Soft-RoCE cannot: its mappings point into what would be freed. So it is not made to. A
 * device that is the host's, and that nobody has opened yet, shows the operation, which the core asks for; all clients of
 * the device are taken off it before it moves, the last to come first, and this one, which comes after ib_uverbs, takes
 * the operation away again. What is left is the driver as it was: where somebody has the device open, whoever removes or
 * moves it waits for them. In a namespace the device never shows the operation: there it is the tenant's, and stays.
 */
#include <linux/module.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>

static void never_called(struct ib_ucontext *context)
{
	WARN_ONCE(1, "%s: soft-RoCE was to be taken from a program\n", KBUILD_MODNAME);
}

static int add(struct ib_device *device)
{
	if (device->ops.driver_id != RDMA_DRIVER_RXE)
		return -EOPNOTSUPP; /* not one of ours: no client of it */
	if (net_eq(rdma_dev_net(device), &init_net) && !device->ops.disassociate_ucontext)
		device->ops.disassociate_ucontext = never_called;
	return 0;
}

static void remove(struct ib_device *device, void *data)
{
	if (device->ops.disassociate_ucontext == never_called)
		device->ops.disassociate_ucontext = NULL;
}

static struct ib_client client = {
	.name = KBUILD_MODNAME,
	.add = add,
	.remove = remove,
};

static int __init begin(void)
{
	return ib_register_client(&client);
}

static void __exit end(void)
{
	ib_unregister_client(&client);
}

module_init(begin);
module_exit(end);
MODULE_SOFTDEP("pre: ib_uverbs");
MODULE_DESCRIPTION("Moves soft-RoCE devices into network namespaces, in Bulkhead's metal lab");
MODULE_LICENSE("GPL");
