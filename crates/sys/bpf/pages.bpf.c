// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Counts the pages that one process adds to the page cache of files that it has open. docs/bpf.md
// has the definitions.

#include "self.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { FILES = 64 };

// The descriptors of the files that are watched, each plus one, and zeros behind them.
MAP(descriptors, BPF_MAP_TYPE_ARRAY, u32, u32, FILES);
MAP(added, BPF_MAP_TYPE_ARRAY, u32, u64, 1);

// Direct I/O runs in the context of the thread that asks for it, or of an io_uring worker, which
// belongs to the same process: pages that other processes add to the same files are not counted.
SEC("tp_btf/mm_filemap_add_to_page_cache")
int mm_filemap_add_to_page_cache(u64 *context)
{
	struct folio *folio = (void *)context[0];
	struct task_struct *task = bpf_get_current_task_btf();
	struct address_space *mapping = folio->mapping;
	u32 zero = 0;
	u64 *count = bpf_map_lookup_elem(&added, &zero);

	if (!count || !mapping || !owner_here())
		return 0;
	for (u32 index = 0; index < FILES; index++) {
		u32 at = index;
		u32 *descriptor = bpf_map_lookup_elem(&descriptors, &at);
		if (!descriptor || !*descriptor)
			break;
		if (inode_of_descriptor(task, *descriptor - 1) == mapping->host) {
			__sync_fetch_and_add(count, pages_of(folio));
			break;
		}
	}
	return 0;
}
