// SPDX-License-Identifier: MIT OR Apache-2.0
//
// How long threads of one process wait for the locks of some files: the i_rwsem of their inodes,
// which file systems take around reads and writes. docs/bpf.md has the definitions.

#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { FILES = 64, THREADS = 4096, FRAMES = 16 };
// Numbers of system calls on x86-64.
enum { SYS_LSEEK = 8 };
// Flags of the tracepoint contention_begin, trace/events/lock.h.
enum { LCB_F_WRITE = 1 << 2 };

static long (*bpf_get_stack)(void *context, void *to, u32 size, u64 flags) = (void *)67;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rw_semaphore {
	int nothing;
};

struct inode___lock {
	struct rw_semaphore i_rwsem;
};

#pragma clang attribute pop

// The process that reads these tables: its number in its own PID namespace, which is this inode on
// this device. A file that it is about to make known is `fd`, to be called `index` − 1.
struct settings {
	u64 namespace_device;
	u64 namespace_inode;
	u32 tgid;
	s32 fd;
	u32 index;
	u32 zero;
};

// Cumulative: waits to share the lock, and to have it alone.
struct waits {
	u64 shared;
	u64 shared_ns;
	u64 exclusive;
	u64 exclusive_ns;
};

struct waiting {
	u64 lock;
	u64 since_ns;
	u32 index;
	u32 exclusive;
};

// Where a thread was.
struct stack {
	u64 taken;
	u64 frames[FRAMES];
};

MAP(settings, BPF_MAP_TYPE_ARRAY, u32, struct settings, 1);
MAP(locks, BPF_MAP_TYPE_HASH, u64, u32, FILES);
MAP(waiting, BPF_MAP_TYPE_HASH, u32, struct waiting, THREADS);
MAP(waits, BPF_MAP_TYPE_ARRAY, u32, struct waits, FILES);
// Of the first that waited, and of the one that let the first go on.
MAP(stack, BPF_MAP_TYPE_ARRAY, u32, struct stack, 1);
MAP(holder, BPF_MAP_TYPE_ARRAY, u32, struct stack, 1);
MAP(dropped, BPF_MAP_TYPE_ARRAY, u32, u64, 1);

INLINE void add(u64 *counter, u64 amount)
{
	__sync_fetch_and_add(counter, amount);
}

INLINE void keep_first(void *context, struct stack *first)
{
	if (first && !first->taken && !__sync_fetch_and_add(&first->taken, 1))
		bpf_get_stack(context, first->frames, sizeof(first->frames), 0);
}

INLINE bool is_self(struct settings *set)
{
	struct pid_in_namespace self = {};

	if (bpf_get_ns_current_pid_tgid(set->namespace_device, set->namespace_inode, &self,
					sizeof(self)))
		return false;
	return self.tgid == set->tgid;
}

// The process makes a file known by an lseek of the descriptor that the settings name.
SEC("tp_btf/sys_enter")
int sys_enter(u64 *context)
{
	struct pt_regs *regs = (void *)context[0];
	u64 number = context[1];
	struct settings *set;
	struct inode *inode;
	u32 zero = 0, index;
	u64 lock;

	if (number != SYS_LSEEK)
		return 0;
	set = bpf_map_lookup_elem(&settings, &zero);
	if (!set || !set->index || (s32)regs->di != set->fd || !is_self(set))
		return 0;
	inode = inode_of_descriptor(bpf_get_current_task_btf(), regs->di);
	if (!inode)
		return 0;
	lock = (u64)&((struct inode___lock *)inode)->i_rwsem;
	index = set->index - 1;
	if (!bpf_map_update_elem(&locks, &lock, &index, BPF_ANY))
		set->index = 0;
	return 0;
}

SEC("tp_btf/contention_begin")
int contention_begin(u64 *context)
{
	u64 lock = context[0];
	u32 flags = context[1];
	struct waiting fresh = {};
	struct settings *set;
	u32 zero = 0, tid;
	u64 *count;
	u32 *index = bpf_map_lookup_elem(&locks, &lock);

	if (!index)
		return 0;
	set = bpf_map_lookup_elem(&settings, &zero);
	if (!set || !is_self(set))
		return 0;
	fresh.lock = lock;
	fresh.index = *index;
	fresh.exclusive = flags & LCB_F_WRITE ? 1 : 0;
	keep_first(context, bpf_map_lookup_elem(&stack, &zero));
	fresh.since_ns = bpf_ktime_get_ns();
	tid = bpf_get_current_pid_tgid();
	if (bpf_map_update_elem(&waiting, &tid, &fresh, BPF_ANY)) {
		count = bpf_map_lookup_elem(&dropped, &zero);
		if (count)
			add(count, 1);
	}
	return 0;
}

// A thread that waits for a lock is woken by the one that lets go of it.
SEC("tp_btf/sched_waking")
int sched_waking(u64 *context)
{
	struct task_struct *woken = (void *)context[0];
	u32 zero = 0, tid = woken->pid;

	if (bpf_map_lookup_elem(&waiting, &tid))
		keep_first(context, bpf_map_lookup_elem(&holder, &zero));
	return 0;
}

SEC("tp_btf/contention_end")
int contention_end(u64 *context)
{
	u64 lock = context[0];
	struct waiting *started;
	struct waits *sums;
	u64 took_ns;
	u32 tid, index;

	if (!bpf_map_lookup_elem(&locks, &lock))
		return 0;
	tid = bpf_get_current_pid_tgid();
	started = bpf_map_lookup_elem(&waiting, &tid);
	if (!started || started->lock != lock)
		return 0;
	took_ns = bpf_ktime_get_ns() - started->since_ns;
	index = started->index;
	sums = bpf_map_lookup_elem(&waits, &index);
	if (sums && started->exclusive) {
		add(&sums->exclusive, 1);
		add(&sums->exclusive_ns, took_ns);
	} else if (sums) {
		add(&sums->shared, 1);
		add(&sums->shared_ns, took_ns);
	}
	bpf_map_delete_elem(&waiting, &tid);
	return 0;
}
