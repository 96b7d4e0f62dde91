// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What becomes of the reads and writes of some processes to some files: which calls added pages to
// the page cache, and how often the kernel entered its direct path. docs/bpf.md has the definitions.

#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { FILES = 2048, PROCESSES = 4096, THREADS = 16384 };
enum { READING = 0, WRITING = 1 };
// fcntl.h of x86-64.
enum { O_DIRECT = 040000 };

// Numbers of system calls on x86-64.
enum {
	SYS_READ = 0,
	SYS_WRITE = 1,
	SYS_LSEEK = 8,
	SYS_PREAD64 = 17,
	SYS_PWRITE64 = 18,
	SYS_READV = 19,
	SYS_WRITEV = 20,
	SYS_PREADV = 295,
	SYS_PWRITEV = 296,
	SYS_PREADV2 = 327,
	SYS_PWRITEV2 = 328,
};

// The process that reads these tables: its number in its own PID namespace, which is this inode on
// this device. A file that it is about to make known is `fd`, to be called `index` − 1.
struct settings {
	u64 namespace_device;
	u64 namespace_inode;
	u32 tgid;
	s32 fd;
	u32 index;
	u32 self;
};

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

MAP(settings, BPF_MAP_TYPE_ARRAY, u32, struct settings, 1);
MAP(files, BPF_MAP_TYPE_HASH, u64, u32, FILES);
MAP(wanted, BPF_MAP_TYPE_HASH, u32, u8, PROCESSES);
MAP(calls, BPF_MAP_TYPE_HASH, u32, struct call, THREADS);
MAP(effects, BPF_MAP_TYPE_HASH, struct key, struct effect, FILES * 4);
MAP(paths, BPF_MAP_TYPE_ARRAY, u32, struct path, FILES);
MAP(dropped, BPF_MAP_TYPE_ARRAY, u32, u64, 1);

INLINE void add(u64 *counter, u64 amount)
{
	__sync_fetch_and_add(counter, amount);
}

INLINE void drop(void)
{
	u32 zero = 0;
	u64 *count = bpf_map_lookup_elem(&dropped, &zero);
	if (count)
		add(count, 1);
}

INLINE bool is_self(struct settings *set)
{
	struct pid_in_namespace self = {};

	if (bpf_get_ns_current_pid_tgid(set->namespace_device, set->namespace_inode, &self,
					sizeof(self)))
		return false;
	return self.tgid == set->tgid;
}

INLINE bool is_wanted(struct settings *set)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;

	if (bpf_map_lookup_elem(&wanted, &tgid))
		return true;
	return set->self && is_self(set);
}

// A file is known by the address of its inode, which stays as long as this process holds it open.
INLINE u32 *index_of(struct inode *inode)
{
	u64 address = (u64)inode;
	return bpf_map_lookup_elem(&files, &address);
}

INLINE bool operation_of(u64 number, u8 *operation)
{
	switch (number) {
	case SYS_READ:
	case SYS_PREAD64:
	case SYS_READV:
	case SYS_PREADV:
	case SYS_PREADV2:
		*operation = READING;
		return true;
	case SYS_WRITE:
	case SYS_PWRITE64:
	case SYS_WRITEV:
	case SYS_PWRITEV:
	case SYS_PWRITEV2:
		*operation = WRITING;
		return true;
	default:
		return false;
	}
}

// This process makes a file known by an lseek of the descriptor that the settings name.
INLINE void introduce(struct settings *set, struct pt_regs *regs)
{
	struct inode *inode;
	u32 index = set->index;
	u64 address;

	if (!index || (s32)regs->di != set->fd || !is_self(set))
		return;
	inode = inode_of_descriptor(bpf_get_current_task_btf(), regs->di);
	if (!inode)
		return;
	address = (u64)inode;
	index -= 1;
	// Two descriptors of one file: the first name stays.
	if (bpf_map_lookup_elem(&files, &address) ||
	    !bpf_map_update_elem(&files, &address, &index, BPF_NOEXIST))
		set->index = 0;
}

SEC("tp_btf/sys_enter")
int sys_enter(u64 *context)
{
	struct pt_regs *regs = (void *)context[0];
	u64 number = context[1];
	u32 zero = 0, flags = 0, tid;
	struct settings *set;
	struct call fresh = {};
	struct call *call;
	struct file *file;
	u32 *index;
	u8 operation = 0;
	bool is_io = operation_of(number, &operation);

	if (!is_io && number != SYS_LSEEK)
		return 0;
	set = bpf_map_lookup_elem(&settings, &zero);
	if (!set)
		return 0;
	if (!is_io) {
		introduce(set, regs);
		return 0;
	}
	if (!is_wanted(set))
		return 0;
	file = file_of_descriptor(bpf_get_current_task_btf(), regs->di);
	if (!file)
		return 0;
	index = index_of(inode_of_file(file));
	if (!index)
		return 0;
	READ(flags, file, f_flags);
	fresh.key.file = *index;
	fresh.key.operation = operation;
	fresh.key.direct = flags & O_DIRECT ? 1 : 0;
	fresh.active = 1;
	tid = bpf_get_current_pid_tgid();
	call = bpf_map_lookup_elem(&calls, &tid);
	if (call)
		*call = fresh;
	else if (bpf_map_update_elem(&calls, &tid, &fresh, BPF_ANY))
		drop();
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
	u8 operation = 0;
	u32 tid;

	if (!operation_of(regs->orig_ax, &operation))
		return 0;
	tid = bpf_get_current_pid_tgid();
	call = bpf_map_lookup_elem(&calls, &tid);
	if (!call || !call->active)
		return 0;
	call->active = 0;
	key = call->key;
	sums = bpf_map_lookup_elem(&effects, &key);
	if (!sums) {
		bpf_map_update_elem(&effects, &key, &none, BPF_NOEXIST);
		sums = bpf_map_lookup_elem(&effects, &key);
	}
	if (!sums) {
		drop();
		return 0;
	}
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
	u32 zero = 0, tid;
	struct settings *set;
	struct path *path;
	struct call *call;
	u32 *index;

	if (!mapping)
		return 0;
	index = index_of(mapping->host);
	if (!index)
		return 0;
	tid = bpf_get_current_pid_tgid();
	call = bpf_map_lookup_elem(&calls, &tid);
	if (call && call->active && call->key.file == *index) {
		call->pages += pages_of(folio);
		return 0;
	}
	set = bpf_map_lookup_elem(&settings, &zero);
	if (!set || !is_wanted(set))
		return 0;
	path = bpf_map_lookup_elem(&paths, index);
	if (path)
		add(&path->other_pages, pages_of(folio));
	return 0;
}

SEC("tp_btf/iomap_dio_rw_begin")
int iomap_dio_rw_begin(u64 *context)
{
	struct kiocb *control = (void *)context[0];
	u32 zero = 0;
	struct settings *set;
	struct file *file;
	struct path *path;
	u32 *index;

	file = control->ki_filp;
	if (!file)
		return 0;
	index = index_of(inode_of_file(file));
	set = bpf_map_lookup_elem(&settings, &zero);
	if (!index || !set || !is_wanted(set))
		return 0;
	path = bpf_map_lookup_elem(&paths, index);
	if (path)
		add(&path->direct_ios, 1);
	return 0;
}

// A wanted process's children are wanted from their first moment.
SEC("tp_btf/sched_process_fork")
int sched_process_fork(u64 *context)
{
	struct task_struct *parent = (void *)context[0];
	struct task_struct *child = (void *)context[1];
	u32 parent_tgid = parent->tgid, child_tgid = child->tgid;
	u8 one = 1;

	if (parent_tgid != child_tgid && bpf_map_lookup_elem(&wanted, &parent_tgid) &&
	    bpf_map_update_elem(&wanted, &child_tgid, &one, BPF_ANY))
		drop();
	return 0;
}

SEC("tp_btf/sched_process_exit")
int sched_process_exit(u64 *context)
{
	struct task_struct *task = (void *)context[0];
	struct signal_struct *signal = task->signal;
	u32 tid = task->pid, tgid = task->tgid;

	bpf_map_delete_elem(&calls, &tid);
	if (signal && signal->live.counter == 0)
		bpf_map_delete_elem(&wanted, &tgid);
	return 0;
}
