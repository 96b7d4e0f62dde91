// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Files that the owner makes known, each by an lseek of its descriptor. A file is known by the
// address of its inode, which stays as long as the owner holds it open.

#pragma once

#include "calls.h"
#include "self.h"

enum { FILES = 2048 };

// The descriptor of the file that is to be called `number` − 1; zero for none.
struct introduction {
	s32 fd;
	u32 number;
};

MAP(introduction, BPF_MAP_TYPE_ARRAY, u32, struct introduction, 1);
MAP(watched, BPF_MAP_TYPE_HASH, u64, u32, FILES);

INLINE u32 *number_of(struct inode *inode)
{
	u64 address = (u64)inode;

	return bpf_map_lookup_elem(&watched, &address);
}

INLINE void introduce(struct pt_regs *regs)
{
	u32 zero = 0, number;
	struct introduction *now = bpf_map_lookup_elem(&introduction, &zero);
	u64 address;

	if (!now || !now->number || (s32)regs->di != now->fd || !owner_here())
		return;
	address = (u64)inode_of_descriptor(bpf_get_current_task_btf(), regs->di);
	if (!address)
		return;
	number = now->number - 1;
	// Two descriptors of one file: the first number stays.
	if (bpf_map_lookup_elem(&watched, &address) ||
	    !bpf_map_update_elem(&watched, &address, &number, BPF_NOEXIST))
		now->number = 0;
}
