// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Page faults on mapped files.

#pragma once

#include "sizes.h"

// Bits of the error code of a page fault on x86-64.
enum { X86_PF_WRITE = 1 << 1 };

INLINE void begin_fault(bool is_write)
{
	struct call *call = is_wanted() ? own_call() : NULL;

	if (!call)
		return;
	call->fault.mapping = 0;
	call->fault.is_write = is_write;
}

// What a program writes to. It ends before the thread enters a system call.
SEC("tp_btf/page_fault_user")
int page_fault_user(u64 *context)
{
	begin_fault(context[2] & X86_PF_WRITE);
	return 0;
}

SEC("tp_btf/page_fault_kernel")
int page_fault_kernel(void *context)
{
	(void)context;
	begin_fault(false);
	return 0;
}

INLINE void count_fault(struct address_space *mapping, u64 page, u8 operation)
{
	struct side side = {};
	struct inode *inode = NULL;

	READ(inode, mapping, host);
	if (!inode || !take_file(&side.key, inode) || side.key.kind != A_FILE)
		return;
	side.key.layer = ASKED;
	side.key.operation = operation;
	side.key.mode = FAULT;
	side.key.tgid = tgid_of_asker();
	side.offset = page * BLOCK_BYTES;
	if (operation == WRITING)
		mark_written(&side.key);
	count_next(&side, BLOCK_BYTES, BLOCK_BYTES);
}

// The page has to be looked for. The kernel does so again after it has waited for the page.
SEC("tp_btf/mm_filemap_fault")
int mm_filemap_fault(u64 *context)
{
	u64 mapping = context[0], page = context[1];
	struct call *call = is_wanted() ? own_call() : NULL;

	if (!call || (call->fault.mapping == mapping && call->fault.page == page))
		return 0;
	call->fault.mapping = mapping;
	call->fault.page = page;
	count_fault((void *)mapping, page, READING);
	return 0;
}

// A page becomes dirty, by a write to a mapping or by something else.
SEC("tp_btf/writeback_dirty_folio")
int writeback_dirty_folio(u64 *context)
{
	struct folio *folio = (void *)context[0];
	struct address_space *mapping = (void *)context[1];
	struct call *call = is_wanted() ? known_call() : NULL;
	struct inode *inode = NULL;
	unsigned long page = 0;
	u16 mode = 0;

	if (!call || !call->fault.is_write || !folio || !mapping)
		return 0;
	// Pages of the device are what the file system writes for its own.
	READ(inode, mapping, host);
	if (!inode)
		return 0;
	READ(mode, inode, i_mode);
	if ((mode & S_IFMT) != S_IFREG)
		return 0;
	call->fault.is_write = 0;
	READ(page, folio, index);
	count_fault(mapping, page, WRITING);
	return 0;
}
