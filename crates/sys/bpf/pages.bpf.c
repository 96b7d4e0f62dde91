// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Counts the pages that one process adds to the page cache of files that it has open. docs/bpf.md
// has the definitions.

#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { FILES = 64 };

// The process that is observed: its number in its own PID namespace, which is this inode on this
// device; and how many of its descriptors are watched.
struct settings {
	u64 namespace_device;
	u64 namespace_inode;
	u32 tgid;
	u32 files;
};

MAP(settings, BPF_MAP_TYPE_ARRAY, u32, struct settings, 1);
MAP(watched, BPF_MAP_TYPE_ARRAY, u32, u32, FILES);
MAP(added, BPF_MAP_TYPE_ARRAY, u32, u64, 1);

// Direct I/O runs in the context of the thread that asks for it, or of an io_uring worker, which
// belongs to the same process: pages that other processes add to the same files are not counted.
SEC("tp_btf/mm_filemap_add_to_page_cache")
int mm_filemap_add_to_page_cache(u64 *context)
{
	struct folio *folio = (void *)context[0];
	struct task_struct *task = bpf_get_current_task_btf();
	struct address_space *mapping = folio->mapping;
	struct inode *inode;
	struct pid_in_namespace self = {};
	u32 zero = 0;
	struct settings *set = bpf_map_lookup_elem(&settings, &zero);
	u64 *count = bpf_map_lookup_elem(&added, &zero);

	if (!set || !count || !set->files || !mapping)
		return 0;
	if (bpf_get_ns_current_pid_tgid(set->namespace_device, set->namespace_inode, &self,
					sizeof(self)))
		return 0;
	if (self.tgid != set->tgid)
		return 0;
	inode = mapping->host;
	for (u32 index = 0; index < FILES; index++) {
		u32 at = index;
		u32 *fd;
		if (index >= set->files)
			break;
		fd = bpf_map_lookup_elem(&watched, &at);
		if (fd && inode_of_descriptor(task, *fd) == inode) {
			__sync_fetch_and_add(count, pages_of(folio));
			break;
		}
	}
	return 0;
}
