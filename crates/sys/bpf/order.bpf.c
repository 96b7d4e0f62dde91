// SPDX-License-Identifier: MIT OR Apache-2.0
//
// How long threads of one process wait for the locks of some files: the i_rwsem of their inodes,
// which file systems take around reads and writes. docs/bpf.md has the definitions.

#include "count.h"
#include "watch.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { THREADS = 4096, FRAMES = 16 };
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
	u32 number;
	u32 exclusive;
};

// Where a thread was.
struct stack {
	u64 taken;
	u64 frames[FRAMES];
};

MAP(waiting, BPF_MAP_TYPE_HASH, u32, struct waiting, THREADS);
MAP(waits, BPF_MAP_TYPE_ARRAY, u32, struct waits, FILES);
// Of the first that waited, and of the one that let the first go on.
MAP(stack, BPF_MAP_TYPE_ARRAY, u32, struct stack, 1);
MAP(holder, BPF_MAP_TYPE_ARRAY, u32, struct stack, 1);

// The number of the file whose lock this is, if it is watched.
INLINE u32 *number_of_lock(u64 lock)
{
	u32 offset = __builtin_preserve_field_info(((struct inode___lock *)0)->i_rwsem, 0);

	return number_of((void *)(lock - offset));
}

INLINE void keep_first(void *context, struct stack *first)
{
	if (first && !first->taken && !__sync_fetch_and_add(&first->taken, 1))
		bpf_get_stack(context, first->frames, sizeof(first->frames), 0);
}

SEC("tp_btf/sys_enter")
int sys_enter(u64 *context)
{
	if (context[1] == SYS_LSEEK)
		introduce((void *)context[0]);
	return 0;
}

SEC("tp_btf/contention_begin")
int contention_begin(u64 *context)
{
	u64 lock = context[0];
	u32 flags = context[1];
	struct waiting fresh = {};
	u32 zero = 0, tid;
	u32 *number = number_of_lock(lock);

	if (!number || !owner_here())
		return 0;
	fresh.lock = lock;
	fresh.number = *number;
	fresh.exclusive = flags & LCB_F_WRITE ? 1 : 0;
	keep_first(context, bpf_map_lookup_elem(&stack, &zero));
	fresh.since_ns = bpf_ktime_get_ns();
	tid = bpf_get_current_pid_tgid();
	if (bpf_map_update_elem(&waiting, &tid, &fresh, BPF_ANY))
		drop();
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
	u32 tid, number;

	if (!number_of_lock(lock))
		return 0;
	tid = bpf_get_current_pid_tgid();
	started = bpf_map_lookup_elem(&waiting, &tid);
	if (!started || started->lock != lock)
		return 0;
	took_ns = bpf_ktime_get_ns() - started->since_ns;
	number = started->number;
	sums = bpf_map_lookup_elem(&waits, &number);
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
