// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What becomes of the reads and writes of some processes to some files: which calls added pages to
// the page cache, and how often the kernel entered its direct path. docs/bpf.md has the definitions.

#include "watch.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// fcntl.h of x86-64.
enum { O_DIRECT = 040000 };

struct key {
	u32 file;
	u8 operation;
	u8 direct;
	u8 zero[2];
};

// All cumulative.
struct effect {
	u64 calls;
	u64 bytes;
	u64 cached_calls;
	u64 added_pages;
	u64 failed_calls;
};

// Of a file, whoever asked: pages added and entries to the direct path outside of the calls above.
struct path {
	u64 direct_ios;
	u64 other_pages;
};

// The call a thread is in; without a file, none that is counted.
struct call {
	struct key key;
	u32 pages;
	u32 active;
};

#include "follow.h"

MAP(effects, BPF_MAP_TYPE_HASH, struct key, struct effect, FILES * 4);
MAP(paths, BPF_MAP_TYPE_ARRAY, u32, struct path, FILES);

INLINE bool counts(void)
{
	struct owner *self;

	if (is_wanted())
		return true;
	self = owner_here();
	return self && self->counts;
}

INLINE void add_to_path(u32 *number, u64 direct_ios, u64 other_pages)
{
	struct path *path = bpf_map_lookup_elem(&paths, number);

	if (!path)
		return;
	add(&path->direct_ios, direct_ios);
	add(&path->other_pages, other_pages);
}

SEC("tp_btf/sys_enter")
int sys_enter(u64 *context)
{
	struct pt_regs *regs = (void *)context[0];
	u64 number = context[1];
	u8 transfer = transfer_of(number);
	u32 flags = 0;
	struct call *call;
	struct file *file;
	u32 *known;

	if (number == SYS_LSEEK)
		introduce(regs);
	if (transfer == NO_TRANSFER || !counts())
		return 0;
	file = file_of_descriptor(bpf_get_current_task_btf(), regs->di);
	if (!file)
		return 0;
	known = number_of(inode_of_file(file));
	call = known ? own_call() : NULL;
	if (!call)
		return 0;
	READ(flags, file, f_flags);
	call->key.file = *known;
	call->key.operation = operation_of_transfer(transfer);
	call->key.direct = flags & O_DIRECT ? 1 : 0;
	call->pages = 0;
	call->active = 1;
	return 0;
}

SEC("tp_btf/sys_exit")
int sys_exit(u64 *context)
{
	struct pt_regs *regs = (void *)context[0];
	s64 result = context[1];
	struct effect none = {};
	struct effect *sums;
	struct call *call;
	struct key key;

	if (transfer_of(regs->orig_ax) == NO_TRANSFER)
		return 0;
	call = known_call();
	if (!call || !call->active)
		return 0;
	call->active = 0;
	key = call->key;
	sums = value_of(&effects, &key, &none);
	if (!sums)
		return 0;
	add(&sums->added_pages, call->pages);
	if (result < 0) {
		add(&sums->failed_calls, 1);
		return 0;
	}
	add(&sums->calls, 1);
	add(&sums->bytes, result);
	if (call->pages)
		add(&sums->cached_calls, 1);
	return 0;
}

// Of a direct request that is served through the page cache, the pages are added in the context of
// the thread that asks for it, or of an io_uring worker of the same process.
SEC("tp_btf/mm_filemap_add_to_page_cache")
int mm_filemap_add_to_page_cache(u64 *context)
{
	struct folio *folio = (void *)context[0];
	struct address_space *mapping = folio->mapping;
	struct call *call;
	u32 *number;

	if (!mapping)
		return 0;
	number = number_of(mapping->host);
	if (!number)
		return 0;
	call = known_call();
	if (call && call->active && call->key.file == *number)
		call->pages += pages_of(folio);
	else if (counts())
		add_to_path(number, 0, pages_of(folio));
	return 0;
}

SEC("tp_btf/iomap_dio_rw_begin")
int iomap_dio_rw_begin(u64 *context)
{
	struct kiocb *control = (void *)context[0];
	struct file *file = control->ki_filp;
	u32 *number = file ? number_of(inode_of_file(file)) : NULL;

	if (number && counts())
		add_to_path(number, 1, 0);
	return 0;
}
