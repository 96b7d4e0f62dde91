// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The process that reads the tables.

#pragma once

#include "kernel.h"

// Its number in its own PID namespace, which is this inode on this device; and whether its own I/O
// counts as that of a wanted process.
struct owner {
	u64 namespace_device;
	u64 namespace_inode;
	u32 tgid;
	u32 counts;
};

MAP(owner, BPF_MAP_TYPE_ARRAY, u32, struct owner, 1);

INLINE struct owner *owner_here(void)
{
	u32 zero = 0;
	struct owner *known = bpf_map_lookup_elem(&owner, &zero);
	struct pid_in_namespace self = {};

	if (!known || bpf_get_ns_current_pid_tgid(known->namespace_device, known->namespace_inode,
						  &self, sizeof(self)))
		return NULL;
	return self.tgid == known->tgid ? known : NULL;
}
